package redistest_test

import (
	"testing"

	"github.com/weirgo/weir/internal/redistest"
)

func TestSentinelFailsOverAndBack(t *testing.T) {
	t.Parallel()
	s := redistest.StartSentinel(t)
	master, replica := s.Master(), s.Replica()
	want(t, "len(Addrs())", len(s.Addrs()), 3)
	do(t, master, "SET", "key", "value")
	do(t, master, "WAIT", "1", "5000")
	s.Failover()
	if s.Master() != replica || s.Replica() != master {
		t.Errorf("after the failover the master is %s", s.Master().Addr())
	}
	want(t, "GET", do(t, replica, "GET", "key"), "value")
	do(t, replica, "SET", "key", "other")
	s.Failover()
	if s.Master() != master {
		t.Errorf("after the failover back the master is %s", s.Master().Addr())
	}
}

func TestSentinelReplacesAKilledMaster(t *testing.T) {
	t.Parallel()
	s := redistest.StartSentinel(t)
	replica := s.Replica()
	s.Master().Kill()
	s.AwaitMaster(replica)
	do(t, s.Master(), "SET", "key", "value")
}

func TestSentinelOutlivesItsFirst(t *testing.T) {
	t.Parallel()
	s := redistest.StartSentinel(t)
	replica := s.Replica()
	s.Watcher(0).Kill()
	s.Master().Kill()
	s.AwaitMaster(replica)
}
