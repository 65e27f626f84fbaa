package fleet_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/backoff"
	"github.com/weirgo/weir/distributed"
	"github.com/weirgo/weir/internal/acceptance/harness"
	"github.com/weirgo/weir/internal/redispipe"
	"github.com/weirgo/weir/internal/testserver"
	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

func TestMaxInFlightHoldsTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.ObeyingRig(t, &testserver.Vendor{Limits: []testserver.Limit{testserver.Concurrency(3)}, Service: time.Second}, &weir.Transport{InFlight: weir.InFlight{Max: 3}})
		for _, got := range r.Callers(t.Context(), 10).Wait() {
			r.Want("GET", got, 200)
		}
		const s = time.Second
		harness.WantEqual(t, "arrivals", harness.Instants(r.Vendor.Arrivals()), []time.Duration{0, 0, 0, s, s, s, 2 * s, 2 * s, 2 * s, 3 * s})
		if n := r.Flying(); n != 0 {
			t.Errorf("%d in flight after all answers, want 0", n)
		}
	})
}

func TestRequestIsInFlightUntilItsBodyEnds(t *testing.T) {
	for name, end := range map[string]func(*http.Response) error{
		"closed": func(resp *http.Response) error { return resp.Body.Close() },
		"read":   func(resp *http.Response) error { _, err := io.ReadAll(resp.Body); return err },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := harness.PipeRig(t, &testserver.Vendor{}, &weir.Transport{InFlight: weir.InFlight{Max: 1}})
				first := r.Open(t.Context(), "first")
				var second harness.Answer
				var line sync.WaitGroup
				line.Go(func() { second = r.Get(t.Context(), "second") })
				time.Sleep(time.Minute)
				if n := len(r.Vendor.Arrivals()); n != 1 || r.Flying() != 1 {
					t.Errorf("%d arrivals and %d in flight while the first body is open, want 1 and 1", n, r.Flying())
				}
				if err := end(first); err != nil {
					t.Error(err)
				}
				line.Wait()
				if r.Want("the second GET", second, 200); second.At != time.Minute {
					t.Errorf("the second was answered at %v, want 1m", second.At)
				}
				first.Body.Close() // a second Close ends nothing
				if n := r.Flying(); n != 0 {
					t.Errorf("%d in flight at the end, want 0", n)
				}
			})
		})
	}
}

func TestUntilHeadersLetsStreamsLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t, &testserver.Vendor{}, &weir.Transport{InFlight: weir.InFlight{Max: 1, UntilHeaders: true}})
		first := r.Open(t.Context(), "first")
		defer first.Body.Close()
		if got := r.Get(t.Context(), "second"); got.At != 0 {
			t.Errorf("the second was answered at %v, want at once", got.At)
		}
	})
}

// Callers held by calls in flight spend no permit, and both bounds are kept.
func TestFullLaneSpendsNoPermits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t, &testserver.Vendor{Service: 3 * time.Second}, &weir.Transport{
			InFlight: weir.InFlight{Max: 2},
			Limits:   []throttle.Limit{throttle.TokenBucket(1, time.Second, 3)},
		})
		line := r.Callers(t.Context(), 5)
		if at := r.Transport.Snapshot()[0].Limits[0].Headroom; at != 1 {
			t.Errorf("%g permits at hand while the lane is full, want 1 of 3", at)
		}
		line.Wait()
		const s = time.Second
		harness.WantEqual(t, "arrivals", harness.Instants(r.Vendor.Arrivals()), []time.Duration{0, 0, 3 * s, 3 * s, 6 * s})
	})
}

// An ending is how a request ends.
type ending struct {
	fault   testserver.Fault // of the first arrivals
	prepare error            // of Prepare
	panics  bool             // in the base
	d       time.Duration    // of the context; zero: no deadline
}

// endings are all possible ends.
var endings = map[string]ending{
	"served":   {},
	"reset":    {fault: testserver.Fault{Last: 9, Do: testserver.ResetEarly}},
	"mid body": {fault: testserver.Fault{Last: 1, Do: testserver.ResetMidBody}},
	"refused":  {fault: testserver.Fault{Last: 99, Do: testserver.Answer, Status: 429}},
	"prepare":  {prepare: errors.New("boom")},
	"panic":    {panics: true},
	"hangs":    {fault: testserver.Fault{Last: 1, Do: testserver.Hang}, d: time.Second},
}

// end sends a request that ends in this way. The next ones are served, unless the base panics.
func (e ending) end(r *harness.Rig) {
	if e.fault.Last > 0 {
		r.Vendor.Faults = []testserver.Fault{e.fault}
	}
	if e.prepare != nil {
		r.Transport.Prepare = func(*http.Request) error { return e.prepare }
	}
	if e.panics {
		r.Transport.Base = harness.BaseFunc(func(*http.Request) (*http.Response, error) { panic("boom") })
	}
	ctx := r.Context()
	if e.d > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, e.d)
		defer cancel()
	}
	defer func() {
		_ = recover()
		r.Vendor.Faults, r.Transport.Prepare = nil, nil
	}()
	r.Get(ctx, "a")
}

// However a request ends, it is then no longer in flight.
func TestFlightEndsHoweverTheRequestDoes(t *testing.T) {
	for name, ending := range endings {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := harness.PipeRig(t, &testserver.Vendor{}, &weir.Transport{InFlight: weir.InFlight{Max: 1}})
				ending.end(r)
				if n := r.Flying(); n != 0 {
					t.Errorf("%d in flight afterwards, want 0", n)
				}
			})
		})
	}
}

func TestCallerOfAFullLaneGivesUpAtItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t, &testserver.Vendor{}, &weir.Transport{InFlight: weir.InFlight{Max: 1}})
		defer r.Open(t.Context(), "first").Body.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		got := r.Get(ctx, "second")
		var ours *weir.Error
		if !errors.Is(got.Err, shaping.ErrDeadline) || !errors.As(got.Err, &ours) || ours.Reason != throttle.ReasonConcurrency {
			t.Errorf("GET = %v, want ErrDeadline for concurrency", got.Err)
		}
	})
}

// A body that is never closed is detected, over a real connection.
func TestDroppedBodyEndsItsFlight(t *testing.T) {
	var log bytes.Buffer
	r := harness.SocketRig(t, &testserver.Vendor{}, &weir.Transport{InFlight: weir.InFlight{Max: 1}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	for range 2 {
		r.Open(t.Context(), "dropped")
		r.WantServedAfterCollections()
	}
	if n := strings.Count(log.String(), "never closed"); n != 1 {
		t.Errorf("%d lines of log, want 1:\n%s", n, &log)
	}
}

// The answer that an outer client's next try would get again keeps no body in flight.
func TestDroppedBodyOfAKeptAnswerEndsItsFlight(t *testing.T) {
	vendor := &testserver.Vendor{Faults: []testserver.Fault{{Last: 2, Do: testserver.Answer, Status: 502, Size: 64}}}
	r := harness.SocketRig(t, vendor, &weir.Transport{InFlight: weir.InFlight{Max: 1}, Retry: &backoff.Policy{Attempts: 2, Delay: backoff.Constant(time.Millisecond)}, Logger: slog.New(slog.DiscardHandler)})
	if got := r.Open(t.Context(), "dropped"); got.StatusCode != 502 {
		t.Fatalf("the first GET is answered %d, want 502", got.StatusCode)
	}
	r.WantServedAfterCollections()
}

// A fleet's permits go to callers with room in flight.
func TestMaxInFlightOfAReplica(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := harness.NewFleet(t, 2, &testserver.Vendor{Limits: []testserver.Limit{testserver.Concurrency(4)}, Service: 100 * time.Millisecond}, throttle.TokenBucket(100, time.Second, 10))
		for _, r := range f.Replicas {
			r.Transport.InFlight.Max = 2
		}
		var lines [2]*harness.Callers
		for i, r := range f.Replicas {
			lines[i] = r.Callers(t.Context(), 20)
		}
		for i, line := range lines {
			for _, got := range line.Wait() {
				f.Replicas[i].Want("GET", got, 200)
			}
		}
		arrivals := f.Replicas[0].Vendor.Arrivals()
		if n := len(arrivals.Granted()); n != 40 || len(arrivals) != 40 {
			t.Errorf("%d of %d arrivals were served, want 40 of 40", n, len(arrivals))
		}
		// 40 calls of 100 ms, 4 at a time.
		if took := arrivals.Span(); took < 900*time.Millisecond || took > 1500*time.Millisecond {
			t.Errorf("they took %v, want a second", took)
		}
	})
}

// A crew is processes that share a rate and a few places in flight.
type crew struct {
	processes, callers, places int // callers of each process
	limit                      throttle.Limit
	answers                    time.Duration // after the departure
	cost                       int
}

// call calls until the end, and counts the calls that are served.
func (c *crew) call(t *testing.T, client func() *redis.Client) (served *atomic.Int64, end func()) {
	ctx, cancel := context.WithCancel(t.Context())
	served = new(atomic.Int64)
	var calling sync.WaitGroup
	for range c.processes {
		store := distributed.New(client(), "vendor")
		transport := &weir.Transport{
			Base: &twoLanes{answers: c.answers}, Store: store, Limits: []throttle.Limit{c.limit}, InFlight: weir.InFlight{Shared: c.places},
			Logger: slog.New(slog.DiscardHandler), Cost: func(*http.Request, throttle.Limit) int { return c.cost },
		}
		t.Cleanup(func() { _, _ = transport.Close(), store.Close() })
		for range c.callers {
			calling.Go(func() {
				for ctx.Err() == nil {
					req, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://vendor.test", nil)
					if resp, err := transport.RoundTrip(req); err == nil {
						_ = resp.Body.Close()
						served.Add(1)
					}
				}
			})
		}
	}
	return served, func() { cancel(); calling.Wait() }
}

// Processes that have fewer places in flight than they are use the rate of their limit. A process kept a place
// for 250 ms, in which no permit fell due, and its permits went with it: 14 to 40 of 120 calls departed, and at
// four a minute one to four, with up to 700 scripts for each.
func TestFewPlacesLeaveTheRate(t *testing.T) {
	for i, f := range []struct {
		crew
		scripts int // most for each call
	}{
		{crew{5, 1, 1, throttle.TokenBucket(2, time.Second, 2), 234 * time.Millisecond, 1}, 10},
		{crew{20, 2, 5, throttle.TokenBucket(10, time.Second, 2), 200 * time.Millisecond, 1}, 10},
		{crew{5, 2, 1, throttle.TokenBucket(6, time.Minute, 1), 100 * time.Millisecond, 1}, 100},
		{crew{10, 2, 8, throttle.TokenBucket(20, time.Second, 3), 100 * time.Millisecond, 1}, 10},
	} {
		if i > 0 && testing.Short() {
			break
		}
		synctest.Test(t, func(t *testing.T) {
			server := redispipe.Start(t, time.Millisecond)
			served, end := f.call(t, func() *redis.Client { return server.Client(t) })
			time.Sleep(10 * time.Second)
			whole := 30 * time.Second
			if f.limit.PerSecond() < 1 {
				whole = time.Minute // it has six calls
			}
			before, scripts := served.Load(), server.Calls()
			time.Sleep(whole)
			n, scripts := served.Load()-before, server.Calls()-scripts
			end()
			if most := whole.Seconds() * f.limit.PerSecond(); float64(n) < 0.85*most {
				t.Errorf("%d calls in %v, want %.0f: %+v", n, whole, most, f)
			}
			if int64(scripts) > int64(f.scripts)*n {
				t.Errorf("%d scripts for %d calls, want %d each at most: %+v", scripts, n, f.scripts, f)
			}
		})
	}
}

// A call whose permits take ten seconds to earn gets its turn beside cheaper ones.
func TestCostlyCallsHaveTheirTurnWithOnePlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := redispipe.Start(t, time.Millisecond)
		var served [2]*atomic.Int64
		var ends []func()
		for i, cost := range []int{10_000, 6_000} {
			c := crew{1, 2, 1, throttle.TokenBucket(1000, time.Second, 10_000), 100 * time.Millisecond, cost}
			n, end := c.call(t, func() *redis.Client { return server.Client(t) })
			served[i], ends = n, append(ends, end)
		}
		time.Sleep(200 * time.Second)
		for i, n := range served {
			if n.Load() < 8 {
				t.Errorf("process %d: %d calls in 200 s, want 8 of 12 at least", i, n.Load())
			}
		}
		for _, end := range ends {
			end()
		}
	})
}
