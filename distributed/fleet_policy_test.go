package distributed_test

import (
	"errors"
	"testing"

	"github.com/weirgo/weir/distributed"
	"github.com/weirgo/weir/internal/redistest"
)

func gone(p *redistest.Proxy) {
	p.Refuse()
	p.Drop()
}

// Each replica that is cut off enforces the whole limit.
func TestFailOpenEnforcesTheWholeLimitsHere(t *testing.T) {
	t.Parallel()
	f := newFleet(t, plan{members: 3, config: config{OnLoss: distributed.FailOpen}})
	f.steady()
	f.pass(moment)
	spells := f.suffer(2, 2*moment, each(f.links[:2], gone), each(f.links[:2], (*redistest.Proxy).Pass))
	f.pass(moment)
	f.judge(spells...)
}

// No call departs without a permit from Redis.
func TestFailClosedNeverLetsMoreGo(t *testing.T) {
	t.Parallel()
	f := newFleet(t, plan{members: 3, config: config{OnLoss: distributed.FailClosed}})
	f.steady()
	f.pass(moment)
	f.suffer(3, 2*moment, each(f.links, gone), each(f.links, (*redistest.Proxy).Pass))
	for i, r := range f.members {
		r.mu.Lock()
		if !errors.Is(r.refused, distributed.ErrUnavailable) {
			t.Errorf("replica %d: refused with %v, want ErrUnavailable", i, r.refused)
		}
		r.mu.Unlock()
	}
	f.pass(moment)
	f.judge()
}
