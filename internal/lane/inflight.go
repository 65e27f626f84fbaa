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
type Flight struct{ lasts atomic.Bool }

// Fly makes f the flight of a call that has departed, and will not be given back.
func (l *Lane) Fly(f *Flight) { f.lasts.Store(l.Gate.Bounded()) }

// Land ends a flight in the lane, and lets others depart. Ending it again does nothing.
func (l *Lane) Land(f *Flight) {
	if f.lasts.CompareAndSwap(true, false) {
		l.Gate.Vacate()
	}
}

// Lose ends a flight that can no longer be ended otherwise, because the body of its answer was
// dropped and not closed. The first one in a lane is logged. Cancel frees the connection.
func (l *Lane) Lose(f *Flight, cancel context.CancelCauseFunc) {
	if !f.lasts.CompareAndSwap(true, false) {
		return
	}
	if l.lost.CompareAndSwap(false, true) {
		l.warn("weir: the body of an answer was never closed: its call counted as in flight until the garbage collector found it")
	}
	cancel(nil)
	l.Gate.Vacate()
}
