package slots

import (
	"time"

	"github.com/weirgo/weir/distributed/internal/script"
)

// A lease is the slots of a lane that a replica was granted, each for one call in flight. Its
// arithmetic takes the instant. The zero lease has no slots.
type lease struct {
	has   int       // slots
	until time.Time // when they end; zero: never granted

	// If replicas want more slots than there are, the slots that are not sure are lent in turns.
	contended bool
	sure      int
	extra     int       // slots beyond the sure ones in its turn: 0 or 1
	turn      time.Time // end of its turn; zero: no turn

	freed time.Time // when another's lease may end; zero: no other lease
}

const (
	// slotTurn is how long a replica keeps the slot that it has in turn: several calls of a usual
	// length share the cost of handing it on.
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

// keep gives back all slots but n.
func (l *lease) keep(slots int) {
	if l.has = slots; l.has <= l.sure {
		l.turn = time.Time{}
	}
}

// renew applies a reply, read now, to a call sent at an instant.
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
