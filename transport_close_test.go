package weir_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/headers"
	"github.com/weirgo/weir/internal/testserver"
	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

func wantClosed(t *testing.T, what string, got answer, at time.Duration) {
	t.Helper()
	var ours *weir.Error
	if !errors.Is(got.err, shaping.ErrClosed) || !errors.As(got.err, &ours) || ours.Timeout() || got.at != at {
		t.Errorf("%s = %d, %v at %v, want ErrClosed at %v", what, got.status, got.err, got.at, at)
	}
}

func TestCloseSendsWaitersAwayAndLeavesFlightsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := pipeRig(t, &testserver.Vendor{Service: 10 * time.Second}, &weir.Transport{Limits: every(4 * time.Second)})
		callers := r.callers(t.Context(), 1000)
		time.Sleep(time.Second)
		if err := r.transport.Close(); err != nil {
			t.Errorf("Close() = %v, want nil", err)
		}
		if err := r.transport.Close(); err != nil {
			t.Errorf("second Close() = %v, want nil", err)
		}
		answers := callers.wait()
		r.want("GET in flight", answers[0], 200)
		for _, got := range answers[1:] {
			wantClosed(t, "waiting GET", got, time.Second)
		}
		wantClosed(t, "later GET", r.get(t.Context(), "later"), 10*time.Second)
		other := r.request(t.Context(), "other")
		other.URL.Host = "other.test"
		wantClosed(t, "GET of a new lane", r.do(other), 10*time.Second)
	})
}

// What is in flight when the transport is closed is not tried again, and its
// response not thrown away.
func TestCloseReturnsFailedResponseInHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := pipeRig(t, &testserver.Vendor{Faults: []testserver.Fault{{Do: testserver.Answer, Status: 500, Delay: 2 * time.Second}}}, &weir.Transport{Retry: after(0)})
		got := r.start("a")
		r.transport.Close()
		r.want("GET in flight", <-got, 500)
	})
}

func TestCloseEndsDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := pipeRig(t, &testserver.Vendor{Faults: []testserver.Fault{{Do: testserver.Answer, Status: 500}}}, &weir.Transport{Retry: after(time.Hour)})
		got := r.start("a")
		time.Sleep(time.Second)
		r.transport.Close()
		a := <-got
		if r.want("GET between attempts", a, 500); a.at != time.Second {
			t.Errorf("answered at %v, want 1s", a.at)
		}
	})
}

func TestCloseOfUnusedTransport(t *testing.T) {
	transport := new(weir.Transport)
	if err := transport.Close(); err != nil {
		t.Errorf("Close() = %v, want nil", err)
	}
}

// A closingLimiter counts how often it is closed.
type closingLimiter struct {
	throttle.Limiter
	closed *int
	err    error
}

func (l closingLimiter) Close() error {
	*l.closed++
	return l.err
}

func TestCloseClosesLimiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		closed, failure := 0, errors.New("limiter failed")
		r := pipeRig(t, &testserver.Vendor{}, &weir.Transport{
			Store: storeFunc(func(key string, limits ...throttle.Limit) (throttle.Limiter, error) {
				l, err := throttle.Local{}.Limiter(key, limits...)
				return closingLimiter{l, &closed, failure}, err
			}),
		})
		r.spend()
		other := r.request(t.Context(), "other")
		other.URL.Host = "other.test"
		r.want("GET", r.do(other), 200)
		if err := r.transport.Close(); !errors.Is(err, failure) || closed != 2 {
			t.Errorf("Close() = %v after %d limiters, want their error after 2", err, closed)
		}
		r.transport.Close()
		if closed != 2 {
			t.Errorf("closes after a second Close() = %d, want 2", closed)
		}
	})
}

// Those who wait for a route alone are sent away as well.
func TestCloseSendsWaitersOfRoutesAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := pipeRig(t, &testserver.Vendor{Faults: []testserver.Fault{refuse(1, 1, "60")}}, &weir.Transport{Dialect: scopedBy(headers.ScopeRoute)})
		got := r.start("a")
		time.Sleep(time.Second)
		r.transport.Close()
		a := <-got
		if r.want("GET that waits for its route", a, 429); a.at != time.Second {
			t.Errorf("answered at %v, want 1s", a.at)
		}
	})
}

func TestShutdownLetsEverybodyGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := pipeRig(t, &testserver.Vendor{Service: time.Second, Faults: []testserver.Fault{{Last: 1, Do: testserver.Answer, Status: 500}}},
			&weir.Transport{Limits: every(4 * time.Second), Retry: after(10 * time.Second)})
		callers := r.callers(t.Context(), 4)
		ended := make(chan error)
		go func() { ended <- r.transport.Shutdown(t.Context()) }()
		time.Sleep(time.Millisecond)
		wantClosed(t, "GET after Shutdown", r.get(t.Context(), "later"), time.Millisecond)
		for _, got := range callers.wait() {
			r.want("GET in line or between attempts", got, 200)
		}
		// The last one is the first, again: at 16 s, for a second.
		if err := <-ended; err != nil || r.now() > 17*time.Second+100*time.Millisecond {
			t.Errorf("Shutdown() = %v at %v, want nil within 100ms after 17s", err, r.now())
		}
		if n := len(r.vendor.Arrivals()); n != 5 {
			t.Errorf("%d arrivals, want 5", n)
		}
	})
}

func TestShutdownEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := pipeRig(t, &testserver.Vendor{}, &weir.Transport{Limits: every(time.Hour)})
		callers := r.callers(t.Context(), 3)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := r.transport.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Shutdown() = %v, want DeadlineExceeded", err)
		}
		answers := callers.wait()
		r.want("the first GET", answers[0], 200)
		for _, got := range answers[1:] {
			wantClosed(t, "GET in line", got, time.Second)
		}
	})
}

func TestShutdownWaitsForCountedBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := pipeRig(t, &testserver.Vendor{}, &weir.Transport{InFlight: weir.InFlight{Max: 5}})
		resp := r.open(t.Context(), "open")
		time.AfterFunc(time.Minute, func() { resp.Body.Close() })
		if err := r.transport.Shutdown(t.Context()); err != nil || r.now() < time.Minute {
			t.Errorf("Shutdown() = %v at %v, want nil once the body is closed, at 1m", err, r.now())
		}
	})
}
