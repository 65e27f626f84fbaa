package weir

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/throttle"
)

// These look inside: what they hold is over before anybody outside could see it.

// A sub-lane that is found while it leaves its table is not entered.
func TestSublaneOnItsWayOutIsNotEntered(t *testing.T) {
	transport := new(Transport)
	transport.once.Do(transport.init)
	defer transport.Close()
	s := transport.lanes
	of, err := s.enter("a.test")
	if err != nil {
		t.Fatal(err)
	}
	leaving := s.scope(of, "route GET /")
	leaving.users.Add(-1)

	s.mu.Lock()
	if !leaving.retire(true) {
		t.Fatal("a sub-lane with nobody in it stays")
	}
	found := make(chan *lane)
	go func() { found <- s.scoped(of, "route GET /") }()
	time.Sleep(20 * time.Millisecond) // it has found the lane, and waits for the lock
	s.scopes.remove(leaving)
	s.mu.Unlock()
	if got := <-found; got != nil {
		t.Errorf("found %p on its way out, want none", got)
	}

	// One that was made in its place meanwhile is entered instead.
	leaving = s.scope(of, "route GET /")
	leaving.users.Add(-1)
	s.mu.Lock()
	leaving.retire(true)
	go func() { found <- s.scoped(of, "route GET /") }()
	time.Sleep(20 * time.Millisecond)
	s.scopes.remove(leaving)
	next, _ := s.scopeLocked(of, "route GET /")
	s.mu.Unlock()
	if got := <-found; got != next || next.users.Load() != 2 {
		t.Errorf("found %p with %d requests, want %p with 2", got, next.users.Load(), next)
	}
}

// The line that a shadow plays through holds those who still wait in it, and not
// all who ever did.
func TestShadowForgetsWhoHasDeparted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := newShadow([]throttle.Limit{throttle.TokenBucket(1, time.Second, 1)}, 100)
		if err != nil {
			t.Fatal(err)
		}
		now := throttle.InstantOf(time.Now())
		for range 10_000 {
			for range 3 {
				s.decide(now, throttle.Request{N: 1}, Held)
			}
			now = now.Add(3 * time.Second)
		}
		if len(s.line) > 200 || cap(s.line) > 1000 {
			t.Errorf("line of %d, room for %d, want no more than wait", len(s.line), cap(s.line))
		}
	})
}
