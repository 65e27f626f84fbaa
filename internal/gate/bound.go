package gate

import (
	"iter"
	"sync/atomic"

	"github.com/weirgo/weir/internal/flight"
	"github.com/weirgo/weir/internal/store"
	"github.com/weirgo/weir/throttle"
)

// A bound is the veto that limits the calls in flight, in this process and in all that share its
// store. A call counts until its answer has ended.
type bound struct {
	Bound
	open     atomic.Int64 // calls whose answers have not ended; raised under the lock
	reserved atomic.Int64 // places of Reserve in use here
	line     int          // urgent callers in line
}

// A Bound says how many calls may be in flight. The zero value means any number.
type Bound struct {
	Most   int           // in this process; zero: any number
	Urgent int           // of Most, for urgent calls only
	Fleet  store.Flights // in all processes; nil: any number

	// Reserve are places of all processes for urgent calls only; nil: none. A call that ends vacates
	// one of these first, so one is in use only while all others are.
	Reserve store.Flights
}

// Bind bounds the calls in flight. It is called before the first Take.
func (g *Gate) Bind(b Bound) {
	g.bound.Bound = b
	g.list()
	for _, places := range [...]store.Flights{b.Fleet, b.Reserve} {
		if places != nil {
			places.Notify(func() { g.wake() })
		}
	}
}

// Bounded reports whether the calls in flight are bounded.
func (g *Gate) Bounded() bool { return g.bound.Most > 0 || g.bound.Fleet != nil }

// InFlight returns the number of calls in flight, if it is bounded.
func (g *Gate) InFlight() int { return int(g.bound.open.Load()) }

// Flights returns how many calls may be in flight as a part of those of all processes.
// It is nil if they are not bounded together.
func (g *Gate) Flights() *throttle.FlightState {
	if g.bound.Fleet == nil {
		return nil
	}
	s := g.bound.Fleet.State()
	return &s
}

// Vacate reports that the answer of a call has ended, in a lane that bounds its calls in flight.
func (g *Gate) Vacate() {
	if g.bound.vacate() {
		g.wake()
	}
}

// mostFor returns how many calls there may be in flight in this process after one departs.
func (b *bound) mostFor(urgent bool) int {
	if urgent || b.Most == 0 {
		return b.Most
	}
	return max(b.Most-b.Urgent, 1)
}

// room returns for how many of n calls there is room, if urgent of them are urgent. The error means
// no room until the store is back, or that it is closed.
func (b *bound) room(n, urgent int) (int, error) {
	if most := b.mostFor(urgent > 0); most > 0 {
		n = min(n, max(0, most-int(b.open.Load())))
	}
	if b.Fleet == nil || n == 0 {
		return n, nil
	}
	left, err := b.Fleet.Room()
	if left < n && urgent > 0 && b.Reserve != nil {
		var more int
		more, err = b.Reserve.Room()
		left += min(more, urgent)
	}
	return min(n, left), err
}

// await receives the line whenever it changes.
func (b *bound) await(n int, line iter.Seq[throttle.Request]) {
	if b.Fleet == nil {
		return
	}
	b.Fleet.Await(n)
	if b.Reserve != nil {
		b.line = urgentIn(line)
		b.Reserve.Await(b.line)
	}
}

// inTurn returns a line whose callers need permits before this process gives its places to others.
func (b *bound) inTurn(now throttle.Instant, line iter.Seq[throttle.Request]) iter.Seq[throttle.Request] {
	if b.Fleet == nil {
		return line
	}
	turn := b.Fleet.Turn()
	if turn == 0 {
		return line
	}
	ends := now.Add(turn)
	return func(yield func(throttle.Request) bool) {
		for r := range line {
			if r.Until == 0 || r.Until > ends {
				r.Until = ends
			}
			if !yield(r) {
				return
			}
		}
	}
}

// urgentIn returns the number of urgent callers before the second one that is not. The first may be
// the head, because its class is owed a share.
func urgentIn(line iter.Seq[throttle.Request]) (urgent int) {
	others := 0
	for r := range line {
		if r.Urgent {
			urgent++
		} else if others++; others > 1 {
			break
		}
	}
	return urgent
}

// Ask implements veto.
func (b *bound) Ask(t flight.Turn) (throttle.Forecast, error) {
	if t.ID == 0 {
		return throttle.Forecast{}, nil
	}
	urgent := 0
	if t.Urgent {
		urgent = 1
	}
	if n, err := b.room(1, urgent); n == 0 {
		return throttle.Forecast{At: throttle.Never, Reason: throttle.ReasonConcurrency}, err
	}
	return throttle.Forecast{}, nil
}

// Board implements veto. There is room in this process since Ask.
func (b *bound) Board(t flight.Turn) throttle.Instant {
	switch {
	case b.Fleet == nil || b.Fleet.Board():
	case t.Urgent && b.Reserve != nil && b.Reserve.Board():
		b.reserved.Add(1)
	default:
		return throttle.Never
	}
	b.open.Add(1)
	return 0
}

// Leave implements veto.
func (b *bound) Leave(flight.Turn) { b.vacate() }

// vacate counts one call fewer, and reports whether a caller may have been held because the lane
// was full.
func (b *bound) vacate() (wasFull bool) {
	left := int(b.open.Add(-1))
	wasFull = left < b.Most && left >= b.mostFor(false)-1
	for n := b.reserved.Load(); n > 0; n = b.reserved.Load() {
		if b.reserved.CompareAndSwap(n, n-1) {
			return b.Reserve.Land() || wasFull
		}
	}
	return b.Fleet != nil && b.Fleet.Land() || wasFull
}

// Room implements veto.
func (b *bound) Room(_ throttle.Instant, n int) int {
	n, _ = b.room(n, max(b.line, 1))
	return n
}
