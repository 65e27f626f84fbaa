package retries_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/backoff"
	"github.com/weirgo/weir/internal/acceptance/harness"
	"github.com/weirgo/weir/internal/testserver"
)

// An outer client retries what the Transport has retried already. Real clients are in
// internal/sdktest; here are the rules.

const callURL = testserver.PipeURL + "/things"

// outerCall is a POST that an outer client marks as one call.
func outerCall(t *testing.T, key string) *http.Request {
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, callURL, strings.NewReader("body"))
	req.Header.Set("Idempotency-Key", key)
	return req
}

func outerRig(t *testing.T, faults ...testserver.Fault) *harness.Rig {
	return harness.PipeRig(t, &testserver.Vendor{Faults: faults}, &weir.Transport{Retry: harness.After(10 * time.Millisecond)})
}

var endless500 = testserver.Fault{Do: testserver.Answer, Status: 500}

// A flaky is a server that answers some requests with an error.
type flaky struct {
	*httptest.Server
	status  int
	fails   atomic.Pointer[func(*http.Request) bool]
	arrived atomic.Int32
}

// newFlaky starts a server that fails when fails reports so.
func newFlaky(t *testing.T, status int, fails func(*http.Request) bool) *flaky {
	f := &flaky{status: status}
	f.fails.Store(&fails)
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		f.arrived.Add(1)
		if (*f.fails.Load())(req) {
			w.WriteHeader(f.status)
		}
		io.WriteString(w, req.URL.RawQuery)
	}))
	t.Cleanup(f.Close)
	return f
}

// impatient is a Transport without delays between attempts.
func impatient(t *testing.T) *weir.Transport {
	tr := &weir.Transport{Retry: harness.After(0), Learn: weir.LearnOff, Base: &http.Transport{}}
	t.Cleanup(func() { tr.CloseIdleConnections(); tr.Close() })
	return tr
}

// status sends the request and returns the status of the answer; zero: an error.
func status(t *testing.T, client *http.Client, req *http.Request) int {
	resp, err := client.Do(req)
	if err != nil {
		t.Log(err)
		return 0
	}
	defer resp.Body.Close()
	if _, err := io.ReadAll(resp.Body); err != nil {
		t.Error(err)
	}
	return resp.StatusCode
}

func body(text string) func(*http.Request) {
	return func(req *http.Request) {
		req.GetBody = nil
		req.Method, req.Body, req.ContentLength = http.MethodPut, io.NopCloser(strings.NewReader(text)), int64(len(text))
	}
}

func field(name, value string) func(*http.Request) {
	return func(req *http.Request) { req.Header.Set(name, value) }
}

// Programs that work over net/http work over a Transport: each of their calls reaches the server,
// even with one request value or one key for all.
func TestEveryCallReachesTheServer(t *testing.T) {
	page := func(n string) func(*http.Request) {
		return func(req *http.Request) { req.URL.RawQuery = n }
	}
	method := func(m string) func(*http.Request) { return func(req *http.Request) { req.Method = m } }
	same := func(*http.Request) {}
	asks := func(name, value string) func(*http.Request) bool {
		return func(req *http.Request) bool { return req.Header.Get(name) == value }
	}
	reads := func(text string) func(*http.Request) bool {
		return func(req *http.Request) bool { b, _ := io.ReadAll(req.Body); return string(b) == text }
	}
	first := func(req *http.Request) bool { return req.URL.RawQuery == "1" }
	for _, tt := range []struct {
		name    string
		fails   func(*http.Request) bool
		changes [4]func(*http.Request) // the second call fails
	}{
		{"paging", first, [4]func(*http.Request){page("0"), page("1"), page("2"), page("3")}},
		{"a new body for each item", reads("one"), [4]func(*http.Request){body("nil"), body("one"), body("two"), body("six")}},
		{"a corrected body under one key", reads("bad"), [4]func(*http.Request){field("Idempotency-Key", "k"), body("bad"), body("fit"), body("fit")}},
		{"rotated keys", asks("Authorization", "b"), [4]func(*http.Request){field("Authorization", "a"), field("Authorization", "b"), field("Authorization", "c"), field("Authorization", "d")}},
		{"rotated keys of another field", asks("X-Key", "b"), [4]func(*http.Request){field("X-Key", "a"), field("X-Key", "b"), field("X-Key", "c"), field("X-Key", "d")}},
		{"Range", asks("Range", "bytes=1-1"), [4]func(*http.Request){same, field("Range", "bytes=1-1"), field("Range", "bytes=2-2"), field("Range", "bytes=3-3")}},
		{"HEAD, then GET", func(req *http.Request) bool { return req.Method == "HEAD" }, [4]func(*http.Request){same, method("HEAD"), method("GET"), method("GET")}},
		{"connected accounts under one key", asks("Stripe-Account", "b"), [4]func(*http.Request){field("Idempotency-Key", "payout"), field("Stripe-Account", "b"), field("Stripe-Account", "c"), field("Stripe-Account", "d")}},
	} {
		for _, failure := range []int{500, 429} {
			t.Run(fmt.Sprint(tt.name, " after ", failure), func(t *testing.T) {
				server, client := newFlaky(t, failure, tt.fails), &http.Client{Transport: impatient(t)}
				req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
				for i, want := range []int{200, failure, 200, 200} {
					tt.changes[i](req)
					before := server.arrived.Load()
					if got := status(t, client, req); got != want || server.arrived.Load() == before {
						t.Errorf("call %d = %d after %d requests, want %d", i, got, server.arrived.Load()-before, want)
					}
				}
			})
		}
	}
}

// The backup is called, although the request value is that of the first host.
func TestFailoverReachesTheBackup(t *testing.T) {
	always, never := func(*http.Request) bool { return true }, func(*http.Request) bool { return false }
	primary, backup := newFlaky(t, 500, always), newFlaky(t, 500, never)
	client := &http.Client{Transport: impatient(t)}
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, primary.URL, nil)
	for i, host := range []string{primary.URL, backup.URL, primary.URL, backup.URL} {
		req.URL.Host = strings.TrimPrefix(host, "http://")
		if got, want := status(t, client, req), 500-300*(i%2); got != want {
			t.Errorf("call %d = %d, want %d", i, got, want)
		}
	}
}

// A caller learns with its first call that the server is well again: a health check, a job that
// runs again under its key, a client of a proxy.
func TestCallAfterAnOutageSucceeds(t *testing.T) {
	down, up := func(*http.Request) bool { return true }, func(*http.Request) bool { return false }
	for name, change := range map[string]func(*http.Request){
		"one request value":  func(*http.Request) {},
		"resty":              field("User-Agent", "go-resty/2.17.2 (x)"),
		"an Idempotency-Key": func(req *http.Request) { req.Method = http.MethodPost; req.Header.Set("Idempotency-Key", "job-1") },
	} {
		for _, failure := range []int{429, 500, 503} {
			t.Run(fmt.Sprint(name, " after ", failure), func(t *testing.T) {
				server := newFlaky(t, failure, down)
				vendor, _ := url.Parse(server.URL)
				proxy := httptest.NewServer(&httputil.ReverseProxy{Transport: impatient(t), Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(vendor) }})
				defer proxy.Close()
				for _, ask := range []struct {
					url    string
					client *http.Client
				}{{server.URL, &http.Client{Transport: impatient(t)}}, {proxy.URL, http.DefaultClient}} {
					server.fails.Store(&down)
					req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, ask.url, nil)
					change(req)
					for range 3 {
						if got := status(t, ask.client, req); got != failure {
							t.Errorf("during the outage = %d, want %d", got, failure)
						}
					}
					server.fails.Store(&up)
					if got := status(t, ask.client, req); got != 200 {
						t.Errorf("after the outage = %d, want 200", got)
					}
				}
			})
		}
	}
}

// A policy without retries multiplies nothing, and an ended context is an error, whatever failed
// before.
func TestOuterRetriesWithoutOurs(t *testing.T) {
	server, client := newFlaky(t, 500, func(*http.Request) bool { return true }), &http.Client{Transport: impatient(t)}
	for _, tt := range []struct {
		policy         *backoff.Policy
		calls, arrived int32
	}{{backoff.None, 3, 3}, {nil, 1, 4}, {&backoff.Policy{Attempts: 1, MaxThrottled: -1}, 3, 3}, {nil, 1, 1}} {
		before := server.arrived.Load()
		for range tt.calls {
			req, _ := http.NewRequestWithContext(weir.WithRetry(t.Context(), tt.policy), http.MethodGet, server.URL, nil)
			if got := status(t, client, req); got != 500 {
				t.Errorf("GET = %d, want 500", got)
			}
		}
		if got := server.arrived.Load() - before; got != tt.arrived {
			t.Errorf("%d requests, want %d", got, tt.arrived)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	req, _ := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, nil)
	if resp, err := client.Do(req); !errors.Is(err, context.Canceled) {
		t.Errorf("GET after the end of its context = %v, %v, want its error", resp, err)
	}
}

// Ours is 4: each of their tries after the first is sent once.
func TestOuterRetriesAreSentOnce(t *testing.T) {
	get := func(t *testing.T) *http.Request {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, callURL, nil)
		return req
	}
	marks := map[string]func(*testing.T, int) *http.Request{
		"Idempotency-Key": func(t *testing.T, _ int) *http.Request { return outerCall(t, "k") },
		"Amz-Sdk-Invocation-Id": func(t *testing.T, try int) *http.Request {
			req := get(t)
			req.Header.Set("Amz-Sdk-Invocation-Id", "i")
			req.Header.Set("Authorization", "signature "+strconv.Itoa(try))
			return req
		},
		"Amz-Sdk-Request": func(t *testing.T, try int) *http.Request {
			req := get(t)
			req.Header.Set("Amz-Sdk-Request", fmt.Sprintf("attempt=%d; max=6", try))
			return req
		},
		"X-Stainless-Retry-Count": func(t *testing.T, try int) *http.Request {
			req := get(t)
			req.Header.Set("X-Stainless-Retry-Count", strconv.Itoa(try-1))
			return req
		},
		"nothing": func(t *testing.T, try int) *http.Request {
			req := get(t)
			req.Header.Set("Traceparent", strconv.Itoa(try))
			return req
		},
	}
	for name, mark := range marks {
		synctest.Test(t, func(t *testing.T) {
			r := outerRig(t, endless500)
			for try, wait := range []time.Duration{0, 1, 3, 7, 15, 29} { // within the waiting time
				time.Sleep(wait * time.Second)
				r.Want(name, r.Do(mark(t, try+1)), 500)
				r.WantArrivals(4 + try)
			}
		})
	}
}

// Whatever is between an outer client and the Transport, both together send ours + theirs - 1.
func TestOuterRetriesAreRecognisedThroughMiddleware(t *testing.T) {
	const theirs = 3
	for _, tt := range []struct {
		status int
		ours   int32
	}{{500, 4}, {429, 8}} {
		server := newFlaky(t, tt.status, func(req *http.Request) bool { return req.URL.Path != "/from" })
		hop := httptest.NewServer(http.RedirectHandler(server.URL, http.StatusTemporaryRedirect))
		defer hop.Close()
		for name, via := range map[string]struct {
			url  string
			wrap func(http.RoundTripper) http.RoundTripper
		}{
			"nothing":               {server.URL, func(rt http.RoundTripper) http.RoundTripper { return rt }},
			"a password in the URL": {strings.Replace(server.URL, "http://", "http://user:password@", 1), func(rt http.RoundTripper) http.RoundTripper { return rt }},
			"a redirect":            {hop.URL, func(rt http.RoundTripper) http.RoundTripper { return rt }},
			"clones with new fields": {server.URL, func(rt http.RoundTripper) http.RoundTripper {
				n := 0
				return harness.BaseFunc(func(req *http.Request) (*http.Response, error) {
					req, n = req.Clone(req.Context()), n+1
					req.Header.Set("Authorization", "Bearer token")
					req.Header.Set("Traceparent", strconv.Itoa(n))
					return rt.RoundTrip(req)
				})
			}},
		} {
			client := &http.Client{Transport: via.wrap(impatient(t))}
			server.arrived.Store(0)
			for range theirs {
				req, _ := http.NewRequestWithContext(t.Context(), http.MethodPut, via.url, strings.NewReader("body"))
				if got := status(t, client, req); got != tt.status {
					t.Errorf("%s: PUT = %d, want %d", name, got, tt.status)
				}
			}
			if got, want := server.arrived.Load(), tt.ours+theirs-1; got != want {
				t.Errorf("%s, %d: %d requests, want %d", name, tt.status, got, want)
			}
		}
	}
}

// A request that cannot be a client's next try has all attempts of its own.
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
		"another credential": other(field("Authorization", "b")),
		"another range":      other(field("Range", "bytes=0-1")),
		"another method":     other(func(req *http.Request) { req.Method = http.MethodPut }),
		"another URL":        other(func(req *http.Request) { req.URL.Path += "s" }),
		"another query":      other(func(req *http.Request) { req.URL.RawQuery = "page=2" }),
		"another length":     other(body("longer than that")),
		"a first try":        other(field("X-Stainless-Retry-Count", "0")),
		"much later": func(t *testing.T) *http.Request {
			time.Sleep(time.Second + 1)
			return outerCall(t, "k")
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := outerRig(t, endless500)
			r.Want("first", r.Do(outerCall(t, "k")), 500)
			time.Sleep(time.Second)
			r.Want("another", r.Do(outerCall(t, "remembered for longer")), 500)
			r.Want(name, r.Do(next(t)), 500)
			if got := len(r.Vendor.Arrivals()); got != 12 {
				t.Errorf("%s: arrivals = %d, want 12", name, got)
			}
		})
	}
}

// The number of calls sent once is the number of earlier failures, whoever makes them. An
// equal-looking call of another client loses its retries, and no others do.
func TestFailuresAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := outerRig(t, testserver.Fault{Last: 18, Do: testserver.Answer, Status: 500})
		r.Callers(t.Context(), 3).Wait()
		r.WantArrivals(3 * 4)
		r.Callers(t.Context(), 3).Wait() // all fail again, sent once
		r.WantArrivals(3*4 + 3)
		for range 3 { // the first three fail, and their failures are counted again
			r.Want("GET", r.Get(t.Context(), "a"), 500)
		}
		r.WantArrivals(18)
		for range 3 {
			r.Want("GET", r.Get(t.Context(), "a"), 200)
		}
		r.Want("GET with its retries again", r.Get(t.Context(), "a"), 200)
		r.WantArrivals(22)
	})
}

// After a success of the loop, a failure has all of its attempts.
func TestSuccessForgetsOuterRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := outerRig(t,
			testserver.Fault{Last: 6, Do: testserver.Answer, Status: 500},
			testserver.Fault{First: 8, Do: testserver.Answer, Status: 500})
		for _, status := range []int{500, 500, 500, 200, 500} {
			r.Want("POST", r.Do(outerCall(t, "k")), status)
		}
		r.WantArrivals(4 + 2 + 1 + 4)
	})
}

// A call ended by its deadline after several attempts has had its retries too.
func TestCallEndedByItsDeadlineCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := outerRig(t, endless500)
		r.Transport.Retry = harness.After(time.Second)
		r.Want("first", r.Do(harness.Within(1500*time.Millisecond)(r, outerCall(t, "k"))), 500)
		r.WantArrivals(2)
		r.Want("second", r.Do(outerCall(t, "k")), 500)
		r.WantArrivals(3)
	})
}

// A policy that sends once multiplies nothing: the outer client decides.
func TestOuterRetriesOverNoneAreAllSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := outerRig(t, endless500)
		r.Transport.Retry = backoff.None
		for range 7 {
			r.Want("POST", r.Do(outerCall(t, "k")), 500)
		}
		r.WantArrivals(7)
	})
}

// The memory is bounded: the oldest entry is dropped first.
func TestOldestFailureIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := outerRig(t, endless500)
		r.Transport.Retry = &backoff.Policy{Attempts: 2, Delay: backoff.Constant(0), BudgetPerSecond: 1e6}
		const bound = 1024
		for i := range bound + 1 {
			r.Do(outerCall(t, strconv.Itoa(i)))
			time.Sleep(time.Microsecond)
		}
		r.WantArrivals(2 * (bound + 1))
		r.Do(outerCall(t, "1"))
		r.WantArrivals(2*(bound+1) + 1)
		r.Do(outerCall(t, "0"))
		r.WantArrivals(2*(bound+2) + 1)
	})
}
