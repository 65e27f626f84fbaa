package fakestore

import (
	"sync"
	"time"

	"github.com/weirgo/weir/throttle"
)

// A Store is one replica of those that share a server. It is a
// [throttle.Store].
type Store struct {
	server  *Server
	timeout time.Duration

	ended   chan struct{}
	calling sync.WaitGroup

	mu     sync.Mutex
	closed bool
}

// leastTimeout is how long a call may take at least.
const leastTimeout = 50 * time.Millisecond

// Store returns one more replica.
func (s *Server) Store() *Store {
	return &Store{server: s, timeout: max(leastTimeout, 4*s.roundTrip), ended: make(chan struct{})}
}

// Limiter implements [throttle.Store]. The first limits under a key hold.
func (s *Store) Limiter(key string, limits ...throttle.Limit) (throttle.Limiter, error) {
	resolved, err := throttle.Resolve(limits...)
	if err != nil {
		return nil, err
	}
	l := &limiter{store: s, key: key, limits: resolved, tolerance: throttle.Tolerance(resolved...)}
	if err := s.server.join(l); err != nil {
		return nil, err
	}
	return l, nil
}

// Close ends the calls under way, and all that would come.
func (s *Store) Close() error {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		close(s.ended)
	}
	s.mu.Unlock()
	s.calling.Wait()
	return nil
}

// start runs one bounded call in the background.
func (s *Store) start(call func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.calling.Go(call)
	return true
}

// exchange is one call to the server: it meets its fault, or acts half way
// through the round trip.
func (s *Store) exchange(act func() error) error {
	if !s.sleep(s.server.roundTrip / 2) {
		return errEnded
	}
	err := errFailing
	switch s.server.arrive() {
	case Healthy:
		err = act()
	case Silent:
		s.sleep(s.timeout)
		return errTimeout
	}
	if !s.sleep(s.server.roundTrip - s.server.roundTrip/2) {
		return errEnded
	}
	return err
}

// sleep reports whether the time passed before the store ended.
func (s *Store) sleep(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-s.ended:
		return false
	}
}
