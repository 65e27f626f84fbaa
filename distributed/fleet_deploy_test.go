package distributed_test

import (
	"testing"
	"time"

	"github.com/weirgo/weir/throttle"
)

// A new limit is rolled out to replicas one by one. The strictest limit claimed lately is enforced,
// so the fleet never exceeds the slower of the two.
func TestARollingDeployKeepsTheStricterLimit(t *testing.T) {
	t.Parallel()
	ahead := config{}
	ahead.prefetch(2)
	ahead.Arrivals = rateOf(ahead.Limits[0]) / 4 // plus bursts of a fourth: more than the limit from four replicas
	for name, slower := range map[string]config{
		"permits for callers in line": {Limits: []throttle.Limit{throttle.TokenBucket(100, time.Second, 10)}},
		"permits ahead of callers":    ahead,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testDeploy(t, slower)
		})
	}
}

func testDeploy(t *testing.T, slower config) {
	t.Helper()
	f := newFleet(t, plan{members: 2, config: slower})
	limit := slower.Limits[0]
	f.steady()
	f.pass(moment)
	began := now()
	for range 2 {
		c := f.way()
		c.Limits = []throttle.Limit{throttle.TokenBucket(limit.Permits*6/5, limit.Per, limit.Burst)}
		f.join(c)
	}
	await(t, "the others to know", func() bool { return f.states()[2].Differs && f.states()[3].Differs })
	f.pass(2 * moment)
	gone := now()
	for _, r := range f.members[:2] {
		r.halt()
		_ = r.store.Close()
	}
	t.Logf("%d departures in %v with both", f.journal.count(began, gone), gone.Sub(began))
	took := await(t, "the faster limit to hold", func() bool { return !f.members[2].state().Differs && !f.members[3].state().Differs })
	held := now()
	t.Logf("the faster limit holds %v after the slower left", took)
	f.pass(time.Second)
	f.stop()
	if stray := f.journal.stray(nil); stray > 0 {
		t.Logf("%d departures under the policy for a loss though no fault was made", stray)
	}
	b := bound{rate: rateOf(limit), burst: float64(limit.Burst), x: f.x(), spells: []spell{{from: gone, to: throttle.Never, rate: rateOf(limit) / 5}}}
	b.judge(t, "fleet", f.journal.instants(shared))
	b.x = tick
	b.judge(t, "as promised", f.journal.dues(shared))
	t.Logf("%d departures in %v after, then %d in a second", f.journal.count(gone, held), held.Sub(gone), f.journal.count(held, held.Add(time.Second)))
}
