package retries_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/acceptance/harness"
	"github.com/weirgo/weir/internal/testserver"
	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// wantWithin fails the test if in some time T more requests arrived than the burst, the limit's
// permits in T and the tolerance, and slack.
func wantWithin(t *testing.T, at []time.Duration, limit throttle.Limit, burst, slack int) {
	t.Helper()
	tolerance, interval := throttle.Tolerance(limit), limit.Per/time.Duration(limit.Permits)
	for i := range at {
		for j := i + burst; j < len(at); j++ {
			took := at[j] - at[i]
			if n, most := j-i+1, burst+slack+int((took+tolerance)/interval); n > most {
				t.Fatalf("%d arrive within %v from %v on, want %d at most", n, took, at[i], most)
			}
		}
	}
}

// A token is fetched for two seconds, and then all callers that waited for it hold old permits.
func TestSlowPrepareKeepsTheLimit(t *testing.T) {
	tests := map[string]struct {
		limit throttle.Limit
		burst int
		last  time.Duration // latest arrival
	}{
		"token bucket": {throttle.TokenBucket(100, time.Second, 20), 20, 5 * time.Second},
		"leaky bucket": {throttle.LeakyBucket(100, time.Second), 1, 5 * time.Second},
		"sliding log":  {throttle.SlidingLog(20, 200*time.Millisecond), 20, 5 * time.Second},
		"fixed window": {throttle.FixedWindow(20, 200*time.Millisecond), 20, 5 * time.Second},
		"slow bucket":  {throttle.TokenBucket(1, 5*time.Second, 1), 1, 1500 * time.Second},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				token, prepared := make(chan struct{}), new(atomic.Int32)
				r := harness.PipeRig(t, &testserver.Vendor{}, &weir.Transport{
					Limits: []throttle.Limit{tt.limit}, InFlight: weir.InFlight{Max: 1000},
					Prepare: func(*http.Request) error { prepared.Add(1); <-token; return nil },
				})
				line := r.Callers(t.Context(), 300)
				time.Sleep(2 * time.Second)
				close(token)
				for _, got := range line.Wait() {
					r.Want("GET", got, 200)
				}
				at := harness.Instants(r.Vendor.Arrivals())
				wantWithin(t, at, tt.limit, tt.burst, 0)
				if at[299] > tt.last {
					t.Errorf("the last arrives at %v, want %v at the latest", at[299], tt.last)
				}
				if prepared.Load() != 300 || r.Flying() != 0 {
					t.Errorf("Prepare was called %d times and %d are in flight, want 300 and 0", prepared.Load(), r.Flying())
				}
			})
		})
	}
}

// A Prepare that is always slow costs each call its own time, and others at most a sixth of the
// rate.
func TestPrepareThatIsAlwaysSlowKeepsTheRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit := throttle.TokenBucket(100, time.Second, 5)
		r := harness.PipeRig(t, &testserver.Vendor{}, &weir.Transport{
			Limits:  []throttle.Limit{limit},
			Prepare: func(*http.Request) error { time.Sleep(50 * time.Millisecond); return nil },
		})
		for _, got := range r.Callers(t.Context(), 1000).Wait() {
			r.Want("GET", got, 200)
		}
		at := harness.Instants(r.Vendor.Arrivals())
		wantWithin(t, at, limit, 5, 0)
		if at[999] > 12*time.Second {
			t.Errorf("the last of 1,000 arrives at %v, want 12s at most", at[999])
		}
	})
}

// A pause that begins during Prepare delays the call; if its deadline is sooner, the call ends.
func TestPauseDuringPrepareHolds(t *testing.T) {
	for _, deadline := range []time.Duration{time.Minute, 3 * time.Second} {
		t.Run(fmt.Sprint(deadline), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := harness.PipeRig(t, &testserver.Vendor{Faults: []testserver.Fault{{Last: 1, Do: testserver.Answer, Header: harness.Hints("5")}}}, &weir.Transport{InFlight: weir.InFlight{Max: 2}})
				r.Transport.Prepare = func(req *http.Request) error {
					if req.Header.Get(testserver.DefaultIDHeader) == "slow" {
						time.Sleep(2 * time.Second)
					}
					return nil
				}
				ctx, cancel := context.WithTimeout(t.Context(), deadline)
				defer cancel()
				slow := make(chan harness.Answer)
				go func() { slow <- r.Get(ctx, "slow") }()
				synctest.Wait()
				r.Want("refused GET", r.Get(t.Context(), "a"), 200)
				got := <-slow
				switch {
				case deadline < 5*time.Second && !errors.Is(got.Err, shaping.ErrDeadline):
					t.Errorf("slow GET = %d, %v, want ErrDeadline", got.Status, got.Err)
				case deadline > 5*time.Second && (got.Status != 200 || got.At < 5*time.Second):
					t.Errorf("slow GET = %d, %v at %v, want 200 after the pause", got.Status, got.Err, got.At)
				}
				if r.Flying() != 0 {
					t.Errorf("%d in flight at the end, want 0", r.Flying())
				}
			})
		})
	}
}

// A bubble's clock stands still between two readings, so the rule is also tested over real sockets.
func TestSlowPrepareKeepsTheLimitOverSockets(t *testing.T) {
	token, limit := make(chan struct{}), throttle.TokenBucket(400, time.Second, 10)
	time.AfterFunc(500*time.Millisecond, func() { close(token) })
	r := harness.SocketRig(t, &testserver.Vendor{}, &weir.Transport{
		Limits:  []throttle.Limit{limit},
		Prepare: func(*http.Request) error { <-token; return nil },
	})
	line := &harness.Callers{Answers: make([]harness.Answer, 300)}
	for i := range line.Answers {
		line.Wg.Go(func() { line.Answers[i] = r.Get(t.Context(), "") })
	}
	for _, got := range line.Wait() {
		r.Want("GET", got, 200)
	}
	at := harness.Instants(r.Vendor.Arrivals())
	wantWithin(t, at, limit, 10, 60) // 200 departed at once
	if last := at[299]; last > 20*time.Second {
		t.Errorf("the last of 300 arrives at %v, want 20s at most on any machine", last)
	}
}

// Of a short line whose oldest caller is rejected, calls depart although Prepare takes longer than
// a permit is valid. The one that comes back is the oldest: were it rejected for the next newcomer,
// no call would ever depart.
func TestSlowPrepareDepartsFromALineThatShedsTheOldest(t *testing.T) {
	for name, vendor := range map[string]*testserver.Vendor{
		"served":  {},
		"refused": {Faults: []testserver.Fault{{First: 3, Last: 3, Do: testserver.Answer}}},
	} {
		for _, waiting := range []int{1, 3} {
			t.Run(fmt.Sprint(name, waiting), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := harness.PipeRig(t, vendor, shedder(waiting))
					flood(r, time.Minute)
					if n := len(r.Vendor.Arrivals()); n < 200 {
						t.Errorf("%d calls arrive in a minute, want 200 of 600", n)
					}
				})
			})
		}
	}
}

func TestSlowPrepareDepartsFromALineThatShedsTheOldestOverSockets(t *testing.T) {
	r := harness.SocketRig(t, &testserver.Vendor{}, shedder(1))
	flood(r, 5*time.Second)
	if n := len(r.Vendor.Arrivals()); n < 10 {
		t.Errorf("%d calls arrive in 5 s, want 10 of 50", n)
	}
}

// shedder is a transport that sheds the oldest of so many, and prepares each call for longer than
// its permit is valid.
func shedder(waiting int) *weir.Transport {
	return &weir.Transport{
		Limits:  []throttle.Limit{throttle.LeakyBucket(10, time.Second)},
		Line:    weir.Line{MaxWaiting: waiting, Overflow: shaping.OverflowShedOldest},
		Prepare: func(*http.Request) error { time.Sleep(130 * time.Millisecond); return nil },
	}
}

// flood sends a call every 20 ms, for so long.
func flood(r *harness.Rig, long time.Duration) {
	var calls sync.WaitGroup
	for end := time.Now().Add(long); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		calls.Go(func() { r.Get(r.Context(), "") })
	}
	calls.Wait()
}
