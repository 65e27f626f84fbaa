package distributed_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/distributed"
	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// everyAlgorithm returns limits of 100/s, so that a refill takes a second at most.
func everyAlgorithm() []throttle.Limit {
	return []throttle.Limit{
		throttle.TokenBucket(100, time.Second, 5), throttle.LeakyBucket(100, time.Second), throttle.GCRA(100, time.Second, 5),
		throttle.FixedWindow(100, time.Second), throttle.SlidingLog(100, time.Second), throttle.SlidingWindow(100, time.Second),
	}
}

// The clock of Redis is stepped, as after a failover to a node with another clock. No lane stops
// for longer than a refill and a moment.
func TestR18AClockThatIsSteppedStopsNobody(t *testing.T) {
	t.Parallel()
	steps := []time.Duration{-time.Hour}
	if long {
		steps = []time.Duration{-time.Second, -10 * time.Second, -time.Minute, -time.Hour, -365 * 24 * time.Hour, time.Hour, 365 * 24 * time.Hour}
	}
	for i, limit := range everyAlgorithm() {
		if testing.Short() && i%2 > 0 {
			continue // the algorithms differ only in the script
		}
		for _, step := range steps {
			t.Run(fmt.Sprint(limit.Algorithm, " ", step), func(t *testing.T) { testStep(t, limit, step) })
		}
	}
}

func testStep(t *testing.T, limit throttle.Limit, step time.Duration) {
	t.Parallel()
	var skew atomic.Int64
	c := patiently(limit)
	c.Callers = 20
	f := newFleet(t, plan{members: 2, config: c})
	for _, r := range f.members {
		distributed.Skew(r.store, &skew)
	}
	f.steady()
	for _, by := range []time.Duration{step, 0} { // and back
		time.Sleep(standstill)
		from := now()
		skew.Store(by.Microseconds())
		time.Sleep(4 * standstill)
		f.resumed(fmt.Sprint("at ", by), from, 2*standstill)
	}
	f.stop()
}

// The clock of Redis moves back by an hour while permits of the earlier clock are in hand, and then a
// reply comes faster. The new difference of the clocks would date those permits an hour later, and
// callers with deadlines would be rejected for that hour.
func TestPermitsFromBeforeAStepAreDatedNoLater(t *testing.T) {
	for phase := range 10 {
		if testing.Short() && phase%5 != 2 {
			continue
		}
		synctest.Test(t, func(t *testing.T) {
			const rate, trip = 100, 300 * time.Millisecond
			patient := func(s *distributed.Store) { s.Deadline, s.MaxDeadline = patience, patience }
			f := newBubbleFleetOf(t, 1, trip, patient, throttle.TokenBucket(rate, time.Second, 2))
			var skew, departed atomic.Int64
			distributed.Skew(f.stores[0], &skew)
			wait := func(ctx context.Context, n int) {
				ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
				defer cancel()
				if f.queues[0].WaitTurn(ctx, &shaping.Turn{N: n}) == nil {
					departed.Add(int64(n))
					return
				}
				time.Sleep(5 * time.Millisecond) // a rejection comes at once
			}
			for range 2 * rate {
				f.wg.Go(func() {
					for time.Since(f.start) < 12*time.Second {
						wait(t.Context(), 1)
					}
				})
			}
			time.Sleep(2500*time.Millisecond + time.Duration(phase)*80*time.Millisecond)
			skew.Store(-time.Hour.Microseconds())
			time.Sleep(trip + trip/2)
			f.server.Delay(time.Millisecond)
			wait(shaping.WithPriority(t.Context(), shaping.PriorityHigh), 2) // asks at once
			time.Sleep(time.Second)
			before, began := departed.Load(), time.Now()
			time.Sleep(5 * time.Second)
			if n, all := departed.Load()-before, rate*time.Since(began).Seconds(); float64(n) < 0.9*all {
				t.Errorf("phase %d: %d departed of %.0f after the step", phase, n, all)
			}
			f.wg.Wait()
		})
	}
}

// resumed fails the test unless the fleet departs at half its rate within a duration from an
// instant.
func (f *fleet) resumed(what string, from throttle.Instant, within time.Duration) {
	f.t.Helper()
	to := now()
	gap := longest(from, to, f.journal.instants(func(d departure) bool { return from <= d.At && d.At <= to }))
	f.t.Logf("%s: no departure for %v", what, gap)
	if gap > within+standstill {
		f.t.Errorf("%s: no departure for %v, want %v at most", what, gap, within)
	}
	f.departs(what, 0.5*rateOf(f.plan.Limits[0]), from.Add(within), to)
}

// The state contains an instant a year ahead. One call, or a moment, heals it, with the same
// replicas.
func TestR19AnInstantFarAheadStopsNobody(t *testing.T) {
	t.Parallel()
	year := (time.Now().AddDate(1, 0, 0)).UnixMicro()
	for i, limit := range everyAlgorithm() {
		for j, garbage := range []string{
			`redis.call('HSET', KEYS[1], 'at', '%d')`,
			`local l = redis.call('HGET', KEYS[1], 'lane') redis.call('HSET', KEYS[1], 'lane', (l:gsub('^(%%d+ %%d+) %%d+', '%%1 %d', 1)))`,
			`local s = redis.call('HGET', KEYS[1], ARGV[1]) redis.call('HSET', KEYS[1], ARGV[1], (s:gsub(';(%%d+) %%d+ %%d+', ';%%1 %[1]d %[1]d', 1)))`,
		} {
			if testing.Short() && j != i%3 {
				continue // each place has garbage, and each algorithm meets some
			}
			t.Run(limit.Algorithm.String(), func(t *testing.T) {
				t.Parallel()
				c := patiently(limit)
				c.Callers = 20
				f := newFleet(t, plan{members: 2, config: c})
				f.steady()
				time.Sleep(standstill)
				from := now()
				f.do("EVAL", fmt.Sprintf(garbage, year), "1", f.hash(), "=requests-0")
				time.Sleep(3 * standstill)
				f.resumed("after garbage", from, 2*standstill)
				f.stop()
			})
		}
	}
}

// hash returns the key of the lane's hash, which exists beside its logs.
func (f *fleet) hash() string { return "weir:1:{" + f.plan.Namespace + "/" + f.plan.Lane + "}" }
