package lanes_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/headers"
	"github.com/weirgo/weir/internal/acceptance/harness"
	"github.com/weirgo/weir/internal/testserver"
	"github.com/weirgo/weir/throttle"
)

func TestCloseSendsWaitersAwayAndLeavesFlightsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t, &testserver.Vendor{Service: 10 * time.Second}, &weir.Transport{Limits: harness.Every(4 * time.Second)})
		callers := r.Callers(t.Context(), 1000)
		time.Sleep(time.Second)
		if err := r.Transport.Close(); err != nil {
			t.Errorf("Close() = %v, want nil", err)
		}
		if err := r.Transport.Close(); err != nil {
			t.Errorf("second Close() = %v, want nil", err)
		}
		answers := callers.Wait()
		r.Want("GET in flight", answers[0], 200)
		for _, got := range answers[1:] {
			harness.WantClosed(t, "waiting GET", got, time.Second)
		}
		harness.WantClosed(t, "later GET", r.Get(t.Context(), "later"), 10*time.Second)
		other := r.Request(t.Context(), "other")
		other.URL.Host = "other.test"
		harness.WantClosed(t, "GET of a new lane", r.Do(other), 10*time.Second)
	})
}

// Calls in flight when the transport is closed are not retried, and their responses are returned.
func TestCloseReturnsFailedResponseInHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t, &testserver.Vendor{Faults: []testserver.Fault{{Do: testserver.Answer, Status: 500, Delay: 2 * time.Second}}}, &weir.Transport{Retry: harness.After(0)})
		got := r.Start("a")
		r.Transport.Close()
		r.Want("GET in flight", <-got, 500)
	})
}

func TestCloseEndsDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t, &testserver.Vendor{Faults: []testserver.Fault{{Do: testserver.Answer, Status: 500}}}, &weir.Transport{Retry: harness.After(time.Hour)})
		got := r.Start("a")
		time.Sleep(time.Second)
		r.Transport.Close()
		a := <-got
		if r.Want("GET between attempts", a, 500); a.At != time.Second {
			t.Errorf("answered at %v, want 1s", a.At)
		}
	})
}

func TestCloseOfUnusedTransport(t *testing.T) {
	transport := new(weir.Transport)
	if err := transport.Close(); err != nil {
		t.Errorf("Close() = %v, want nil", err)
	}
}

// A closingLimiter counts its Close calls.
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
		r := harness.PipeRig(t, &testserver.Vendor{}, &weir.Transport{
			Store: harness.StoreFunc(func(key string, limits ...throttle.Limit) (throttle.Limiter, error) {
				l, err := throttle.Local{}.Limiter(key, limits...)
				return closingLimiter{l, &closed, failure}, err
			}),
		})
		r.Spend()
		other := r.Request(t.Context(), "other")
		other.URL.Host = "other.test"
		r.Want("GET", r.Do(other), 200)
		if err := r.Transport.Close(); !errors.Is(err, failure) || closed != 2 {
			t.Errorf("Close() = %v after %d limiters, want their error after 2", err, closed)
		}
		r.Transport.Close()
		if closed != 2 {
			t.Errorf("closes after a second Close() = %d, want 2", closed)
		}
	})
}

// Calls that wait only for a route are rejected as well.
func TestCloseSendsWaitersOfRoutesAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t, &testserver.Vendor{Faults: []testserver.Fault{harness.Refuse(1, 1, "60")}}, &weir.Transport{Dialect: harness.ScopedBy(headers.ScopeRoute)})
		got := r.Start("a")
		time.Sleep(time.Second)
		r.Transport.Close()
		a := <-got
		if r.Want("GET that waits for its route", a, 429); a.At != time.Second {
			t.Errorf("answered at %v, want 1s", a.At)
		}
	})
}

func TestShutdownLetsEverybodyGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t, &testserver.Vendor{Service: time.Second, Faults: []testserver.Fault{{Last: 1, Do: testserver.Answer, Status: 500}}},
			&weir.Transport{Limits: harness.Every(4 * time.Second), Retry: harness.After(10 * time.Second)})
		callers := r.Callers(t.Context(), 4)
		ended := make(chan error)
		go func() { ended <- r.Transport.Shutdown(t.Context()) }()
		time.Sleep(time.Millisecond)
		harness.WantClosed(t, "GET after Shutdown", r.Get(t.Context(), "later"), time.Millisecond)
		for _, got := range callers.Wait() {
			r.Want("GET in line or between attempts", got, 200)
		}
		// The last one is the first call again: at 16 s, for a second.
		if err := <-ended; err != nil || r.Now() > 17*time.Second+100*time.Millisecond {
			t.Errorf("Shutdown() = %v at %v, want nil within 100ms after 17s", err, r.Now())
		}
		if n := len(r.Vendor.Arrivals()); n != 5 {
			t.Errorf("%d arrivals, want 5", n)
		}
	})
}

func TestShutdownEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t, &testserver.Vendor{}, &weir.Transport{Limits: harness.Every(time.Hour)})
		callers := r.Callers(t.Context(), 3)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := r.Transport.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Shutdown() = %v, want DeadlineExceeded", err)
		}
		answers := callers.Wait()
		r.Want("the first GET", answers[0], 200)
		for _, got := range answers[1:] {
			harness.WantClosed(t, "GET in line", got, time.Second)
		}
	})
}

func TestShutdownWaitsForCountedBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t, &testserver.Vendor{}, &weir.Transport{InFlight: weir.InFlight{Max: 5}})
		resp := r.Open(t.Context(), "open")
		time.AfterFunc(time.Minute, func() { resp.Body.Close() })
		if err := r.Transport.Shutdown(t.Context()); err != nil || r.Now() < time.Minute {
			t.Errorf("Shutdown() = %v at %v, want nil once the body is closed, at 1m", err, r.Now())
		}
	})
}
