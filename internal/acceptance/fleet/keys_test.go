package fleet_test

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/distributed"
	"github.com/weirgo/weir/internal/acceptance/harness"
	"github.com/weirgo/weir/internal/redispipe"
	"github.com/weirgo/weir/internal/testserver"
	"github.com/weirgo/weir/throttle"
)

// Calls in two lanes of equal limits depart at the rate after a flush, in which one process may get
// the next permits of one lane and another those of the other lane. If neither gave them back in
// time, no call would depart any more, as after 22 of 40 such flushes without it.
func TestFlushesLeaveTheRateOfTwoLanes(t *testing.T) {
	for again := range 6 {
		synctest.Test(t, func(t *testing.T) {
			redis := redispipe.Start(t, time.Millisecond)
			var served atomic.Int64
			var calling sync.WaitGroup
			end := time.Now().Add(25 * time.Second)
			ctx, cancel := context.WithDeadline(t.Context(), end.Add(time.Minute))
			defer cancel()
			for range 2 {
				store := distributed.New(redis.Client(t), "vendor")
				store.Logger = slog.New(slog.DiscardHandler)
				t.Cleanup(func() { _ = store.Close() })
				r := harness.PipeRig(t, &testserver.Vendor{Service: 60 * time.Millisecond}, &weir.Transport{
					Store: store, Limits: []throttle.Limit{throttle.TokenBucket(5, time.Second, 5)},
					Keys: func(*http.Request) []string { return []string{"a", "b"} },
				})
				for range 2 {
					calling.Go(func() {
						for time.Now().Before(end) {
							if r.Get(ctx, "a").Status == http.StatusOK {
								served.Add(1)
							}
						}
					})
				}
			}
			time.Sleep(5*time.Second + time.Duration(again)*7*time.Millisecond)
			redis.Forget()
			time.Sleep(6*time.Second + time.Duration(again)*13*time.Millisecond)
			redis.Forget()
			time.Sleep(5 * time.Second)
			before := served.Load()
			time.Sleep(4 * time.Second)
			if n := served.Load() - before; n < 16 {
				t.Errorf("%d calls were served in 4 s, want 16 of 20 at least", n)
			}
			calling.Wait()
		})
	}
}

// A twoLanes is replicas whose calls need the lanes a and b. One of them also has callers of a single
// lane.
type twoLanes struct {
	replicas, callers int
	a, b              throttle.Limit
	alone             string        // the lane that one caller needs alone; "": there is none
	trip              time.Duration // of Redis
	answers           time.Duration // after the departure
	turns             bool          // one call that needs both waits at a time; false: all do
}

// RoundTrip says that a call departs, and answers it.
func (f *twoLanes) RoundTrip(req *http.Request) (*http.Response, error) {
	if departed, ok := req.Context().Value(departs{}).(func()); ok {
		departed()
	}
	time.Sleep(f.answers)
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: req}, nil
}

type departs struct{}

// run returns how many calls that need both lanes depart in a minute.
func (f *twoLanes) run(t *testing.T) (departed int64) {
	redis := redispipe.Start(t, f.trip)
	ctx, cancel := context.WithCancel(t.Context())
	var served atomic.Int64
	var calling sync.WaitGroup
	turn := make(chan bool, 1)
	for replica := range f.replicas {
		store := distributed.New(redis.Client(t), "vendor")
		store.Logger = slog.New(slog.DiscardHandler)
		transport := &weir.Transport{
			Base: f, Store: store,
			Keys: func(r *http.Request) []string { return strings.Split(r.URL.RawQuery, "&") },
			LimitsFor: func(key string) []throttle.Limit {
				return map[string][]throttle.Limit{"a": {f.a}, "b": {f.b}}[key]
			},
		}
		t.Cleanup(func() { _, _ = transport.Close(), store.Close() })
		call := func(lanes string, departed func()) {
			req, _ := http.NewRequestWithContext(context.WithValue(ctx, departs{}, departed), http.MethodGet, "http://vendor.test?"+lanes, nil)
			if resp, err := transport.RoundTrip(req); err == nil {
				_ = resp.Body.Close()
			}
		}
		for caller := range f.callers {
			calling.Go(func() {
				for time.Sleep(time.Duration(replica*7+caller*3) * 97 * time.Millisecond); ctx.Err() == nil; {
					departed := func() { served.Add(1) }
					if f.turns {
						select {
						case turn <- true:
							departed = func() { served.Add(1); <-turn }
						case <-ctx.Done():
							return
						}
					}
					call("a&b", departed)
				}
			})
		}
		if replica == 0 && f.alone != "" {
			calling.Go(func() {
				for ctx.Err() == nil {
					call(f.alone, func() {})
				}
			})
		}
	}
	time.Sleep(20 * time.Second)
	before := served.Load()
	time.Sleep(time.Minute)
	departed = served.Load() - before
	cancel()
	calling.Wait()
	return departed
}

// Calls that need two slow lanes depart at their rate, although replicas share each lane.
//
// A permit that comes back to one lane is at hand. A replica that waited alone and believed otherwise
// gave back that of the other lane, too, and exchanged both for as long as they were valid: a sixth of
// the calls were left. And where several wait, each could hold the permit that another one needs, out
// of step with its own in the other lane, for ever.
func TestReplicasDepartAtTheRateOfTwoLanes(t *testing.T) {
	bucket := func(rate, burst int) throttle.Limit { return throttle.TokenBucket(rate, time.Second, burst) }
	leaky := func(rate int) throttle.Limit { return throttle.LeakyBucket(rate, time.Second) }
	for name, f := range map[string]twoLanes{
		"one waits, answers of 160 ms": {replicas: 3, callers: 2, a: bucket(5, 5), b: bucket(5, 5), trip: 700 * time.Microsecond, answers: 160 * time.Millisecond, turns: true},
		"one waits, answers of 250 ms": {replicas: 3, callers: 2, a: bucket(5, 5), b: bucket(5, 5), trip: 700 * time.Microsecond, answers: 250 * time.Millisecond, turns: true},
		"four replicas at 3/s":         {replicas: 4, callers: 5, a: leaky(3), b: leaky(3), trip: 1550 * time.Microsecond, answers: 141 * time.Millisecond},
		"a bucket at 2/s":              {replicas: 3, callers: 2, a: bucket(2, 1), b: bucket(2, 5), trip: 1569 * time.Microsecond, answers: 100 * time.Millisecond},
		"one lane is faster":           {replicas: 4, callers: 6, a: leaky(3), b: bucket(2, 1), alone: "a", trip: 577 * time.Microsecond, answers: 192 * time.Millisecond},
		"others need one lane":         {replicas: 2, callers: 6, a: leaky(2), b: bucket(2, 1), alone: "b", trip: 1420 * time.Microsecond, answers: 47 * time.Millisecond},
		"single callers":               {replicas: 4, callers: 1, a: bucket(5, 5), b: leaky(5), alone: "a", trip: 1980 * time.Microsecond, answers: 227 * time.Millisecond},
		"one lane is much faster":      {replicas: 2, callers: 6, a: leaky(1), b: leaky(20), alone: "b", trip: 1229 * time.Microsecond, answers: 123 * time.Millisecond},
	} {
		want := min(f.a.PerSecond(), f.b.PerSecond())
		switch f.alone { // whose caller takes turns with the others
		case "a":
			want = min(f.a.PerSecond()/2, f.b.PerSecond())
		case "b":
			want = min(f.a.PerSecond(), f.b.PerSecond()/2)
		}
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if n := float64(f.run(t)) / 60; n < 0.75*want {
					t.Errorf("%.2f calls depart in a second, want %.2f", n, want)
				}
			})
		})
	}
}
