package distributed_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/distributed"
	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

const (
	prefetchAhead = 50 * time.Millisecond
	prefetchTrip  = 300 * time.Microsecond
)

// newPrefetchFleet returns a fleet in a bubble that prefetches permits for the given time, and is
// known to its server.
func newPrefetchFleet(t *testing.T, replicas int, ahead time.Duration, limit throttle.Limit) *bubbleFleet {
	f := newBubbleFleet(t, replicas, prefetchTrip, limit)
	for _, s := range f.stores {
		distributed.SetPrefetch(s, ahead)
	}
	f.meet()
	return f
}

// comers are callers that arrive at one replica, each once.
type comers struct {
	replica  int
	rate     float64
	random   *rand.Rand // nil: they arrive evenly
	from, to time.Duration
	waits    []time.Duration // by arrival; negative: not departed yet
}

// come starts the callers, and returns when all have arrived.
func (f *bubbleFleet) come(c *comers) {
	gap := func() time.Duration {
		if c.random == nil {
			return time.Duration(1e9 / c.rate)
		}
		return time.Duration(c.random.ExpFloat64() / c.rate * 1e9)
	}
	for next := c.from; next < c.to; next += gap() {
		time.Sleep(next - time.Since(f.start))
		i, arrived := len(c.waits), time.Now()
		f.mu.Lock()
		c.waits = append(c.waits, -1)
		f.mu.Unlock()
		f.wg.Go(func() {
			if err := f.queues[c.replica].WaitTurn(f.t.Context(), &shaping.Turn{N: 1, MaxWait: time.Hour}); err != nil {
				f.t.Errorf("WaitTurn() = %v", err)
				return
			}
			f.mu.Lock()
			defer f.mu.Unlock()
			c.waits[i] = time.Since(arrived)
			f.left[c.replica] = append(f.left[c.replica], time.Since(f.start))
		})
	}
}

// Callers that arrive evenly find permits in hand, and few calls fetch them. No permit is void.
// Without prefetching each caller waits for a call of its own.
func TestSteadyDemandFindsPermitsAtHand(t *testing.T) {
	for _, test := range []struct {
		name   string
		ahead  time.Duration
		waits  time.Duration
		script float64
	}{
		{"on", prefetchAhead, 0, 0.1},
		{"off", 0, prefetchTrip, 1},
	} {
		if testing.Short() && test.ahead == 0 {
			continue // all other fleets are without it
		}
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newPrefetchFleet(t, 1, test.ahead, throttle.TokenBucket(1000, time.Second, 100))
				f.come(&comers{rate: 700, to: 500 * time.Millisecond}) // until the pace is known
				before, void := f.server.Calls(), f.void()
				c := &comers{rate: 700, from: 501 * time.Millisecond, to: 1500 * time.Millisecond}
				f.come(c)
				calls := float64(f.server.Calls()-before) / float64(len(c.waits))
				void = f.void() - void
				f.wg.Wait()
				if slices.ContainsFunc(c.waits, func(w time.Duration) bool { return w != test.waits }) {
					t.Errorf("a caller waited %v, want %v", slices.Max(c.waits), test.waits)
				}
				if calls > test.script || calls < test.script/2 || void > 0 {
					t.Errorf("%.3f scripts a call and %d permits void, want %v and 0", calls, void, test.script)
				}
			})
		})
	}
}

// void returns how many permits were void on arrival.
func (f *bubbleFleet) void() (n uint64) {
	for _, l := range f.limiters {
		n += l.State(throttle.InstantOf(time.Now())).Store.Void
	}
	return n
}

// A replica without callers holds no permits a few gaps later, and has reported the unused ones.
func TestQuietReplicaHoldsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newPrefetchFleet(t, 2, prefetchAhead, throttle.TokenBucket(1000, time.Second, 1000))
		f.come(&comers{rate: 700, to: 515 * time.Millisecond})
		if n := distributed.InHand(f.limiters[0]); n < 10 {
			t.Fatalf("%d permits in hand, want those of a run", n)
		}
		time.Sleep(15 * time.Millisecond) // 8 gaps since the last caller are 11.4 ms
		state := f.limiters[0].State(throttle.InstantOf(time.Now()))
		if n := distributed.InHand(f.limiters[0]); n > 0 || !state.Whole || distributed.Reports(f.limiters[0]) > 0 {
			t.Errorf("%d permits in hand and %d reports, want nothing", n, distributed.Reports(f.limiters[0]))
		}
		before := f.server.Calls()
		time.Sleep(10 * time.Second)
		if n := f.server.Calls() - before; n > 0 {
			t.Errorf("%d calls in ten quiet seconds", n)
		}
	})
}

// The vendor sees no more than without prefetching: R (W+X) + B in any window. Steady callers
// arrive everywhere, bursts above B at one replica, and a pause begins.
func TestPrefetchKeepsTheBound(t *testing.T) {
	seed := seeded(t)
	synctest.Test(t, func(t *testing.T) {
		const rate, burst, replicas = 1000, 100, 3
		limit := throttle.TokenBucket(rate, time.Second, burst)
		f := newPrefetchFleet(t, replicas, prefetchAhead, limit)
		held := 0
		for i := range replicas {
			c := &comers{replica: i, rate: 0.7 * rate / replicas, random: rand.New(rand.NewPCG(seed, uint64(i))), to: 1500 * time.Millisecond}
			f.wg.Go(func() { f.come(c) })
		}
		for range 3 {
			time.Sleep(300 * time.Millisecond)
			for _, l := range f.limiters {
				held += distributed.InHand(l)
			}
			flood := &comers{rate: 1e9, from: time.Since(f.start), to: time.Since(f.start) + 150}
			f.come(flood)
		}
		f.queues[1].Pause(100 * time.Millisecond)
		f.wg.Wait()
		if held < 3 {
			t.Errorf("%d permits were in hand when the floods came, want many", held)
		}
		f.within(limit)
	})
}

// within fails the test if a window of departures exceeds the bound.
func (f *bubbleFleet) within(limit throttle.Limit) {
	f.t.Helper()
	b := bound{rate: limit.PerSecond(), burst: float64(limit.Burst), x: throttle.Tolerance(limit)}
	b.judge(f.t, limit.String(), f.instants())
}

// instants returns all departures, since the start.
func (f *bubbleFleet) instants() (at []throttle.Instant) {
	for _, d := range f.all() {
		at = append(at, throttle.Instant(d))
	}
	return at
}

// One replica demands far more than the rate, and prefetches. It delays replicas with few callers
// no more than without prefetching.
func TestPrefetchStarvesNobody(t *testing.T) {
	waits := func(t *testing.T, ahead time.Duration, rates ...float64) (longest time.Duration, calls int) {
		synctest.Test(t, func(t *testing.T) {
			limit := throttle.TokenBucket(500, time.Second, 50)
			f := newPrefetchFleet(t, len(rates), ahead, limit)
			crowds := make([]*comers, len(rates))
			for i, r := range rates {
				crowds[i] = &comers{replica: i, rate: r, random: rand.New(rand.NewPCG(1, uint64(i))), to: time.Second}
				f.wg.Go(func() { f.come(crowds[i]) })
			}
			f.wg.Wait()
			f.within(limit)
			var all []time.Duration
			for _, c := range crowds[1:] {
				all = append(all, c.waits...)
			}
			slices.Sort(all)
			longest, calls = all[len(all)*99/100], f.server.Calls()
		})
		return longest, calls
	}
	for name, rates := range map[string][]float64{
		"greedy": {1000, 30, 30, 30}, // it has a line
		"steady": {430, 15, 15, 15},  // it has none
		"eight":  {400, 5, 5, 5, 5, 5, 5, 5},
	} {
		if testing.Short() && name != "steady" {
			continue // each takes two seconds under the race detector
		}
		t.Run(name, func(t *testing.T) {
			off, before := waits(t, 0, rates...)
			on, after := waits(t, prefetchAhead, rates...)
			t.Logf("p99 of the modest: %v, and %v without; %d scripts, and %d", on, off, after, before)
			if on > off+off/4 {
				t.Errorf("99 of 100 modest callers wait up to %v, want %v, as without it", on, off)
			}
			if name != "greedy" && after > before*3/4 {
				t.Errorf("%d scripts, want fewer than three quarters of %d", after, before)
			}
		})
	}
}

// A crash never loses more permits than documented.
func TestPrefetchHoldsNoMoreThanDocumented(t *testing.T) {
	seed := seeded(t)
	synctest.Test(t, func(t *testing.T) {
		f := newPrefetchFleet(t, 1, prefetchAhead, throttle.TokenBucket(1000, time.Second, 1000))
		f.wg.Go(func() { f.come(&comers{rate: 700, random: rand.New(rand.NewPCG(seed, 9)), to: 2 * time.Second}) })
		most := 0
		for time.Since(f.start) < 2*time.Second {
			time.Sleep(time.Millisecond)
			most = max(most, distributed.InHand(f.limiters[0]))
		}
		f.wg.Wait()
		// The pace is the mean over 16 callers. At random it may be twice the true one.
		if want := 2 * (2*700*prefetchAhead.Seconds() + 2); float64(most) > want || most < 20 {
			t.Errorf("%d permits in hand, want %.0f at most, and those of a run", most, want)
		}
	})
}

// Callers over a real Redis depart on arrival, most of them with prefetched permits.
func TestPrefetchOverRedis(t *testing.T) {
	t.Parallel()
	c := patiently(throttle.TokenBucket(2000, time.Second, 400))
	c.Callers, c.Arrivals, c.Prefetch = -1, 700, prefetchAhead
	f := newFleet(t, plan{members: 2, config: c})
	f.steady()
	f.pass(time.Second)
	calls := uint64(0)
	for _, s := range f.states() {
		calls += s.Calls
	}
	t.Logf("%d departures with %d calls, about 1,400 on an idle machine", len(f.journal.all()), calls)
	await(t, "200 departures", func() bool { return len(f.journal.all()) >= 200 })
	f.judge()
}

// More callers than were expected do not wait for permits in hand that are for later, while Redis has
// some at hand: a call brings those. Otherwise the last of twenty would wait for 55 ms.
func TestACrowdDoesNotWaitForPermitsForLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newPrefetchFleet(t, 1, prefetchAhead, throttle.TokenBucket(1000, time.Second, 200))
		for range 5 {
			f.come(&comers{rate: 200, from: time.Since(f.start), to: time.Since(f.start) + 200*time.Millisecond})
			crowd := &comers{rate: 1e9, from: time.Since(f.start), to: time.Since(f.start) + 20}
			f.come(crowd)
			f.wg.Wait()
			if longest := slices.Max(crowd.waits); longest > 5*time.Millisecond {
				t.Errorf("of %d callers at once the last waits %v, want 5 ms at most", len(crowd.waits), longest)
			}
		}
	})
}
