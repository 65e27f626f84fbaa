package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/weirgo/weir/internal/testserver"
)

// pieces is how many events an answer has before the last one, and pause the time between two.
const (
	pieces = 10
	pause  = 20 * time.Millisecond
)

// A model is the embedded one. It counts the tokens of each answer, and refuses calls
// beyond the quota.
type model struct {
	*testserver.Server
	vendor *testserver.Vendor
}

func openModel() (*model, error) {
	inTokens := testserver.TokenBucket(tokens.Permits, tokens.Per, tokens.Burst)
	inTokens.Unit = "tokens"
	inRequests := testserver.TokenBucket(requests.Permits, requests.Per, requests.Burst+2) // calls may leave a moment late
	inRequests.Unit = "requests"
	m := &model{vendor: &testserver.Vendor{
		Limits:  []testserver.Limit{inRequests, inTokens},
		Styles:  []testserver.Style{testserver.RetryAfterSeconds},
		Cost:    cost,
		Handler: http.HandlerFunc(stream),
	}}
	var err error
	m.Server, err = testserver.Listen(m.vendor)
	return m, err
}

// cost returns how many tokens the answer to a request takes: 50 to 550. The client learns it at
// the end of the stream.
func cost(req *http.Request) int {
	body, _ := io.ReadAll(req.Body) // a body that is cut short is a question, too
	req.Body = io.NopCloser(bytes.NewReader(body))
	var asked struct{ Question uint64 }
	_ = json.Unmarshal(body, &asked)
	return 50 + rand.New(rand.NewPCG(asked.Question, 1)).IntN(501)
}

// stream answers with server-sent events.
func stream(w http.ResponseWriter, req *http.Request) {
	used := cost(req)
	w.Header().Set("Content-Type", "text/event-stream")
	for range pieces {
		fmt.Fprint(w, "data: {\"text\": \"and so on \"}\n\n")
		_ = http.NewResponseController(w).Flush()
		time.Sleep(pause)
	}
	fmt.Fprintf(w, "data: {\"usage\": {\"tokens\": %d}}\n\n", used)
}

// served returns the number of answers and of their tokens, and of refused calls.
func (m *model) served() (answers, used, refused int) {
	all := m.vendor.Arrivals()
	for _, a := range all.Granted() {
		answers++
		used += a.Cost
	}
	return answers, used, len(all) - answers
}
