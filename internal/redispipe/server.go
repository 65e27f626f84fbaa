package redispipe

import (
	"bytes"
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"
)

// A Fault is a fault of a server.
type Fault int

// The faults.
const (
	// Healthy is no fault.
	Healthy Fault = iota
	// Silent loses everything sent in either direction. A connection that lost something loses all
	// that follows, even when the server is healthy again.
	Silent
	// Loading answers every command with the error of a Redis that has just started.
	Loading
)

// A Server is one Redis. It is safe for concurrent use.
type Server struct {
	redis    *miniredis.Miniredis
	carrying sync.WaitGroup

	mu        sync.Mutex
	roundTrip time.Duration
	fault     Fault
	calls     int
}

// Start starts a server that is a round trip away from its clients: zero answers
// in the same instant. It ends with t.
func Start(t testing.TB, roundTrip time.Duration) *Server {
	t.Helper()
	s := &Server{redis: miniredis.NewMiniRedis(), roundTrip: roundTrip}
	s.redis.ClockTTL(true)
	conn, err := s.redis.Dial() // makes the server that takes the hook
	if err != nil {
		t.Fatal(err)
	}
	s.redis.Server().SetPreHook(s.arrive)
	_ = conn.Close()
	t.Cleanup(func() {
		s.redis.Close()
		s.carrying.Wait()
	})
	return s
}

// Client returns a client of the server. Each replica has its own. It is closed
// with t.
func (s *Server) Client(t testing.TB) *redis.Client {
	t.Helper()
	client := redis.NewClient(&redis.Options{
		Addr:   "127.0.0.1:6379", // a name would be looked up
		Dialer: func(context.Context, string, string) (net.Conn, error) { return s.dial() },
	})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// DeafClient returns a client whose subscriptions fail, so that its store receives no messages.
func (s *Server) DeafClient(t testing.TB) *redis.Client {
	t.Helper()
	options := *s.Client(t).Options()
	options.Dialer = func(context.Context, string, string) (net.Conn, error) {
		c, err := s.dial()
		return deaf{c}, err
	}
	client := redis.NewClient(&options)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// A deaf connection makes no subscriptions.
type deaf struct{ net.Conn }

func (d deaf) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte("subscribe")) {
		return 0, errors.New("deaf")
	}
	return d.Conn.Write(p)
}

// Break applies a fault to all commands from now on.
func (s *Server) Break(f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = f
}

// Delay changes the round trip of everything sent from now on.
func (s *Server) Delay(roundTrip time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.roundTrip = roundTrip
}

// Calls returns how many calls of scripts arrived, whatever their outcome.
func (s *Server) Calls() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls
}

// Forget loses all keys, as after a restart without persistence.
func (s *Server) Forget() { s.redis.FlushAll() }

// arrive counts a command, and reports whether its fault answered it.
func (s *Server) arrive(peer *server.Peer, command string, _ ...string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.Contains([]string{"EVAL", "EVALSHA"}, command) {
		s.calls++
	}
	if s.fault == Loading {
		peer.WriteError("LOADING Redis is loading the dataset in memory")
	}
	return s.fault == Loading
}

// way returns the duration of the trip, and whether its bytes are lost.
func (s *Server) way() (takes time.Duration, lost bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.roundTrip / 2, s.fault == Silent
}

// dial returns the client's end of a connection.
func (s *Server) dial() (net.Conn, error) {
	far, err := s.redis.Dial()
	if err != nil {
		return nil, err
	}
	near, client := net.Pipe()
	s.carrying.Go(func() { s.carry(near, far) })
	s.carrying.Go(func() { s.carry(far, near) })
	return client, nil
}
