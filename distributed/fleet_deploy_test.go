package distributed_test

import (
	"testing"
	"time"

	"github.com/weirgo/weir/throttle"
)

// Replicas with another limit are rolled out: the strictest claimed lately
// holds, so that the fleet is at no time faster than the slower of the two.
func TestARollingDeployKeepsTheStricterLimit(t *testing.T) {
	t.Parallel()
	f := newFleet(t, plan{members: 2, config: config{Limits: []throttle.Limit{throttle.TokenBucket(100, time.Second, 10)}}})
	faster := f.plan.config
	faster.Limits = []throttle.Limit{throttle.TokenBucket(120, time.Second, 10)}
	f.steady()
	f.pass(moment)
	began := now()
	for range 2 {
		c := f.way()
		c.Limits = faster.Limits
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
	bound{rate: 100, burst: 10, x: f.x(), spells: []spell{{from: gone, to: throttle.Never, rate: 20}}}.judge(t, "fleet", f.journal.instants(everybody))
	t.Logf("%d departures in %v after, then %d in a second", f.journal.count(gone, held), held.Sub(gone), f.journal.count(held, held.Add(time.Second)))
}
