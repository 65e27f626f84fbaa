package weir_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/backoff"
	"github.com/weirgo/weir/internal/testserver"
)

// An outer client tries again what the Transport has tried already. The real
// ones stand in internal/sdktest; here are the rules.

const callURL = testserver.PipeURL + "/things"

// outerCall is a POST that an outer client marks as one call.
func outerCall(t *testing.T, key string) *http.Request {
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, callURL, strings.NewReader("body"))
	req.Header.Set("Idempotency-Key", key)
	return req
}

func outerRig(t *testing.T, faults ...testserver.Fault) *rig {
	return pipeRig(t, &testserver.Vendor{Faults: faults}, &weir.Transport{Retry: after(10 * time.Millisecond)})
}

var endless500 = testserver.Fault{Do: testserver.Answer, Status: 500}

func (r *rig) wantArrivals(n int) {
	r.Helper()
	if got := len(r.vendor.Arrivals()); got != n {
		r.Errorf("arrivals = %d, want %d", got, n)
	}
}

// Ours is 4: the second to fourth try of theirs get the answer of the first at
// once, and each further one is sent once.
func TestOuterRetriesAreCountedOn(t *testing.T) {
	marks := map[string]func(*testing.T, int) *http.Request{
		"Idempotency-Key": func(t *testing.T, _ int) *http.Request { return outerCall(t, "k") },
		"Amz-Sdk-Invocation-Id": func(t *testing.T, try int) *http.Request {
			req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, callURL, nil)
			req.Header.Set("Amz-Sdk-Invocation-Id", "i")
			req.Header.Set("Amz-Sdk-Request", fmt.Sprintf("attempt=%d; max=6", try))
			req.Header.Set("Authorization", "signature "+strconv.Itoa(try))
			return req
		},
		"X-Stainless-Retry-Count": func(t *testing.T, try int) *http.Request {
			req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, callURL, nil)
			req.Header.Set("X-Stainless-Retry-Count", strconv.Itoa(try-1))
			return req
		},
	}
	for name, mark := range marks {
		synctest.Test(t, func(t *testing.T) {
			r := outerRig(t, endless500)
			for try, arrivals := range []int{4, 4, 4, 4, 5, 6} {
				got := r.do(mark(t, try+1))
				r.want(name, got, 500)
				r.wantArrivals(arrivals)
				time.Sleep(time.Second)
			}
		})
	}
}

// The same request value, or a shallow copy of it, is one call tried again.
func TestSameRequestValueIsCountedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := outerRig(t, endless500)
		req := r.request(t.Context(), "a")
		r.want("GET", r.do(req), 500)
		copied := *req
		r.want("GET of a copy", r.do(&copied), 500)
		r.wantArrivals(4)
		r.want("GET of a new value", r.get(t.Context(), "a"), 500)
		r.wantArrivals(8)
	})
}

func TestAnswerIsGivenAgainWhole(t *testing.T) {
	long := strings.Repeat("x", 16<<10)
	for _, tt := range []struct {
		body, method string
		read         bool
		arrivals     int
	}{
		{"", http.MethodGet, true, 4},
		{"why", http.MethodGet, true, 4},
		{"why", http.MethodGet, false, 4},
		{"why", http.MethodHead, false, 4},
		{long, http.MethodGet, false, 4},
		{long + "x", http.MethodGet, true, 5}, // too long to be kept
	} {
		synctest.Test(t, func(t *testing.T) {
			r := pipeRig(t, &testserver.Vendor{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("X-Reason", "down")
				w.WriteHeader(500)
				io.WriteString(w, tt.body)
			})}, &weir.Transport{Retry: after(0)})
			req := r.request(t.Context(), "a")
			req.Method = tt.method
			resp, err := r.transport.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			if tt.read {
				io.Copy(io.Discard, resp.Body)
			}
			resp.Body.Close()
			resp.Header.Set("X-Reason", "changed")
			body := newCountedBody("body")
			again := *req
			again.Body = body
			got := r.do(&again)
			want := tt.body
			if tt.method == http.MethodHead {
				want = ""
			}
			if r.want("again", got, 500); got.body != want || got.header.Get("X-Reason") != "down" {
				t.Errorf("again = %d bytes, %v, want %d and the header", len(got.body), got.header, len(want))
			}
			synctest.Wait()
			if body.closes.Load() != 1 {
				t.Errorf("closes of the body = %d, want 1", body.closes.Load())
			}
			r.wantArrivals(tt.arrivals)
		})
	}
}

func TestErrorIsGivenAgain(t *testing.T) {
	sent := 0
	tr := &weir.Transport{Retry: after(0), Base: baseFunc(func(*http.Request) (*http.Response, error) {
		sent++
		return nil, io.ErrUnexpectedEOF
	})}
	defer tr.Close()
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://vendor.test/", nil)
	for range 3 {
		_, err := tr.RoundTrip(req)
		var ours *weir.Error
		if !errors.As(err, &ours) || ours.Attempts != 4 || !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("RoundTrip = %v, want the failure of 4 attempts", err)
		}
	}
	if sent != 4 {
		t.Errorf("sent = %d, want 4", sent)
	}
}

// What cannot be a client's next try is a call of its own.
func TestCallsAreNotTakenForRetries(t *testing.T) {
	other := func(change func(*http.Request)) func(*testing.T) *http.Request {
		return func(t *testing.T) *http.Request {
			req := outerCall(t, "k")
			change(req)
			return req
		}
	}
	for name, next := range map[string]func(*testing.T) *http.Request{
		"another key":        func(t *testing.T) *http.Request { return outerCall(t, "l") },
		"another credential": other(func(req *http.Request) { req.Header.Set("Authorization", "b") }),
		"another method":     other(func(req *http.Request) { req.Method = http.MethodPut }),
		"another URL":        other(func(req *http.Request) { req.URL.Path += "s" }),
		"a first try":        other(func(req *http.Request) { req.Header.Set("X-Stainless-Retry-Count", "0") }),
		"much later": func(t *testing.T) *http.Request {
			time.Sleep(2*time.Second + 1)
			return outerCall(t, "k")
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := outerRig(t, endless500)
			r.want("first", r.do(outerCall(t, "k")), 500)
			r.want(name, r.do(next(t)), 500)
			if got := len(r.vendor.Arrivals()); got != 8 {
				t.Errorf("%s: arrivals = %d, want 8", name, got)
			}
		})
	}
}

// Once a call of the loop has succeeded, a failure counts anew.
func TestSuccessForgetsOuterRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := outerRig(t,
			testserver.Fault{Last: 4, Do: testserver.Answer, Status: 500},
			testserver.Fault{First: 6, Do: testserver.Answer, Status: 500})
		for _, status := range []int{500, 500, 500, 500, 200, 500} {
			r.want("POST", r.do(outerCall(t, "k")), status)
		}
		r.wantArrivals(4 + 1 + 4)
	})
}

// A call that ended for another reason than that its attempts were used up goes
// on where it stood.
func TestOuterRetryGoesOnWithTheRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := outerRig(t, endless500)
		r.transport.Retry = after(time.Second)
		req := within(1500*time.Millisecond)(r, outerCall(t, "k"))
		r.want("first", r.do(req), 500)
		r.wantArrivals(2)
		r.want("second", r.do(outerCall(t, "k")), 500)
		r.wantArrivals(4)
		r.want("third", r.do(outerCall(t, "k")), 500)
		r.wantArrivals(4)
	})
}

// A policy that sends once multiplies nothing: the outer client has its way.
func TestOuterRetriesOverNoneAreAllSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := outerRig(t, endless500)
		r.transport.Retry = backoff.None
		for range 7 {
			r.want("POST", r.do(outerCall(t, "k")), 500)
		}
		r.wantArrivals(7)
	})
}

// What is remembered is bounded: the oldest failure goes first.
func TestOldestFailureIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := outerRig(t, endless500)
		r.transport.Retry = &backoff.Policy{Delay: backoff.Constant(0), BudgetPerSecond: 1e6}
		const bound = 256
		for i := range bound + 1 {
			r.do(outerCall(t, strconv.Itoa(i)))
		}
		r.wantArrivals(4 * (bound + 1))
		r.do(outerCall(t, "1"))
		r.wantArrivals(4 * (bound + 1))
		r.do(outerCall(t, "0"))
		r.wantArrivals(4 * (bound + 2))
	})
}

// A kept answer does not keep its caller: Close of a body that stands still
// takes a second at most.
func TestCloseOfAKeptBodyIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := &weir.Transport{Retry: &backoff.Policy{Attempts: 2, Delay: backoff.Constant(0)}, Base: baseFunc(func(*http.Request) (*http.Response, error) {
			r, _ := io.Pipe()
			return &http.Response{StatusCode: 500, Header: http.Header{}, ContentLength: -1, Body: struct {
				io.Reader
				io.Closer
			}{io.MultiReader(bytes.NewReader([]byte("half")), r), r}}, nil
		})}
		defer tr.Close()
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://vendor.test/", nil)
		resp, err := tr.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		resp.Body.Close()
		if took := time.Since(began); took != time.Second {
			t.Errorf("Close took %v, want 1s", took)
		}
	})
}

// resty makes a new request for each try: its tries have the goroutine and all
// that is sent in common.
func TestRestyIsCountedOnByGoroutineAndContent(t *testing.T) {
	request := func(t *testing.T, agent, body string) *http.Request {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodPut, callURL, strings.NewReader(body))
		req.Header.Set("User-Agent", agent)
		return req
	}
	const resty = "go-resty/2.17.2 (https://github.com/go-resty/resty)"
	for _, tt := range []struct {
		name, agent, body string
		apart             bool // on another goroutine
		arrivals          int
	}{
		{"the same", resty, "body", false, 4},
		{"another goroutine", resty, "body", true, 8},
		{"another body", resty, "ydob", false, 8},
		{"another client", "go-http", "body", false, 8},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := outerRig(t, endless500)
			r.want("first", r.do(request(t, resty, "body")), 500)
			next, done := request(t, tt.agent, tt.body), make(chan answer, 1)
			if tt.apart {
				go func() { done <- r.do(next) }()
			} else {
				done <- r.do(next)
			}
			r.want(tt.name, <-done, 500)
			if got := len(r.vendor.Arrivals()); got != tt.arrivals {
				t.Errorf("%s: arrivals = %d, want %d", tt.name, got, tt.arrivals)
			}
		})
	}
}
