package lane

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// A shadow's line holds only the requests that still wait in it.
func TestShadowForgetsDepartures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := newShadow([]throttle.Limit{throttle.TokenBucket(1, time.Second, 1)}, 100)
		if err != nil {
			t.Fatal(err)
		}
		now := throttle.InstantOf(time.Now())
		for range 10_000 {
			for range 3 {
				s.Decide(now, throttle.Request{N: 1}, Held)
			}
			now = now.Add(3 * time.Second)
		}
		if len(s.line) > 200 || cap(s.line) > 1000 {
			t.Errorf("line of %d, room for %d, want no more than wait", len(s.line), cap(s.line))
		}
	})
}

// A request departs at once, waits in the shadow's line, or is rejected: because the line is
// full, or because no permits are ever enough.
func TestShadowDecides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := newShadow([]throttle.Limit{throttle.TokenBucket(1, time.Second, 2)}, 2)
		if err != nil {
			t.Fatal(err)
		}
		now := throttle.InstantOf(time.Now())
		for _, want := range []Counts{
			{{1}, {}, {}}, {{2}, {}, {}}, {{2, 1}, {}, {}}, {{2, 2}, {}, {}}, {{2, 2, 1}, {}, {}},
		} {
			if s.Decide(now, throttle.Request{N: 1}, Admitted); s.Counts() != want {
				t.Errorf("counts %v, want %v", s.Counts(), want)
			}
		}
		s.Decide(now.Add(time.Second-1), throttle.Request{N: 1}, Held) // no request has departed yet
		s.Decide(now.Add(time.Second), throttle.Request{N: 1}, Held)
		s.Decide(now.Add(time.Hour), throttle.Request{N: 3}, Rejected)
		if got, want := s.Counts(), (Counts{{2, 2, 1}, {0, 1, 1}, {0, 0, 1}}); got != want {
			t.Errorf("counts %v, want %v", got, want)
		}
	})
}

// A shadow without a bound of its own has the queue's default; one without limits is nil.
func TestShadowHasDefaults(t *testing.T) {
	if s, err := newShadow(nil, 5); s != nil || err != nil {
		t.Errorf("newShadow without limits = %v, %v, want nil", s, err)
	}
	for _, most := range []int{0, -1} {
		s, err := newShadow([]throttle.Limit{throttle.LeakyBucket(1, time.Hour)}, most)
		if err != nil || s.most != shaping.DefaultMaxWaiting {
			t.Errorf("most in line %d, %v, want %d", s.most, err, shaping.DefaultMaxWaiting)
		}
	}
	if _, err := newShadow([]throttle.Limit{{}}, 5); err == nil {
		t.Error("a limit that does not validate has a shadow")
	}
}

// The line reaches into later windows, each with its permits. An aligned window would be the wall
// clock's for all.
func TestShadowPlaysThroughWindowsToCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := newShadow([]throttle.Limit{throttle.FixedWindow(2, time.Minute)}, 100)
		if err != nil {
			t.Fatal(err)
		}
		now := throttle.InstantOf(time.Now()).Add(30 * time.Second)
		for range 6 {
			s.Decide(now, throttle.Request{N: 1}, Held)
		}
		if got := s.last.Sub(now); got != 2*time.Minute {
			t.Errorf("the sixth of six would depart after %v, want two minutes after the first", got)
		}
	})
}
