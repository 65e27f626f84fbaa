package retries_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/acceptance/harness"
	"github.com/weirgo/weir/internal/testserver"
)

// Requests are signed after the wait, for every attempt.
func TestPrepareIsCalledAfterTheWaitOfEveryAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		r := harness.PipeRig(t,
			&testserver.Vendor{
				IDHeader: "X-Signed-At",
				Faults: []testserver.Fault{
					{First: 2, Last: 2, Do: testserver.Answer, Header: harness.Hints("3")},
					{First: 3, Last: 3, Do: testserver.Answer, Status: 500},
				},
			},
			&weir.Transport{
				Limits: harness.Every(time.Second), Retry: harness.After(5 * time.Second),
				Prepare: func(req *http.Request) error {
					req.Header.Set("X-Signed-At", time.Since(start).String())
					return nil
				},
			})
		r.Spend()
		r.Want("GET", r.Get(t.Context(), "a"), 200)
		arrivals := r.Vendor.Arrivals()
		want := []time.Duration{0, time.Second, 4 * time.Second, 9 * time.Second}
		harness.WantEqual(t, "arrivals", harness.Instants(arrivals), want)
		for _, a := range arrivals {
			if a.ID != a.At.String() {
				t.Errorf("signed at %s, arrived at %v, want the same", a.ID, a.At)
			}
		}
	})
}

func TestPrepareErrorEndsRequestAndReturnsPermit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failure := errors.New("no key")
		r := harness.PipeRig(t, &testserver.Vendor{}, &weir.Transport{Limits: harness.Every(time.Hour)})
		calls := 0
		r.Transport.Prepare = func(*http.Request) error {
			if calls++; calls == 1 {
				return failure
			}
			return nil
		}
		got := r.Get(t.Context(), "a")
		var ours *weir.Error
		if !errors.Is(got.Err, failure) || !errors.As(got.Err, &ours) || ours.Attempts != 0 {
			t.Errorf("GET = %d, %v, want the error of Prepare after no attempt", got.Status, got.Err)
		}
		next := r.Get(t.Context(), "b")
		r.Want("next GET", next, 200)
		if next.At != 0 {
			t.Errorf("next GET answered at %v, want at once", next.At)
		}
	})
}

// Nothing was sent, so no call waits for its answer.
func TestPrepareErrorOfProbeLetsNextGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failure := errors.New("no key")
		r := harness.PipeRig(t, &testserver.Vendor{Faults: []testserver.Fault{{Last: 1, Do: testserver.Answer, Header: harness.Hints("600")}}}, new(weir.Transport))
		calls := 0
		r.Transport.Prepare = func(*http.Request) error {
			if calls++; calls == 2 {
				return failure
			}
			return nil
		}
		r.Want("GET", r.Get(t.Context(), "a"), 429)
		time.Sleep(600 * time.Second)
		if got := r.Get(t.Context(), "probe"); !errors.Is(got.Err, failure) {
			t.Errorf("probe = %d, %v, want the error of Prepare", got.Status, got.Err)
		}
		got := r.Get(t.Context(), "next")
		r.Want("GET after the probe", got, 200)
		if got.At != 600*time.Second {
			t.Errorf("GET after the probe answered at %v, want at once, 10m0s", got.At)
		}
	})
}

// MaxWait bounds the waits in line, before Prepare and after it together.
func TestTimeOfPrepareIsNoWait(t *testing.T) {
	for _, tt := range []struct {
		longest time.Duration
		want    int
	}{{1900 * time.Millisecond, 200}, {1800 * time.Millisecond, 0}} {
		synctest.Test(t, func(t *testing.T) {
			var called atomic.Bool
			r := harness.PipeRig(t, &testserver.Vendor{}, &weir.Transport{Limits: harness.Every(time.Second), Line: weir.Line{MaxWait: tt.longest}})
			r.Spend()
			r.Transport.Prepare = func(*http.Request) error {
				if !called.Swap(true) {
					time.Sleep(6 * time.Second)
				}
				return nil
			}
			first := r.Start("slow") // its first wait is one of a second
			time.Sleep(6900 * time.Millisecond)
			r.Start("other") // takes the permit, which then has 0.9 s left
			if got := <-first; got.Status != tt.want {
				t.Errorf("MaxWait %v: GET = %d, %v, want %d", tt.longest, got.Status, got.Err, tt.want)
			}
		})
	}
}

// A panic in Prepare leaves as little behind as one in the base.
func TestPreparePanicLeavesLaneUsable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t, &testserver.Vendor{}, &weir.Transport{})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var prepared context.Context
		r.Transport.Prepare = func(req *http.Request) error {
			prepared = req.Context()
			panic("no key")
		}
		func() {
			defer func() {
				if got := recover(); got != "no key" {
					t.Errorf("recover() = %v, want no key", got)
				}
			}()
			r.Get(ctx, "a")
		}()
		if prepared.Err() == nil {
			t.Error("the attempt's context lives on after the panic")
		}
		if got := r.Transport.Snapshot()[0].Requests; got != 0 {
			t.Errorf("users = %d, want 0", got)
		}
	})
}

// An error that contains the URL would show its query.
func TestPrepareErrorLosesURL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cause := errors.New("token endpoint is down")
		r := harness.PipeRig(t, &testserver.Vendor{}, &weir.Transport{Prepare: func(req *http.Request) error {
			return &url.Error{Op: "Post", URL: "https://login.example/token?secret=canary", Err: cause}
		}})
		got := r.Get(t.Context(), "a")
		if !errors.Is(got.Err, cause) || strings.Contains(got.Err.Error(), "canary") {
			t.Errorf("GET = %v, want the cause without the URL", got.Err)
		}
	})
}

// A token that Prepare fetches through a client of its own may fail in a client
// behind that one.
func TestErrorLosesEveryURL(t *testing.T) {
	inner := &url.Error{Op: "Post", URL: "http://token.test/?secret=2", Err: io.ErrUnexpectedEOF}
	tr := &weir.Transport{Prepare: func(*http.Request) error {
		return &url.Error{Op: "Get", URL: "http://token.test/?secret=1", Err: fmt.Errorf("token: %w", inner)}
	}}
	defer tr.Close()
	_, err := tr.RoundTrip(httptest.NewRequest(http.MethodGet, "http://vendor.test/", nil))
	if !errors.Is(err, io.ErrUnexpectedEOF) || strings.Contains(err.Error(), "secret") {
		t.Errorf("RoundTrip = %v, want the cause without a URL", err)
	}
}

// A goroutine of Prepare may look at the context of the request while the call of several lanes is
// sent, or fails.
func TestContextOfPrepareIsReadWhileCallIsSent(t *testing.T) {
	var wg sync.WaitGroup
	failed := errors.New("no key")
	for _, failure := range []error{nil, failed} {
		tr := &weir.Transport{
			Keys:     func(*http.Request) []string { return []string{"customer", "account"} },
			InFlight: weir.InFlight{Max: 5},
			Base: harness.BaseFunc(func(req *http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: 200, Header: http.Header{}, Body: http.NoBody, Request: req}, nil
			}),
			Prepare: func(req *http.Request) error {
				wg.Go(func() { req.Context().Done() })
				return failure
			},
		}
		for range 1000 {
			resp, err := tr.RoundTrip(httptest.NewRequest("GET", "http://vendor.example/", http.NoBody))
			if err == nil {
				resp.Body.Close()
			} else if failure == nil || !errors.Is(err, failure) {
				t.Fatal(err)
			}
		}
		wg.Wait()
		if err := tr.Close(); err != nil {
			t.Error(err)
		}
	}
}
