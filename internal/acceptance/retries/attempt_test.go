package retries_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/backoff"
	"github.com/weirgo/weir/internal/acceptance/harness"
	"github.com/weirgo/weir/internal/testserver"
)

// Callers continue with the context of the request in a response, as with net/http: it is theirs,
// and not the attempt's.
func TestResponseShowsTheCallersContext(t *testing.T) {
	for name, size := range map[string]int{"empty": 0, "with a body": 100} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := harness.PipeRig(t, &testserver.Vendor{Faults: []testserver.Fault{{Do: testserver.Answer, Status: 200, Size: size}}}, &weir.Transport{})
				type key struct{}
				ctx, cancel := context.WithTimeoutCause(context.WithValue(t.Context(), key{}, "mine"), time.Hour, errors.New("why"))
				defer cancel()
				resp, err := r.Transport.RoundTrip(r.Request(ctx, "a"))
				if err != nil {
					t.Fatal(err)
				}
				shown := resp.Request.Context()
				derived, stop := context.WithCancel(shown)
				defer stop()
				io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
				synctest.Wait()
				for what, ctx := range map[string]context.Context{"context": shown, "derived context": derived} {
					deadline, ok := ctx.Deadline()
					if ctx.Err() != nil || context.Cause(ctx) != nil || ctx.Value(key{}) != "mine" || !ok || time.Until(deadline) != time.Hour {
						t.Errorf("%s = %v, %v, %v, %v, want the caller's", what, ctx.Err(), context.Cause(ctx), ctx.Value(key{}), time.Until(deadline))
					}
				}
				if err := weir.Settle(resp, "", 1); err == nil {
					t.Error("Settle of a lane without limits = nil, want an error")
				}
				again, err := r.Transport.RoundTrip(r.Request(shown, "b"))
				if err != nil {
					t.Fatalf("RoundTrip with that context = %v", err)
				}
				again.Body.Close()
				time.Sleep(time.Hour + 1)
				if shown.Err() == nil || context.Cause(shown).Error() != "why" {
					t.Errorf("context after the deadline = %v, %v, want the caller's end", shown.Err(), context.Cause(shown))
				}
			})
		})
	}
}

// A base may read its context late, or never. The first read after the end of the attempt finds the
// end, and its cause.
func TestContextOfAnAttemptEndsUnwatched(t *testing.T) {
	for name, test := range map[string]struct {
		takes time.Duration
		retry *backoff.Policy
		want  string
	}{
		"its body was closed": {0, nil, context.Canceled.Error()},
		"it took too long":    {time.Second, &backoff.Policy{Attempts: 1, AttemptTimeout: time.Millisecond}, "no response within the attempt's timeout"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var sent context.Context
				transport := &weir.Transport{Retry: test.retry, Base: harness.BaseFunc(func(req *http.Request) (*http.Response, error) {
					sent = req.Context()
					time.Sleep(test.takes)
					return harness.Stub{}.RoundTrip(req)
				})}
				defer transport.Close()
				req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://a.test", nil)
				if resp, err := transport.RoundTrip(req); err == nil {
					resp.Body.Close()
				}
				derived, stop := context.WithCancel(sent)
				defer stop()
				for what, ctx := range map[string]context.Context{"context": sent, "derived context": derived} {
					select {
					case <-ctx.Done():
					default:
						t.Errorf("%s is alive, want it ended", what)
					}
					if err, cause := ctx.Err(), context.Cause(ctx); !errors.Is(err, context.Canceled) || cause.Error() != test.want {
						t.Errorf("%s ended with %v, %v, want canceled, %s", what, err, cause, test.want)
					}
				}
			})
		})
	}
}

// A request sent with that context is no send of the attempt that it came from.
func TestShownContextCountsNoSend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t, &testserver.Vendor{}, &weir.Transport{Limits: harness.Every(time.Hour)})
		resp, err := r.Transport.RoundTrip(r.Request(t.Context(), "a"))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		before := r.Transport.Snapshot()[0].Limits[0].Next
		plain := &http.Client{Transport: r.Server.Transport()}
		for range 3 {
			resp, err := plain.Do(r.Request(resp.Request.Context(), "b"))
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
		}
		plain.CloseIdleConnections()
		if after := r.Transport.Snapshot()[0].Limits[0].Next; after != before {
			t.Errorf("next permit in %v, want %v: nothing was sent through the lane", after, before)
		}
	})
}

// A chain of calls, each with the context from the previous response, does not grow.
func TestChainOfShownContextsKeepsNothing(t *testing.T) {
	transport := &weir.Transport{Base: harness.Stub{}}
	defer transport.Close()
	chain := func(ctx context.Context, n int) context.Context {
		for range n {
			req, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://a.test", nil)
			resp, err := transport.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			ctx = resp.Request.Context()
		}
		return ctx
	}
	held := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	ctx := chain(t.Context(), 1000)
	before := held()
	ctx = chain(ctx, 10_000)
	if after := held(); after > before+1<<20 {
		t.Errorf("%d bytes held after 10,000 more calls, want 0", after-before)
	}
	runtime.KeepAlive(ctx)
}

// Our policy over our transport retries an empty 429.
func TestRetryableHTTPOverTransport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t, &testserver.Vendor{Faults: []testserver.Fault{{Do: testserver.Answer, Status: 429}}}, &weir.Transport{Retry: backoff.None})
		check, _ := new(backoff.Policy).RetryableHTTP()
		resp, err := r.Client.Do(r.Request(t.Context(), "a"))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if retry, err := check(t.Context(), resp, nil); !retry || err != nil {
			t.Errorf("CheckRetry of an empty 429 = %v, %v, want true", retry, err)
		}
	})
}
