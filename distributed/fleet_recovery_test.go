package distributed_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/weirgo/weir/throttle"
)

// recoverySets are sets of limits whose first limit keeps departures at 20/s for long.
func recoverySets() map[string][]throttle.Limit {
	day := 24 * time.Hour
	shorts := []throttle.Limit{
		throttle.TokenBucket(20, time.Second, 5), throttle.GCRA(20, time.Second, 5), throttle.LeakyBucket(20, time.Second),
		throttle.FixedWindow(20, time.Second), throttle.SlidingLog(20, time.Second), throttle.SlidingWindow(20, time.Second),
	}
	longs := []throttle.Limit{
		throttle.FixedWindow(20_000, day), throttle.SlidingLog(5_000, time.Hour), throttle.SlidingWindow(20_000, day),
		throttle.SlidingWindow(5_000, time.Hour), throttle.FixedWindow(5_000, time.Hour), throttle.SlidingLog(50_000, day),
	}
	sets := make(map[string][]throttle.Limit)
	for i, s := range shorts {
		for j, l := range longs {
			if i == j || long {
				sets[fmt.Sprint(s, " with ", l)] = []throttle.Limit{s, l}
			}
		}
	}
	minute := throttle.FixedWindow(3_000, time.Minute)
	sets["three limits"] = []throttle.Limit{shorts[0], minute, longs[0]}
	sets["three limits, with a log"] = []throttle.Limit{shorts[2], minute, longs[5]}
	return sets
}

// The rest of a day's window is not spread over the day. Ten seconds after a pause the fleet
// departs at 0.9 of its configured rate.
func TestAPauseCostsNoMoreThanItSays(t *testing.T) {
	t.Parallel()
	for name, limits := range recoverySets() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := patiently(limits...)
			c.Callers = 20
			f := newFleet(t, plan{members: 2, config: c})
			f.steady()
			time.Sleep(standstill)
			look := time.NewTicker(100 * time.Millisecond)
			defer look.Stop()
			f.recovers(time.Second, look)
			f.stop()
		})
	}
}

// recovers pauses the fleet, and waits until it is back at its rate. Void permits count as granted:
// a busy machine loses some.
func (f *fleet) recovers(told time.Duration, look *time.Ticker) {
	f.t.Helper()
	const window = 2 * time.Second
	f.members[0].queue.Pause(told)
	from := now()
	want := 0.9 * rateOf(f.plan.Limits[0])
	void := map[throttle.Instant]uint64{from: f.voided()}
	for range look.C {
		at := now()
		since := max(from.Add(told), at.Add(-window))
		void[at] = f.voided()
		departed, lost := f.journal.count(since, at), void[at]-before(void, since)
		rate := (float64(departed) + float64(lost)) / window.Seconds()
		if rate >= want {
			f.t.Logf("at %.1f/s after %v, with %d void", rate, at.Sub(from).Round(100*time.Millisecond), lost)
			return
		}
		if at.Sub(from) > told+10*time.Second {
			f.t.Errorf("at %.1f/s after %v, with %d void, want %.1f", rate, at.Sub(from), lost, want)
			return
		}
	}
}

// voided returns how many permits were voided so far.
func (f *fleet) voided() uint64 {
	var n uint64
	for _, s := range f.states() {
		n += s.Void
	}
	return n
}

// before returns the count at the first reading at or after an instant.
func before(counts map[throttle.Instant]uint64, since throttle.Instant) uint64 {
	first := throttle.Never
	for at := range counts {
		if at >= since && at < first {
			first = at
		}
	}
	return counts[first]
}
