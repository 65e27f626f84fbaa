package distributed_test

import (
	"testing"
	"time"

	"github.com/weirgo/weir/throttle"
)

// Fleets of any size keep the bound, and use nearly all of the rate.
func TestFleetsOfAnySizeKeepTheLimit(t *testing.T) {
	t.Parallel()
	type size struct {
		name                string
		processes, together int
		length              time.Duration
	}
	sizes := []size{{"eight", 8, 1, 2 * time.Second}, {"fifty", 5, 10, 3 * time.Second}}
	if testing.Short() {
		sizes = []size{{"four", 4, 1, 2 * time.Second}, {"twenty", 2, 10, 2 * time.Second}}
	}
	if long {
		sizes = append(sizes, size{"fifty processes", 50, 1, 3 * time.Second})
	}
	for _, test := range sizes {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c := patiently()
			c.Together, c.Callers = test.together, 3
			f := newFleet(t, plan{processes: test.processes, config: c})
			f.steady()
			from := now()
			f.pass(test.length)
			f.used(from, now())
			f.judge()
		})
	}
}

// Fleets keep the bound for each algorithm, and for several limits together.
func TestFleetsKeepEveryLimit(t *testing.T) {
	t.Parallel()
	for name, limits := range map[string][]throttle.Limit{
		"gcra":     {throttle.GCRA(rate, time.Second, burst)},
		"leaky":    {throttle.LeakyBucket(rate, time.Second)},
		"fixed":    {throttle.FixedWindow(rate/4, time.Second/4)},
		"log":      {throttle.SlidingLog(rate/4, time.Second/4)},
		"sliding":  {throttle.SlidingWindow(rate/4, time.Second/4)},
		"together": {throttle.TokenBucket(rate, time.Second, burst), throttle.FixedWindow(rate/5, time.Second/4), throttle.SlidingLog(rate/2, time.Second)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := patiently(limits...)
			c.Callers = 3
			f := newFleet(t, plan{members: orShort(8, 4), config: c})
			f.steady()
			from := now()
			f.pass(2 * time.Second)
			f.used(from, now())
			f.judge()
		})
	}
}

// used logs how much of the rate was used in a window: nearly all, if the machine has time for the
// fleet.
func (f *fleet) used(from, to throttle.Instant) {
	f.t.Helper()
	least := rateOf(f.plan.Limits[0])
	for _, l := range f.plan.Limits {
		least = min(least, rateOf(l))
	}
	f.t.Logf("%.1f %% of the rate was used", 100*float64(f.journal.count(from, to))/least/to.Sub(from).Seconds())
}
