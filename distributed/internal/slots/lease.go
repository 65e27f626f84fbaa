package slots

import (
	"time"

	"github.com/weirgo/weir/distributed/internal/script"
)

// A lease is the slots of a lane that a replica was granted, each for one call in flight. Its
// arithmetic takes the instant. The zero lease has no slots.
type lease struct {
	has   int       // slots
	until time.Time // when they end; zero: there never were any

	// If replicas want more slots than there are, those that are not sure go to
	// others in turn.
	contended bool
	sure      int
	extra     int       // slots beyond the sure ones that it may have in its turn: one or none
	turn      time.Time // when its turn ends; zero: it has none

	freed time.Time // when another's lease may end; zero: no other has one
}

const (
	// slotTurn is how long a replica keeps the slot beyond its sure ones that it has
	// in turn: several calls of a usual length share what handing it on costs.
	slotTurn = 250 * time.Millisecond
	// slotIdle is how long a replica keeps slots that it does not use, while no other replica
	// wants them.
	slotIdle = 100 * time.Millisecond
)

// holds returns how many slots it has.
func (l *lease) holds(now time.Time) int {
	if !now.Before(l.until) {
		return 0
	}
	return l.has
}

// allows returns how many calls may be in flight: a call departs if there are fewer.
func (l *lease) allows(now time.Time) int {
	if !l.contended {
		return l.holds(now)
	}
	fair := l.sure
	if now.Before(l.turn) {
		fair += l.extra
	}
	return min(l.holds(now), fair)
}

// keep gives all slots back but some.
func (l *lease) keep(slots int) {
	if l.has = slots; l.has <= l.sure {
		l.turn = time.Time{}
	}
}

// renew applies a reply, read now, to a call that left at an instant.
func (l *lease) renew(got *script.LeaseReply, now, left time.Time, lasts time.Duration) {
	l.has, l.sure, l.extra, l.contended = got.Has, got.Sure, got.Extra, got.Contended
	l.until = left.Add(lasts) // the store counts from later
	if l.freed = (time.Time{}); got.Ends > 0 {
		l.freed = now.Add(got.Ends)
	}
	switch {
	case !l.contended || l.has <= l.sure:
		l.turn = time.Time{}
	case l.turn.IsZero():
		l.turn = now.Add(slotTurn)
	}
}
