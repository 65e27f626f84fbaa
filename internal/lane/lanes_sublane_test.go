package lane

import (
	"testing"
	"time"

	"github.com/weirgo/weir/throttle"
)

// This looks inside: what it holds is over before anybody outside could see it.

// A sub-lane that is found while it leaves its table is not entered.
func TestSublaneOnItsWayOutIsNotEntered(t *testing.T) {
	s := newLanes()
	defer s.Close()
	of, err := s.Enter("a.test")
	if err != nil {
		t.Fatal(err)
	}
	leaving := s.Sublane(of, "route GET /", Paused)
	leaving.users.Add(-1)

	s.mu.Lock()
	if !leaving.retire(true) {
		t.Fatal("a sub-lane with nobody in it stays")
	}
	found := make(chan *Lane)
	go func() { found <- s.Sublane(of, "route GET /", Existing) }()
	awaitEntry(leaving)
	s.sublanes.remove(leaving)
	s.mu.Unlock()
	if got := <-found; got != nil {
		t.Errorf("found %p on its way out, want none", got)
	}

	// One that was made in its place meanwhile is entered instead.
	leaving = s.Sublane(of, "route GET /", Paused)
	leaving.users.Add(-1)
	s.mu.Lock()
	leaving.retire(true)
	go func() { found <- s.Sublane(of, "route GET /", Existing) }()
	awaitEntry(leaving)
	s.sublanes.remove(leaving)
	next, err := newLane(&s.settings, throttle.Local{}, of.Key, "", new([]throttle.Limit), false)
	if err != nil {
		t.Fatal(err)
	}
	next.sub = &sublane{of, "route GET /", Paused}
	next.enter()
	s.sublanes.add(next)
	s.mu.Unlock()
	if got := <-found; got != next || next.users.Load() != 2 {
		t.Errorf("found %p with %d requests, want %p with 2", got, next.users.Load(), next)
	}
}

// awaitEntry returns once somebody has found the lane, which is on its way out, and
// tried to enter it: the lock of the lanes comes next.
func awaitEntry(l *Lane) {
	for l.users.Load() == gone {
		time.Sleep(time.Millisecond)
	}
}
