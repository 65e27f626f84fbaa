package distributed_test

import (
	"testing"

	"github.com/weirgo/weir/internal/redistest"
)

// The master is killed, and the sentinels promote its replica.
func TestSentinelFailoverIsFollowed(t *testing.T) {
	t.Parallel()
	s := redistest.StartSentinel(t)
	f := newFleet(t, plan{members: 3, config: config{Redis: place{Addrs: s.Addrs(), Master: s.MasterName()}}})
	f.steady()
	f.pass(moment)
	next := s.Replica()
	from := now()
	spells := f.suffer(3, 0, s.Master().Kill, func() { s.AwaitMaster(next) })
	f.pass(moment)
	f.judge(append(spells, f.lost(from, now()))...)
}
