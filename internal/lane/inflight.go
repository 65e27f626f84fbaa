package lane

import (
	"context"
	"sync/atomic"

	"github.com/weirgo/weir/throttle"
)

// A bound is the most calls of a lane that may be in flight at a time, in this process
// and in all that share its store. A call is counted when it departs, and the Flight
// that it then has takes it out again: nothing is looked up.
type bound struct {
	most   int64            // zero: any number in this process
	fleet  throttle.Flights // nil: any number in all processes
	flying atomic.Int64     // calls in flight; not counted without a bound
	lost   atomic.Bool      // the body of an answer was never closed, and that was logged
}

// holds reports whether there is a bound at all.
func (b *bound) holds() bool { return b.most > 0 || b.fleet != nil }

// room returns for how many of n calls there is room. The error says that there will
// be none until the store is back.
func (b *bound) room(n int) (int, error) {
	if b.most > 0 {
		n = min(n, int(max(0, b.most-b.flying.Load())))
	}
	if b.fleet == nil || n == 0 {
		return n, nil
	}
	left, err := b.fleet.Room()
	return min(n, left), err
}

// full reports whether there is no room for one call.
func (b *bound) full() bool {
	n, _ := b.room(1)
	return n == 0
}

// board counts one more call. It returns false if as many are in flight as may be.
func (b *bound) board() bool {
	for {
		n := b.flying.Load()
		if b.most > 0 && n >= b.most {
			return false
		}
		if b.flying.CompareAndSwap(n, n+1) {
			break
		}
	}
	if b.fleet == nil || b.fleet.Board() {
		return true
	}
	b.flying.Add(-1)
	return false
}

// land counts one call fewer, and reports whether somebody may have been held
// because the lane was full.
func (b *bound) land() (wasFull bool) {
	wasFull = b.flying.Add(-1) == b.most-1
	if b.fleet != nil && b.fleet.Land() {
		return true
	}
	return wasFull
}

// share bounds the calls in flight together with other processes.
func (g *gate) share(f throttle.Flights) {
	g.bound.fleet = f
	g.mu.Lock()
	wake := g.wake
	g.mu.Unlock()
	f.Notify(wake)
}

// takeBounded is Take if the calls in flight are bounded. No permit is spent while
// the lane is full.
func (g *gate) takeBounded(now throttle.Instant, r throttle.Request) (throttle.Instant, error) {
	if room, err := g.bound.room(1); room == 0 && !g.closed(now) {
		return throttle.Never, err
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
func (l *Lane) Bounded() bool { return l.gate.bound.holds() }

// Flights returns how many calls may be in flight as a part of those of all
// processes. It is nil if they are not bounded together.
func (l *Lane) Flights() *throttle.FlightState {
	if l.gate.bound.fleet == nil {
		return nil
	}
	s := l.gate.bound.fleet.State()
	return &s
}

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
