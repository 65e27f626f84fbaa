package gate

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/throttle"
)

// The next call departs at the moment at which one ends. A caller that gives up in line takes no
// place, nor does a call that did not depart after all.
func TestBoundLetsTheNextGoWhenOneEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := lineOf(t, func(g *Gate) { g.Bind(Bound{Most: 2}) })
		l.want(0)
		l.want(0)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		if _, at, err := l.depart(ctx); err == nil || at > 20*time.Millisecond {
			t.Errorf("a third call departed after %v, %v", at, err)
		}
		time.AfterFunc(30*time.Millisecond, l.Vacate)
		l.want(at(20, 30))
		time.AfterFunc(10*time.Millisecond, func() {
			l.Refund(l.Now(), throttle.Grant{At: l.Now()}, l.request(1))
			l.wake()
		})
		l.want(at(20, 30, 10))
		if n := l.InFlight(); n != 2 {
			t.Errorf("%d in flight, want 2", n)
		}
	})
}

// While the store of a fleet's bound is lost its error rejects.
func TestBoundRejectsWhileItsStoreIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lost := errors.New("lost")
		l := lineOf(t, func(g *Gate) { g.Bind(Bound{Fleet: &lostSlots{err: lost}}) })
		if _, _, err := l.depart(t.Context()); !errors.Is(err, lost) || l.InFlight() != 0 {
			t.Errorf("depart = %v with %d in flight, want %v", err, l.InFlight(), lost)
		}
	})
}

// A call for which the store has no slot after all is not counted.
func TestBoundCountsNoCallThatItsStoreRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := lineOf(t, func(g *Gate) { g.Bind(Bound{Most: 5, Fleet: &takenSlots{}}) })
		now := l.Now()
		if granted, err := l.Take(now, l.request(1)); granted.At != throttle.Never || err != nil || l.InFlight() != 0 {
			t.Errorf("Take = %v, %v with %d in flight, want %v and 0", granted.At, err, l.InFlight(), throttle.Never)
		}
	})
}

// TakenSlots are the slots of a store that seems to have room.
type takenSlots struct{ fakeSlots }

func (s *takenSlots) Room() (int, error) { return 1, nil }

// LostSlots are the slots of a store that does not answer.
type lostSlots struct {
	fakeSlots
	err error
}

func (s *lostSlots) Room() (int, error) { return 0, s.err }

func (s *lostSlots) Await(int) {}

// at returns the sum of some milliseconds, less the one by which a wait ends before its
// deadline.
func at(all ...time.Duration) (sum time.Duration) {
	for _, d := range all {
		sum += d * time.Millisecond
	}
	return sum - time.Millisecond
}

// Calls that are not urgent leave places to urgent ones, and depart when those end.
func TestBoundReservesPlacesForUrgentCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := lineOf(t, func(g *Gate) {
			g.Bind(Bound{Most: 3, Urgent: 1})
		})
		l.want(0)
		l.want(0)
		urgent, other := l.request(1), l.request(1)
		urgent.Urgent = true
		if g, err := l.Take(l.Now(), other); err != nil || g.At <= l.Now() {
			t.Errorf("a third call departs: %v, %v", g, err)
		}
		if g, err := l.Take(l.Now(), urgent); err != nil || g.At > l.Now() {
			t.Errorf("a third call, which is urgent, is held: %v, %v", g, err)
		}
		time.AfterFunc(10*time.Millisecond, l.Vacate) // two are in flight, the most allowed
		time.AfterFunc(20*time.Millisecond, l.Vacate)
		l.want(20 * time.Millisecond)
	})
}

// Calls that are not urgent leave the reserve of all processes to urgent ones. A call that ends
// vacates a place of the reserve first.
func TestBoundReservesPlacesOfAllProcesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all, reserve := &fakeSlots{most: 2}, &fakeSlots{most: 1}
		l := lineOf(t, func(g *Gate) {
			g.Bind(Bound{Fleet: all, Reserve: reserve})
		})
		urgent, other := l.request(1), l.request(1)
		urgent.Urgent = true
		departs := func(what string, r throttle.Request, want bool) {
			t.Helper()
			if g, err := l.Take(l.Now(), r); err != nil || (g.At <= l.Now()) != want {
				t.Errorf("%s departs at %v, %v, want %v", what, g.At, err, want)
			}
		}
		departs("the first", other, true)
		departs("an urgent one", urgent, true)
		departs("a third", other, false)
		departs("a third, urgent one", urgent, true)
		departs("a fourth, urgent one", urgent, false)
		if l.Vacate(); all.aboard.Load() != 2 || reserve.aboard.Load() != 0 {
			t.Errorf("%d places are in use and %d of the reserve, want 2 and 0", all.aboard.Load(), reserve.aboard.Load())
		}
		departs("a third", other, false)
		l.Vacate()
		departs("a second", other, true)
	})
}

// However many calls ask at once, no more than the bound are in flight.
func TestBoundHoldsUnderConcurrency(t *testing.T) {
	limiter, err := throttle.Local{}.Limiter("test")
	if err != nil {
		t.Fatal(err)
	}
	g := NewGate(limiter, nil, nil, time.Minute)
	g.Bind(Bound{Most: 5})
	var flying atomic.Int64
	var wg sync.WaitGroup
	for w := range uint64(16) {
		wg.Go(func() {
			for i := range uint64(1000) {
				granted, err := g.Take(dawn, throttle.Request{N: 1, ID: w<<32 + i + 1})
				if err != nil || granted.At > dawn {
					continue
				}
				if n := flying.Add(1); n > 5 {
					t.Errorf("%d in flight, want 5 at most", n)
				}
				runtime.Gosched()
				flying.Add(-1)
				g.Vacate()
			}
		})
	}
	wg.Wait()
	if n := g.InFlight(); n != 0 {
		t.Errorf("%d in flight, want 0", n)
	}
}
