// Llm asks a language model many questions within its limits of requests and tokens a
// minute, and reads the answers as they are streamed.
//
//	go run ./llm
//
// The tokens of an answer are known at its end. So a call reserves the most that it may take, 1,000
// tokens, although an answer takes 300 on average. One client leaves it at that, and uses a third
// of its quota. The other settles each call: once the stream has ended, it states the actual
// number, and the rest goes to the next call in line.
//
// The model is part of the program, on a loopback socket, once for each client. It prints
// how much of the quota each of them used, and draws the tokens of each second into
// llm.svg and llm.png.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/examples/internal/chart"
	"github.com/weirgo/weir/examples/internal/program"
	"github.com/weirgo/weir/throttle"
)

const (
	workers   = 32
	maxTokens = 1_000 // most tokens of one answer, as in the request
)

// The limits of the account. A call waits for both.
var (
	requests = throttle.TokenBucket(1_200, time.Minute, 20)
	tokens   = throttle.TokenBucket(240_000, time.Minute, 4_000).Of("tokens")
)

var llm = program.Drawing{
	Name:  "llm",
	What:  "how long questions are asked",
	Shown: program.Shown{For: 9 * time.Second, Out: "llm"},
	Run:   run,
}

func main() { llm.Main() }

// A client asks questions.
type client struct {
	name    string
	settles bool
	http    *http.Client
	model   *model
}

// ask asks one question and reads the stream of its answer.
func (c *client) ask(ctx context.Context, question int) error {
	ctx, spend := weir.Track(ctx)
	spend.Reserve("tokens", maxTokens)
	body := fmt.Sprintf(`{"question": %d, "max_tokens": %d, "stream": true}`, question, maxTokens)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.model.URL, strings.NewReader(body))
	if err != nil {
		return err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("answer %s", resp.Status)
	}
	used, err := readStream(resp.Body)
	if err == nil && c.settles {
		err = spend.Settle("tokens", used)
	}
	return err
}

// readStream reads server-sent events. The last one has the tokens of the answer.
func readStream(body io.Reader) (used int, err error) {
	var event struct {
		Text  string
		Usage struct{ Tokens int }
	}
	lines := bufio.NewScanner(body)
	for lines.Scan() {
		data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: "))
		if !ok {
			continue // a comment, or the empty line between two events
		}
		if err := json.Unmarshal(data, &event); err != nil {
			return 0, err
		}
	}
	return event.Usage.Tokens, lines.Err()
}

// work asks questions until the context ends, and returns the first error.
func (c *client) work(ctx context.Context) (failed error) {
	var mu sync.Mutex
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			for question := w; ctx.Err() == nil; question += workers {
				if err := c.ask(ctx, question); err != nil && ctx.Err() == nil {
					mu.Lock()
					failed = err
					mu.Unlock()
					return
				}
			}
		})
	}
	all.Wait()
	return failed
}

// run lets two clients ask at the same time, each a model of its own.
func run(ctx context.Context, o program.Shown, stdout io.Writer) (chart.Picture, error) {
	fmt.Fprintf(stdout, "%d workers ask, each call reserves %d tokens. The quota: %s and %s.\n\n", workers, maxTokens, requests, tokens)
	clients := []*client{{name: "reserved"}, {name: "reserved and settled", settles: true}}
	var all sync.WaitGroup
	failed := make([]error, len(clients))
	for i, c := range clients {
		var err error
		if c.model, err = openModel(); err != nil {
			return chart.Picture{}, err
		}
		defer c.model.Close()
		c.http = &http.Client{Transport: &weir.Transport{
			Base:   c.model.Transport(),
			Limits: []throttle.Limit{requests, tokens},
			Logger: slog.New(slog.DiscardHandler), // ./learning shows its output
		}}
		all.Go(func() { failed[i] = c.work(ctx) })
	}
	all.Wait()
	for i, c := range clients {
		if failed[i] != nil {
			return chart.Picture{}, failed[i]
		}
		answers, used, refused := c.model.served()
		fmt.Fprintf(stdout, "%20s: %3d answers, %6d tokens, %3.0f %% of the quota, %d refused\n",
			c.name, answers, used, 100*float64(used)/(float64(tokens.Burst)+tokens.PerSecond()*o.For.Seconds()), refused)
	}
	return picture(clients, o.For), nil
}
