package lane

import (
	"context"
	"sync/atomic"

	"github.com/weirgo/weir/throttle"
)

// A bound is the most calls of a lane that may be in flight at a time. A call is
// counted when it departs, and the Flight that it then has takes it out again:
// nothing is looked up.
type bound struct {
	most   int64        // zero: any number, and nothing is counted
	flying atomic.Int64 // calls in flight
	lost   atomic.Bool  // the body of an answer was never closed, and that was logged
}

func (b *bound) full() bool { return b.most > 0 && b.flying.Load() >= b.most }

// board counts one more call. It returns false if as many are in flight as may be.
func (b *bound) board() bool {
	for {
		n := b.flying.Load()
		if n >= b.most {
			return false
		}
		if b.flying.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// land counts one call fewer, and reports whether somebody may have been held
// because the lane was full.
func (b *bound) land() (wasFull bool) { return b.flying.Add(-1) == b.most-1 }

// takeBounded is Take if the calls in flight are bounded. No permit is spent while
// the lane is full.
func (g *gate) takeBounded(now throttle.Instant, r throttle.Request) (throttle.Instant, error) {
	if g.bound.full() && !g.closed(now) {
		return throttle.Never, nil
	}
	at, err := g.takeAny(now, r)
	if err != nil || at > now || g.bound.board() {
		return at, err
	}
	g.refund(now, at, r) // others departed meanwhile
	return throttle.Never, nil
}

// closed reports whether everybody is rejected now.
func (g *gate) closed(now throttle.Instant) bool {
	if !g.shut.Load() {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return now < g.closedTo
}

// A Flight is a call in flight in a lane that bounds their number. It ends once. The
// methods of a nil Flight, which an unbounded lane has, do nothing.
type Flight struct {
	lane *Lane
	over atomic.Bool
}

// Bounded reports whether the lane bounds its calls in flight.
func (l *Lane) Bounded() bool { return l.gate.bound.most > 0 }

// InFlight returns the number of calls in flight, if the lane bounds it.
func (l *Lane) InFlight() int { return int(l.gate.bound.flying.Load()) }

// Fly returns the flight of a call that has departed, and will not be given back any
// more.
func (l *Lane) Fly() *Flight {
	if !l.Bounded() {
		return nil
	}
	return &Flight{lane: l}
}

// Land ends the flight, and lets others go. Ending it again does nothing.
func (f *Flight) Land() {
	if f == nil || !f.over.CompareAndSwap(false, true) {
		return
	}
	g := f.lane.gate
	if !g.bound.land() {
		return
	}
	g.mu.Lock()
	wake := g.wake
	g.mu.Unlock()
	if wake != nil {
		wake()
	}
}

// Lose ends a flight that nobody else can end any more, because the body of its
// answer was dropped and not closed. The first one in a lane is logged. Cancel frees
// the connection.
func (f *Flight) Lose(cancel context.CancelCauseFunc) {
	if f.over.Load() {
		return
	}
	if f.lane.gate.bound.lost.CompareAndSwap(false, true) {
		f.lane.settings.Logger().Warn("weir: the body of an answer was never closed: its call counted as in flight until the garbage collector found it", "lane", f.lane.key)
	}
	cancel(nil)
	f.Land()
}
