package pauses_test

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/headers"
	"github.com/weirgo/weir/internal/acceptance/harness"
	"github.com/weirgo/weir/internal/testserver"
)

// bodied is a dialect whose hints are in every body.
func bodied() *headers.Dialect {
	return &headers.Dialect{
		Body: []headers.Field{
			{Name: "code", Fact: headers.FactPermanent, Words: map[string]headers.Scope{"never": 0}},
			{Name: "error", Fact: headers.FactRefusal, Words: map[string]headers.Scope{"slow down": 0}},
		},
		BodyOfSuccess: true,
	}
}

// A stalled is a server whose bodies pause in the middle. Its first answers are refusals.
type stalled struct {
	refusals int32
	header   http.Header
	pause    time.Duration
	text     string

	asked atomic.Int32
}

func (s *stalled) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	status := http.StatusOK
	w.Header().Set("Content-Type", "application/json")
	if s.asked.Add(1) <= s.refusals {
		status = http.StatusTooManyRequests
		for name, values := range s.header {
			w.Header()[name] = values
		}
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(s.text)))
	w.WriteHeader(status)
	half := len(s.text) / 2
	io.WriteString(w, s.text[:half])
	w.(http.Flusher).Flush()
	select {
	case <-time.After(s.pause):
		io.WriteString(w, s.text[half:])
	case <-req.Context().Done():
	}
}

func fetch(t *testing.T, transport *weir.Transport, url string) (status int, text string, err error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(body), err
}

// A success with a slow body reaches its caller whole.
func TestSlowBodyOfSuccessIsWhole(t *testing.T) {
	text := `{"result":"` + strings.Repeat("0123456789", 5000) + `"}`
	for name, open := range map[string]func(http.Handler) (*testserver.Server, error){"sockets": testserver.Listen, "pipes": testserver.Pipe} {
		check := func(t *testing.T) {
			server := testserver.Run(t, open, &stalled{pause: 7 * time.Second, text: text})
			transport := &weir.Transport{Base: server.Transport(), Dialect: bodied()}
			defer transport.Close()
			status, got, err := fetch(t, transport, server.URL)
			if status != 200 || err != nil || got != text {
				t.Errorf("%d with %d bytes, %v, want 200 with %d", status, len(got), err, len(text))
			}
		}
		t.Run(name, func(t *testing.T) {
			if name == "pipes" {
				synctest.Test(t, check)
				return
			}
			t.Parallel()
			check(t)
		})
	}
}

// The time in the header pauses the lane while the body is awaited.
func TestSlowBodyOfRefusalDoesNotDelayPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		vendor := &stalled{refusals: 1, header: harness.Hints("2"), pause: 4 * time.Second, text: `{"code":"later"}`}
		server := testserver.Run(t, testserver.Pipe, vendor)
		transport := &weir.Transport{Base: server.Transport(), Dialect: bodied()}
		defer transport.Close()
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() { fetch(t, transport, server.URL) })
			time.Sleep(time.Millisecond)
		}
		time.Sleep(1900 * time.Millisecond)
		if n := vendor.asked.Load(); n != 1 {
			t.Errorf("%d calls before the end of the pause, want 1", n)
		}
		wg.Wait()
	})
}

// The same in real time: eight workers that never rest, and a reported minute.
func TestSlowBodyOfRefusalHoldsWorkers(t *testing.T) {
	t.Parallel()
	vendor := &stalled{refusals: 1 << 30, header: harness.Hints("60"), pause: 10 * time.Second, text: `{"code":"later"}`}
	server := testserver.Run(t, testserver.Listen, vendor)
	transport := &weir.Transport{Base: server.Transport(), Dialect: bodied()}
	defer transport.Close()
	end := time.Now().Add(3 * time.Second)
	for range 8 {
		go func() {
			for time.Now().Before(end) {
				fetch(t, transport, server.URL)
				time.Sleep(time.Millisecond)
			}
		}()
	}
	time.Sleep(time.Until(end))
	if n := vendor.asked.Load(); n > 8 {
		t.Errorf("%d calls in 3s, want at most those that the 8 workers sent before the refusal", n)
	}
}

// The body's addition to the header counts, and the time that the body took does not lengthen the
// pause.
func TestSlowBodyAddsToHeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		vendor := &stalled{refusals: 1, header: harness.Hints("2"), pause: time.Second, text: `{"code":"never"}`}
		server := testserver.Run(t, testserver.Pipe, vendor)
		transport := &weir.Transport{Base: server.Transport(), Dialect: bodied()}
		defer transport.Close()
		began := time.Now()
		if status, _, err := fetch(t, transport, server.URL); status != 429 || err != nil {
			t.Errorf("%d, %v, want the 429 that waiting does not help", status, err)
		}
		fetch(t, transport, server.URL)
		if took := time.Since(began); took != 3*time.Second { // 2s of pause, 1s of body
			t.Errorf("the next call ended after %v, want 3s", took)
		}
	})
}

// A forbidden URL reports, as every response does, that nothing remains for this second: the lane
// stays open.
func TestForbiddenIsNoRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var served, forbidden atomic.Int32
		server := testserver.Run(t, testserver.Pipe, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			w.Header().Set("X-RateLimit-Remaining", "0")
			w.Header().Set("X-RateLimit-Reset", "1")
			if req.URL.Path == "/forbidden" {
				forbidden.Add(1)
				w.WriteHeader(http.StatusForbidden)
				return
			}
			served.Add(1)
		}))
		transport := &weir.Transport{Base: server.Transport()}
		defer transport.Close()
		for range 1000 {
			if status, _, err := fetch(t, transport, server.URL+"/forbidden"); status != 403 || err != nil {
				t.Fatalf("%d, %v, want 403", status, err)
			}
			fetch(t, transport, server.URL)
			time.Sleep(10 * time.Millisecond)
		}
		if served.Load() != 1000 || forbidden.Load() != 1000 {
			t.Errorf("%d served and %d forbidden, want 1000 each", served.Load(), forbidden.Load())
		}
	})
}

// A 403 counts as a refusal of a quota only once: if the wait did not help, the request is
// forbidden.
func TestForbiddenIsRefusedByQuotaOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		server := testserver.Run(t, testserver.Pipe, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			asked.Add(1)
			w.Header().Set("X-RateLimit-Remaining", "0")
			w.Header().Set("X-RateLimit-Reset", "5")
			w.WriteHeader(http.StatusForbidden)
		}))
		transport := &weir.Transport{Base: server.Transport()}
		defer transport.Close()
		began := time.Now()
		status, _, err := fetch(t, transport, server.URL)
		if status != 403 || err != nil || time.Since(began) != 5*time.Second || asked.Load() != 2 {
			t.Errorf("%d, %v after %v and %d calls, want 403 after 5s and 2", status, err, time.Since(began), asked.Load())
		}
		if state := transport.Snapshot()[0]; state.Paused > 0 {
			t.Errorf("lane paused for %v, want it open", state.Paused)
		}
	})
}
