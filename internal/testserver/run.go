package testserver

import "net/http"

// TB has the methods of testing.TB that [Run] needs. With it, a program that
// embeds a vendor does not link the testing package.
type TB interface {
	Helper()
	Cleanup(func())
	Fatalf(format string, args ...any)
}

// Run opens a server with [Listen], [ListenTLS] or [Pipe], and closes it when
// the test ends. If it cannot be opened, the test fails.
func Run(tb TB, open func(http.Handler) (*Server, error), h http.Handler) *Server {
	tb.Helper()
	s, err := open(h)
	return closedBy(tb, s, err)
}

// RunFrames opens a server with [ListenFrames], and closes it when the test
// ends.
func RunFrames(tb TB, f *Frames) *Server {
	tb.Helper()
	s, err := ListenFrames(f)
	return closedBy(tb, s, err)
}

func closedBy(tb TB, s *Server, err error) *Server {
	tb.Helper()
	if err != nil {
		tb.Fatalf("cannot open: %v", err)
	}
	tb.Cleanup(s.Close)
	return s
}
