package lane

import (
	"context"
	"sync/atomic"

	"github.com/weirgo/weir/internal/flight"
)

// A Seen is the state of a lane when a call departed from it. Zero belongs to a call that
// did not depart, and to all calls of a lane that does not learn.
type Seen = flight.Seen

// A Flight is a call in flight in a lane that bounds their number. It ends once. The
// zero value, which calls of an unbounded lane have, is not in flight.
type Flight struct {
	lane *Lane
	over atomic.Bool
}

// Bounded reports whether the lane bounds its calls in flight.
func (l *Lane) Bounded() bool { return l.Gate.Bounded() }

// Fly makes f the flight of a call that has departed, and will not be given back.
func (l *Lane) Fly(f *Flight) {
	if l.Bounded() {
		f.lane = l
	}
}

// Lasts reports whether the flight has begun and not ended.
func (f *Flight) Lasts() bool { return f.lane != nil && !f.over.Load() }

// Land ends the flight, and lets others depart. Ending it again does nothing.
func (f *Flight) Land() {
	if f.lane != nil && f.over.CompareAndSwap(false, true) {
		f.lane.Gate.Vacate()
	}
}

// Lose ends a flight that can no longer be ended otherwise, because the body of its answer was
// dropped and not closed. The first one in a lane is logged. Cancel frees the connection.
func (f *Flight) Lose(cancel context.CancelCauseFunc) {
	if !f.Lasts() {
		return
	}
	if f.lane.lost.CompareAndSwap(false, true) {
		f.lane.warn("weir: the body of an answer was never closed: its call counted as in flight until the garbage collector found it")
	}
	cancel(nil)
	f.Land()
}
