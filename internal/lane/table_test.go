package lane

import (
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// lanesOf returns lanes of which three fit into the table, with these limits.
func lanesOf(t *testing.T, limits ...throttle.Limit) *Lanes {
	t.Helper()
	s := newLanes()
	s.settings.MaxLanes, s.settings.Learn = 3, false
	s.settings.Limits = func(string) []throttle.Limit { return limits }
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// call makes a request of a key that takes no time, and returns its lane.
func call(t *testing.T, s *Lanes, key string) *Lane {
	t.Helper()
	l, err := s.Enter(key)
	if err != nil {
		t.Fatal(err)
	}
	turn := shaping.Turn{N: 1, ID: 1}
	if err := l.Queue.WaitTurn(t.Context(), &turn); err != nil {
		t.Fatal(err)
	}
	l.Leave(&turn)
	return l
}

// keys returns the keys of the lanes in order; that of the shared lane is "".
func keys(s *Lanes) (all []string) {
	for _, l := range s.All() {
		all = append(all, l.Key)
	}
	slices.Sort(all)
	return all
}

func wantKeys(t *testing.T, s *Lanes, want ...string) {
	t.Helper()
	if got := keys(s); !slices.Equal(got, want) {
		t.Errorf("lanes %q, want %q", got, want)
	}
}

// In a full table the lane that was used least recently makes room for a new key, unless
// somebody is in it.
func TestFullTableForgetsTheLeastRecentlyUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := lanesOf(t)
		for _, key := range []string{"a", "b", "c", "a"} {
			call(t, s, key)
			time.Sleep(time.Second)
		}
		call(t, s, "d")
		wantKeys(t, s, "a", "c", "d")
		time.Sleep(time.Second)
		c, err := s.Enter("c")
		if err != nil {
			t.Fatal(err)
		}
		call(t, s, "e")
		wantKeys(t, s, "c", "d", "e")
		c.Leave(nil)
	})
}

// If no lane may go, new keys share one, which has no place in the table.
func TestKeysBeyondTheBoundShareALane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := lanesOf(t)
		for _, key := range []string{"a", "b", "c"} {
			if _, err := s.Enter(key); err != nil {
				t.Fatal(err)
			}
		}
		if d, e := call(t, s, "d"), call(t, s, "e"); d != e || !d.Shared || d.Key != "" {
			t.Errorf("two keys beyond the bound have the lanes %q and %q", d.Key, e.Key)
		}
		wantKeys(t, s, "", "a", "b", "c")
	})
}

// A lane whose limits are not whole does not go, and is asked again once they are.
func TestLaneStaysUntilItsBucketIsWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := lanesOf(t, throttle.TokenBucket(1, time.Minute, 1))
		for _, key := range []string{"a", "b", "c"} {
			call(t, s, key)
			time.Sleep(time.Second)
		}
		if l := call(t, s, "d"); !l.Shared {
			t.Error("a new key has a lane of its own, though no bucket is whole")
		}
		time.Sleep(57*time.Second - time.Millisecond)
		if s.present("e", true); len(keys(s)) != 4 {
			t.Errorf("lanes %q just before a bucket is whole, want all", keys(s))
		}
		time.Sleep(time.Millisecond)
		call(t, s, "e")
		wantKeys(t, s, "", "b", "c", "e")
	})
}

// A day's limit keeps its lane for the day, however long the lane was not used: a new one would
// grant the same permits again.
func TestLongUnusedLaneStaysUntilItsLimitIsWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := lanesOf(t, throttle.SlidingLog(1, 24*time.Hour))
		s.settings.MaxLanes = 1
		call(t, s, "a")
		time.Sleep(12 * time.Hour)
		call(t, s, "b")
		wantKeys(t, s, "", "a")
		time.Sleep(12 * time.Hour)
		call(t, s, "c")
		wantKeys(t, s, "", "c")
	})
}

// A lane that was not used for ten minutes goes when a new one is made, even if there is
// room. A paused one stays.
func TestLongUnusedLanesGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := lanesOf(t)
		call(t, s, "a")
		s.settings.MaxLanes = 100
		paused := call(t, s, "b")
		paused.Refused(t.Context(), &Answer{ID: 1}, 30*time.Minute)
		time.Sleep(idle)
		call(t, s, "c")
		wantKeys(t, s, "a", "b", "c")
		time.Sleep(time.Nanosecond)
		call(t, s, "d")
		wantKeys(t, s, "b", "c", "d")
	})
}

// A lane stays as long as its sub-lanes, which count in a table of their own.
func TestLaneStaysAsLongAsItsSublanes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := lanesOf(t)
		of := call(t, s, "a")
		for i := range 3 {
			if l := s.Sublane(of, strconv.Itoa(i), Paused); l == nil {
				t.Fatal("there is no room for a third sub-lane")
			}
		}
		if l := s.Sublane(of, "one more", Paused); l != nil {
			t.Error("a fourth sub-lane was made")
		}
		time.Sleep(time.Hour)
		call(t, s, "b")
		wantKeys(t, s, "a", "b")
		for _, l := range s.sublanesOf(of) {
			l.Leave(nil)
		}
		time.Sleep(time.Hour)
		call(t, s, "c") // the sub-lanes go first
		call(t, s, "d")
		if of.HasSublanes() || slices.Contains(keys(s), "a") {
			t.Errorf("lanes %q, with sub-lanes %v, want a gone", keys(s), of.HasSublanes())
		}
	})
}
