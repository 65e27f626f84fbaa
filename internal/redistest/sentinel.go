package redistest

import (
	"net"
	"slices"
	"testing"
)

const masterName = "weir"

// A Sentinel is a master and its replica, watched by three sentinels. The first declares the master
// down after a second without an answer, and promotes the replica if another sentinel agrees. The
// others are slower, so that candidates compete only if the first is down too.
type Sentinel struct {
	tb       testing.TB
	nodes    [2]*Server // one is the master
	watchers []*Server
}

// StartSentinel starts all five and returns once they know one another.
func StartSentinel(tb testing.TB) *Sentinel {
	tb.Helper()
	s := &Sentinel{tb: tb}
	s.nodes[0] = Start(tb)
	s.nodes[1] = Replicate(tb, s.nodes[0])
	addr := s.nodes[0].Addr()
	s.watchers = []*Server{startWatcher(tb, addr, 1, 1000), startWatcher(tb, addr, 2, 2500), startWatcher(tb, addr, 2, 2500)}
	s.await("the sentinels to know one another", s.acquainted)
	return s
}

// MasterName is the name by which clients ask for the master.
func (s *Sentinel) MasterName() string { return masterName }

// Addrs returns the hosts and ports of the sentinels.
func (s *Sentinel) Addrs() []string { return addrs(s.watchers) }

// Watcher returns the sentinel with the index, from 0 to 2.
func (s *Sentinel) Watcher(i int) *Server { return s.watchers[i] }

// Master returns the server that the sentinels report as the master.
func (s *Sentinel) Master() *Server {
	s.tb.Helper()
	return s.nodes[s.master(s.speaker())]
}

// Replica returns the other server.
func (s *Sentinel) Replica() *Server {
	s.tb.Helper()
	return s.nodes[1-s.master(s.speaker())]
}

// Failover makes the sentinels promote the replica while the master is healthy. It returns when all
// live sentinels report that to clients and the old master has become a replica.
func (s *Sentinel) Failover() {
	s.tb.Helper()
	old, next, speaker := s.Master(), s.Replica(), s.speaker()
	s.await("a replica fit to be the master", func() bool {
		if !next.follows() || !s.settled() {
			return false
		}
		_, err := speaker.Do("SENTINEL", "FAILOVER", masterName)
		return err == nil
	})
	s.AwaitMaster(next)
	s.await("the old master to follow", func() bool { return old.follows() && s.settled() })
}

// AwaitMaster returns when the server is a master and all live sentinels report it, as they do some
// time after the other was killed or stopped.
func (s *Sentinel) AwaitMaster(next *Server) {
	s.tb.Helper()
	s.await("the sentinels to make "+next.Addr()+" the master", func() bool {
		for _, w := range s.watchers {
			if i := s.master(w); i >= 0 && s.nodes[i] != next {
				return false
			}
		}
		return next.leads()
	})
}

// speaker returns the first sentinel that answers.
func (s *Sentinel) speaker() *Server {
	s.tb.Helper()
	for _, w := range s.watchers {
		if s.master(w) >= 0 {
			return w
		}
	}
	s.tb.Fatal("redistest: no sentinel knows the master")
	return nil
}

// master returns the index of the server that a sentinel reports as master; -1 if it does not
// answer.
func (s *Sentinel) master(watcher *Server) int {
	reply, _ := watcher.Do("SENTINEL", "GET-MASTER-ADDR-BY-NAME", masterName)
	at, _ := reply.([]any)
	if len(at) != 2 {
		return -1
	}
	addr := net.JoinHostPort(at[0].(string), at[1].(string))
	return slices.IndexFunc(s.nodes[:], func(n *Server) bool { return n.Addr() == addr })
}

// acquainted reports whether each sentinel knows all the others.
func (s *Sentinel) acquainted() bool {
	for _, w := range s.watchers {
		state := pairs(w.must("SENTINEL", "MASTER", masterName))
		if state["flags"] != "master" || state["num-other-sentinels"] != "2" {
			return false
		}
	}
	return s.settled()
}

// settled reports whether each live sentinel has seen the replica follow the master. One that has
// not would undo a failover.
func (s *Sentinel) settled() bool {
	for _, w := range s.watchers {
		if s.master(w) >= 0 && !replicated(w) {
			return false
		}
	}
	return true
}

func (s *Sentinel) await(what string, come func() bool) {
	s.tb.Helper()
	if err := await(what, func() (bool, error) { return come(), nil }); err != nil {
		s.tb.Fatalf("redistest: %v\n%s", err, s.watchers[0].log())
	}
}
