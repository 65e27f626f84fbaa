package redistest

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
)

// A Server is a child that runs redis-server. Its methods are safe for
// concurrent use.
type Server struct {
	tb      testing.TB
	program program
	dir     string
	port    int
	config  []string // path of a file with options, if any

	admin admin

	turn  sync.Mutex // one start or end at a time
	mu    sync.Mutex
	args  []string
	child *child
}

// Start runs redis-server, or the server that [ProgramEnv] names, on a free port of 127.0.0.1 and returns once it
// answers. By default it keeps nothing on disk; args are options as on its command line, and override ours. DEBUG
// is allowed. The child is killed when the test ends, also when the test is killed (Linux only).
func Start(tb testing.TB, args ...string) *Server {
	tb.Helper()
	s := newServer(tb)
	s.start(args)
	return s
}

// newServer finds the program and makes the directory of a server.
func newServer(tb testing.TB) *Server {
	tb.Helper()
	program := theProgram(tb)
	// Not tb.TempDir: the path of a socket has to be short.
	dir, err := os.MkdirTemp("", "redis")
	if err != nil {
		tb.Fatal(err)
	}
	s := &Server{tb: tb, program: program, dir: dir}
	s.admin.path = filepath.Join(dir, "socket")
	tb.Cleanup(s.end)
	return s
}

// Addr returns the host and port at which clients reach the server. A restart keeps it.
func (s *Server) Addr() string { return net.JoinHostPort(loopback, strconv.Itoa(s.port)) }

func addrs(servers []*Server) []string {
	all := make([]string, len(servers))
	for i, s := range servers {
		all[i] = s.Addr()
	}
	return all
}

// Pid returns the child's process id, even after its end.
func (s *Server) Pid() int { return s.running().pid() }

// Dir returns the directory in which the server runs and keeps its files.
func (s *Server) Dir() string { return s.dir }

// Kill ends the server as SIGKILL does, and returns when it has exited.
func (s *Server) Kill() {
	s.tb.Helper()
	s.turn.Lock()
	defer s.turn.Unlock()
	if c := s.running(); c != nil {
		c.kill()
	}
	s.admin.close()
}

// Restart kills the server if it runs and starts it on the same port, with args, if any, in place
// of the previous ones. It returns once the server answers, even if it answers LOADING.
func (s *Server) Restart(args ...string) {
	s.tb.Helper()
	s.Kill()
	if len(args) == 0 {
		args = s.arguments()
	}
	s.start(args)
}

// Stop halts the server, as SIGSTOP does: its connections stay open and it does not answer. The
// test is skipped on systems without the signal.
func (s *Server) Stop() {
	s.tb.Helper()
	halt(s.tb, s.running())
}

// Continue resumes a stopped server, which runs the commands that it was sent meanwhile.
func (s *Server) Continue() {
	s.tb.Helper()
	resume(s.tb, s.running())
}

func (s *Server) running() *child {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.child
}

func (s *Server) arguments() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.args
}

// start runs the child until it answers. The first start looks for a port, and for another if that
// was taken meanwhile.
func (s *Server) start(args []string) {
	s.tb.Helper()
	s.turn.Lock()
	defer s.turn.Unlock()
	fixed := s.port != 0
	for try := 0; ; try++ {
		if !fixed {
			s.port = freePort(s.tb)
		}
		err := s.launch(args)
		if err == nil {
			return
		}
		if try == 5 {
			s.tb.Fatalf("redistest: %v\n%s", err, s.log())
		}
	}
}

func (s *Server) launch(args []string) error {
	c, err := spawn(s.program.path, s.dir, append(s.options(), args...))
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.args, s.child = args, c
	s.mu.Unlock()
	err = await("redis-server to answer", func() (bool, error) {
		_, err := s.admin.do([]string{"PING"})
		return answered(err), c.failure()
	})
	if err != nil {
		c.kill()
	}
	return err
}

// options returns our options, which precede the caller's. Without the 5 s that a master waits for
// more replicas, the first is served at once.
func (s *Server) options() []string {
	return slices.Concat(s.config, []string{
		"--port", strconv.Itoa(s.port), "--bind", loopback,
		"--unixsocket", s.admin.path, "--dir", s.dir, "--daemonize", "no", "--logfile", "",
		"--save", "", "--appendonly", "no", "--repl-diskless-sync-delay", "0",
	}, s.program.debugs())
}

// must runs a command without which the test cannot go on.
func (s *Server) must(args ...string) any {
	s.tb.Helper()
	reply, err := s.Do(args...)
	if err != nil {
		s.tb.Fatalf("redistest: %q: %v", args, err)
	}
	return reply
}

// log returns the end of the server's output.
func (s *Server) log() string {
	b, _ := os.ReadFile(filepath.Join(s.dir, logName))
	return string(b[max(0, len(b)-4096):])
}

func (s *Server) end() {
	s.Kill()
	if err := os.RemoveAll(s.dir); err != nil {
		s.tb.Errorf("redistest: %v", err)
	}
}
