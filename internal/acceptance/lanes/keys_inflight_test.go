package lanes_test

import (
	"context"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/acceptance/harness"
	"github.com/weirgo/weir/internal/testserver"
	"github.com/weirgo/weir/throttle"
)

// A sleeper is a vendor whose calls take a random time.
type sleeper struct{ shortest, longest time.Duration }

func (s sleeper) RoundTrip(req *http.Request) (*http.Response, error) {
	time.Sleep(s.shortest + rand.N(s.longest-s.shortest))
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: req}, nil
}

// A crowd are workers that call again and again with the same keys.
type crowd struct {
	served  atomic.Int64
	longest atomic.Int64 // wait and call, in nanoseconds
}

// call makes calls until the context ends.
func (c *crowd) call(ctx context.Context, t http.RoundTripper, keys string) {
	for ctx.Err() == nil {
		req, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://vendor.example/", nil)
		req.Header.Set("Keys", keys)
		began := time.Now()
		resp, err := t.RoundTrip(req)
		if took := int64(time.Since(began)); took > c.longest.Load() {
			c.longest.Store(took) // close enough for this test
		}
		if err != nil { // the time is up
			return
		}
		_ = resp.Body.Close()
		c.served.Add(1)
	}
}

// crowds runs six workers in each of two lanes that bound their calls in flight, and one worker
// that needs both, for a while.
func crowds(t *weir.Transport, d time.Duration) (left, right, both *crowd) {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	left, right, both = new(crowd), new(crowd), new(crowd)
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() { left.call(ctx, t, "left") })
		wg.Go(func() { right.call(ctx, t, "right") })
	}
	wg.Go(func() { both.call(ctx, t, "left right") })
	wg.Wait()
	return left, right, both
}

// A call that needs two lanes, each full of others' calls in flight, gets its turn. Its fair share
// is that of one worker of seven.
func TestCallOfTwoFullLanesHasItsTurn(t *testing.T) {
	for _, most := range []int{1, 2, 4, 40} {
		synctest.Test(t, func(t *testing.T) {
			tr := &weir.Transport{Base: sleeper{50 * time.Millisecond, 150 * time.Millisecond}, Keys: fromHeader, InFlight: weir.InFlight{Max: most}}
			defer func() { _ = tr.Close() }()
			left, right, both := crowds(tr, time.Minute)
			all, full := left.served.Load()+right.served.Load()+2*both.served.Load(), int64(2*600*min(most, 6))
			if fair := full / 2 / 7; both.served.Load() < fair/2 {
				t.Errorf("at most %d: %d calls of both lanes, want half of the fair %d", most, both.served.Load(), fair)
			}
			if longest := time.Duration(both.longest.Load()); longest > 5*time.Second {
				t.Errorf("at most %d: a call of both lanes took %v, want 5 s at most", most, longest)
			}
			if all < full*9/10 {
				t.Errorf("at most %d: %d calls, want nine tenths of %d", most, all, full)
			}
		})
	}
}

// The same for a call that needs a lane full of calls in flight and a lane with a busy rate.
func TestCallOfAFullLaneAndABusyRateHasItsTurn(t *testing.T) {
	for _, rate := range []int{5, 10, 100} {
		synctest.Test(t, func(t *testing.T) {
			tr := &weir.Transport{
				Base: sleeper{50 * time.Millisecond, 150 * time.Millisecond}, Keys: fromHeader, InFlight: weir.InFlight{Max: 2},
				LimitsFor: limitsOf(map[string]throttle.Limit{"right": throttle.LeakyBucket(rate, time.Second)}),
			}
			defer func() { _ = tr.Close() }()
			_, _, both := crowds(tr, time.Minute)
			if fair := int64(60 * min(rate, 20) / 7); both.served.Load() < fair/2 {
				t.Errorf("%d/s: %d calls of both lanes, want half of the fair %d", rate, both.served.Load(), fair)
			}
		})
	}
}

// The same over sockets.
func TestCallOfTwoFullLanesHasItsTurnOverSockets(t *testing.T) {
	r := harness.SocketRig(t, &testserver.Vendor{Service: 20 * time.Millisecond}, &weir.Transport{Keys: fromHeader, InFlight: weir.InFlight{Max: 2}})
	left, right, both := crowds(r.Transport, 3*time.Second)
	if n := both.served.Load(); n < 5 {
		t.Errorf("%d calls of both lanes in 3 s beside %d and %d, want 5", n, left.served.Load(), right.served.Load())
	}
}
