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
	flights *flight.Table
	most    int64         // zero: any number in this process
	urgent  int64         // of most, for urgent calls
	fleet   store.Flights // nil: any number in all processes

	// Places of all processes for urgent calls only; nil: none. A call that ends vacates one of
	// these first, so one is in use only while all others are.
	reserve  store.Flights
	reserved atomic.Int64 // places of reserve in use here
	line     int          // urgent callers in line
}

// Bind bounds the calls in flight in this process, and together with others: zero and
// nil mean any number. It is called before the first Take.
func (g *Gate) Bind(most int, fleet store.Flights) {
	g.bound.most, g.bound.fleet = int64(max(most, 0)), fleet
	g.list()
	if fleet != nil {
		fleet.Notify(func() { g.wake() })
	}
}

// BindUrgent adds places for urgent calls in all processes to those of Bind. It is called before
// the first Take.
func (g *Gate) BindUrgent(reserve store.Flights) {
	g.bound.reserve = reserve
	reserve.Notify(func() { g.wake() })
}

// Reserve reserves some of the calls that may be in flight in this process for urgent ones. It is
// called before the first Take.
func (g *Gate) Reserve(urgent int) { g.bound.urgent = int64(max(urgent, 0)) }

// Bounded reports whether the calls in flight are bounded.
func (g *Gate) Bounded() bool { return g.bound.holds() }

// InFlight returns the number of calls in flight, if it is bounded.
func (g *Gate) InFlight() int { return int(g.flights.Occupied()) }

// Flights returns how many calls may be in flight as a part of those of all processes.
// It is nil if they are not bounded together.
func (g *Gate) Flights() *throttle.FlightState {
	if g.bound.fleet == nil {
		return nil
	}
	s := g.bound.fleet.State()
	return &s
}

// Vacate reports that the answer of a call has ended, in a lane that bounds its calls in flight.
func (g *Gate) Vacate() {
	if g.bound.vacate() {
		g.wake()
	}
}

// holds reports whether there is a bound.
func (b *bound) holds() bool { return b.most > 0 || b.fleet != nil }

// mostFor returns how many calls there may be in flight in this process after one departs.
func (b *bound) mostFor(urgent bool) int64 {
	if urgent || b.most == 0 {
		return b.most
	}
	return max(b.most-b.urgent, 1)
}

// room returns for how many of n calls there is room, if urgent of them are urgent. The error means
// no room until the store is back.
func (b *bound) room(n, urgent int) (int, error) {
	if most := b.mostFor(urgent > 0); most > 0 {
		n = min(n, int(max(0, most-b.flights.Occupied())))
	}
	if b.fleet == nil || n == 0 {
		return n, nil
	}
	left, err := b.fleet.Room()
	if left < n && urgent > 0 && b.reserve != nil {
		var more int
		more, err = b.reserve.Room()
		left += min(more, urgent)
	}
	return min(n, left), err
}

// await receives the line whenever it changes.
func (b *bound) await(n int, line iter.Seq[throttle.Request]) {
	if b.fleet == nil {
		return
	}
	b.fleet.Await(n)
	if b.reserve != nil {
		b.line = urgentIn(line)
		b.reserve.Await(b.line)
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

// Board implements veto.
func (b *bound) Board(t flight.Turn) throttle.Instant {
	if !b.flights.Occupy(b.mostFor(t.Urgent)) {
		return throttle.Never
	}
	if !b.boardFleet(t.Urgent) {
		b.flights.Vacate()
		return throttle.Never
	}
	return 0
}

// boardFleet takes a place of all processes, and reports whether there was one.
func (b *bound) boardFleet(urgent bool) bool {
	switch {
	case b.fleet == nil || b.fleet.Board():
		return true
	case urgent && b.reserve != nil && b.reserve.Board():
		b.reserved.Add(1)
		return true
	}
	return false
}

// landFleet vacates a place of all processes, and reports whether all were taken before.
func (b *bound) landFleet() (held bool) {
	for n := b.reserved.Load(); n > 0; n = b.reserved.Load() {
		if b.reserved.CompareAndSwap(n, n-1) {
			return b.reserve.Land()
		}
	}
	return b.fleet != nil && b.fleet.Land()
}

// Leave implements veto.
func (b *bound) Leave(flight.Turn) { b.vacate() }

// vacate counts one call fewer, and reports whether a caller may have been held because the lane
// was full.
func (b *bound) vacate() (wasFull bool) {
	left := b.flights.Vacate()
	wasFull = left < b.most && left >= b.mostFor(false)-1
	return b.landFleet() || wasFull
}

// Room implements veto.
func (b *bound) Room(_ throttle.Instant, n int) int {
	n, _ = b.room(n, max(b.line, 1))
	return n
}
