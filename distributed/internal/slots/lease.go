package slots

import (
	"time"

	"github.com/weirgo/weir/distributed/internal/script"
)

// A lease is the slots of a lane that a replica was granted, each for one call in flight. Its
// arithmetic takes the instant. The zero lease has no slots.
type lease struct {
	script.LeaseReply           // the last one, but for slots that were given back since
	until             time.Time // when they end; zero: never granted
	turn              time.Time // end of its turn; zero: no turn
	unused            bool      // no call has departed in its turn
	freed             time.Time // when another's lease may end; zero: no other lease
}

const (
	// slotTurn is how long a replica keeps the slot that it has in turn: several calls of a usual
	// length share the cost of handing it on.
	slotTurn = 250 * time.Millisecond
	// unusedTurn is how long it keeps the slot until a call departs: its permit may fall due later. With
	// five seconds, calls that take ten to earn waited for good beside cheaper ones.
	unusedTurn = time.Minute

	// slotIdle is how long a replica keeps slots that it does not use, while no other replica
	// wants them.
	slotIdle = 100 * time.Millisecond
)

// holds returns how many slots it has.
func (l *lease) holds(now time.Time) int {
	if !now.Before(l.until) {
		return 0
	}
	return l.Has
}

// allows returns how many calls may be in flight: a call departs if there are fewer.
func (l *lease) allows(now time.Time) int {
	if !l.Contended {
		return l.holds(now)
	}
	fair := l.Sure
	if now.Before(l.turn) {
		fair += l.Extra
	}
	return min(l.holds(now), fair)
}

// keep gives back all slots but n.
func (l *lease) keep(slots int) {
	if l.Has = slots; l.Has <= l.Sure {
		l.turn = time.Time{}
	}
}

// renew applies a reply, read now, to a call sent at an instant, while calls are in flight.
func (l *lease) renew(got *script.LeaseReply, now, left time.Time, lasts time.Duration, flying int) {
	l.LeaseReply = *got
	l.until = left.Add(lasts) // the store counts from later
	if l.freed = (time.Time{}); got.Ends > 0 {
		l.freed = now.Add(got.Ends)
	}
	switch {
	case !l.Contended || l.Has <= l.Sure:
		l.turn = time.Time{}
	case l.turn.IsZero() && flying > l.Sure:
		l.turn = now.Add(slotTurn)
	case l.turn.IsZero():
		l.turn, l.unused = now.Add(unusedTurn), true
	}
}
