package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"time"

	"github.com/redis/go-redis/v9"
)

// A server is a redis-server of our own without persistence.
type server struct {
	program string
	addr    string
	admin   *redis.Client
	cmd     *exec.Cmd
	ended   chan struct{}
}

// startServer returns once the server answers.
func startServer(ctx context.Context) (*server, error) {
	program, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, fmt.Errorf("fleet: %w", err)
	}
	for try := 0; ; try++ {
		s, err := launch(ctx, program)
		if err == nil || try == 5 {
			return s, err
		}
	}
}

func launch(ctx context.Context, program string) (*server, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	s := &server{program: program, addr: net.JoinHostPort("127.0.0.1", port)}
	s.admin = connect(s.addr)
	if err := s.start(ctx); err != nil {
		_ = s.admin.Close()
		return nil, err
	}
	return s, nil
}

// start starts the program, and returns once it answers.
func (s *server) start(ctx context.Context) error {
	host, port, err := net.SplitHostPort(s.addr)
	if err != nil {
		return err
	}
	s.cmd, s.ended = exec.Command(s.program, "--port", port, "--bind", host, "--dir", os.TempDir(),
		"--save", "", "--appendonly", "no", "--daemonize", "no", "--logfile", ""), make(chan struct{})
	dieWithParent(s.cmd)
	started := make(chan error)
	go s.serve(started)
	if err := <-started; err != nil {
		return fmt.Errorf("fleet: %w", err)
	}
	if err := s.answers(ctx); err != nil {
		s.kill()
		return err
	}
	return nil
}

// serve holds the thread that starts the server until it has ended. For the kernel that thread is
// the parent, and the server dies with it.
func (s *server) serve(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(s.ended)
	err := s.cmd.Start()
	started <- err
	if err == nil {
		_ = s.cmd.Wait() // a killed child is expected
	}
}

func (s *server) answers(ctx context.Context) error {
	limit := time.After(10 * time.Second)
	for {
		err := s.admin.Ping(ctx).Err()
		if err == nil {
			return nil
		}
		select {
		case <-s.ended:
			return fmt.Errorf("fleet: redis-server has ended: %v", s.cmd.ProcessState)
		case <-limit:
			return fmt.Errorf("fleet: redis-server does not answer: %w", err)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// has reports whether the server has a command, in lower case.
func (s *server) has(ctx context.Context, command string) (bool, error) {
	all, err := s.admin.Command(ctx).Result()
	return all[command] != nil, err
}

func (s *server) end() {
	_ = s.admin.Close()
	s.kill()
}

func (s *server) kill() {
	_ = s.cmd.Process.Kill() // it may have exited already
	<-s.ended
}

// restart kills the server, and starts an empty one at its address.
func (s *server) restart(ctx context.Context) error {
	s.kill()
	return s.start(ctx)
}

func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer func() { _ = l.Close() }()
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, err
}

// connect returns a client as a user makes it, with go-redis' defaults.
func connect(addr string) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: addr})
}
