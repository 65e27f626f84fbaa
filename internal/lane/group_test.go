package lane

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/shaping"
)

// A sub-lane that nobody has used for long takes its groups along, and later its lane goes, too. A
// call of the lane alone is in no group.
func TestGroupsGoWithTheirSublane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newLanes()
		defer s.Close()
		l, err := s.Enter("a.test")
		if err != nil {
			t.Fatal(err)
		}
		sub := s.Sublane(l, "route GET /", Paused)
		g, err := s.Join(l, sub)
		if err != nil {
			t.Fatal(err)
		}
		turn := shaping.Turn{N: 1, ID: 1}
		if err := g.Queue.WaitTurn(t.Context(), &turn); err != nil {
			t.Fatal(err)
		}
		for _, of := range []*Lane{l, sub} {
			of.Landed(t.Context(), &Answer{ID: 1, Seen: of.Course.Look(), Departed: turn.Departed(), Served: true})
		}
		g.Leave()
		sub.Leave(&turn)
		alone := shaping.Turn{N: 1, ID: 2}
		if g, err := s.Join(l); g != nil || err != nil || l.Queue.WaitTurn(t.Context(), &alone) != nil {
			t.Errorf("a call of the lane alone is in group %v, %v", g, err)
		}
		l.Landed(t.Context(), &Answer{ID: 2, Seen: l.Course.Look(), Departed: alone.Departed(), Served: true})
		l.Leave(&alone)
		for _, want := range []int{1, 0} {
			o, err := s.Enter("b.test " + strconv.Itoa(want))
			if err != nil {
				t.Fatal(err)
			}
			o.Leave(nil)
			if n := len(s.groups.of); n != want {
				t.Errorf("%d groups, want %d", n, want)
			}
			time.Sleep(2 * idle)
		}
		if _, err := s.Enter("d.test"); err != nil || s.keyed.find("a.test") != nil {
			t.Errorf("the lane stays without its sub-lane: %v", err)
		}
	})
}

// A wide lane takes its groups with it, although the narrow one stays.
func TestGroupsGoWithTheirWideLane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newLanes()
		defer s.Close()
		narrow, wide := call(t, s, "narrow"), call(t, s, "wide")
		g, err := s.Join(narrow, wide)
		if err != nil {
			t.Fatal(err)
		}
		g.Leave()
		narrow.enter() // somebody stays
		time.Sleep(2 * idle)
		call(t, s, "next")
		wantKeys(t, s, "narrow", "next")
		if n := len(s.groups.of); n > 0 {
			t.Errorf("%d groups, want 0", n)
		}
	})
}
