package redistest

import (
	"net"
	"testing"
)

// Replicate starts a replica of the master, with options as [Start] takes them, and returns once it
// has all of the master's data.
func Replicate(tb testing.TB, master *Server, args ...string) *Server {
	tb.Helper()
	s := Start(tb, args...)
	s.Follow(master.Addr())
	return s
}

// Follow makes the server a replica of the one at the host and port, which may be those of a
// [Proxy]. It returns once the replica has all data. A restarted server follows no other.
func (s *Server) Follow(addr string) {
	s.tb.Helper()
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		s.tb.Fatal(err)
	}
	s.must("REPLICAOF", host, port)
	err = await("the replica of "+addr, func() (bool, error) {
		return s.follows(), nil
	})
	if err != nil {
		s.tb.Fatalf("redistest: %v\n%s", err, s.log())
	}
}

// Promote makes a replica a master with its data.
func (s *Server) Promote() {
	s.tb.Helper()
	s.must("REPLICAOF", "NO", "ONE")
}

// follows reports whether the server is a replica, connected to its master.
func (s *Server) follows() bool {
	role := s.role()
	return len(role) > 3 && role[0] == "slave" && role[3] == "connected"
}

// leads reports whether the server is a master.
func (s *Server) leads() bool {
	role := s.role()
	return len(role) > 0 && role[0] == "master"
}

func (s *Server) role() []any {
	reply, _ := s.Do("ROLE")
	role, _ := reply.([]any)
	return role
}
