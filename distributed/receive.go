package distributed

import (
	"time"

	"github.com/weirgo/weir/internal/store"

	"github.com/weirgo/weir/throttle"
)

// receive takes in a reply, and returns what the operator should know of it.
func (l *limiter) receive(req *request, got reply, took time.Duration, read time.Time) (events []store.Event) {
	now := l.clock.when(read)
	fresh := l.trip.fresh(took, l.known.met, l.tolerance, &l.store.set)
	l.trip.saw(took, !l.known.met || l.outage.on)
	l.known.met = true
	l.outage.end()
	l.flight.reports = nil
	l.synchronize(got.now, now, took)
	if l.node.steps(got.now, read, took, l.tolerance) {
		events = append(events, store.EventClockStepped)
	}
	if got.lost {
		events = append(events, store.EventStateLost)
	}
	if got.healed {
		events = append(events, store.EventStateForeign)
	}
	if l.known.counted(&got) {
		if l.known.differs {
			events = append(events, store.EventLimitsDiffer)
		} else {
			events = append(events, store.EventLimitsAgree)
		}
	}
	l.followPause(&got, now)
	if req.limits != l.encoded {
		return events // the limits were replaced meanwhile
	}
	l.outage.told(l.flight.spent)
	if l.takeHand(&got, fresh, now) && l.link.mayTell(read) {
		events = append(events, store.EventPermitsVoid)
	}
	l.known.limits(&got, req.state, &l.clock, now)
	l.demand.again = 0
	if l.flight.ahead && got.first > 0 { // there is less than was asked for
		l.demand.spent = now.Add(l.store.set.horizon)
	} else if len(req.groups) > 0 && len(got.permits) == 0 && got.first > 0 {
		l.refrain(now, got.first)
	}
	return events
}

// synchronize takes in the clock of Redis as a reply told it.
func (l *limiter) synchronize(there int64, read throttle.Instant, took time.Duration) {
	before := l.clock.inForce()
	l.clock.learn(there, read, took, l.tolerance)
	if l.clock.inForce() < before {
		l.hand.redate(&l.clock)
	}
}

// followPause takes in the epoch of a reply, the pause that holds, and the end of one
// that was known here.
func (l *limiter) followPause(got *reply, now throttle.Instant) {
	if l.known.resumed(got) && l.flight.voided == l.voided && !l.pausing() {
		l.resume(now)
	}
	if l.known.voids(got.seen) {
		l.discard(l.hand.all()) // under the epoch that it is of: the store has taken back what was promised
	}
	l.known.enter(got.seen, &l.clock)
	if got.paused > got.now {
		l.paused = max(l.paused, l.clock.here(min(got.paused, got.now+micros(longestPause))))
	}
}

// takeHand puts the permits of a reply in hand, or discards those that are void. It
// reports whether most permits have come void for a while.
func (l *limiter) takeHand(got *reply, fresh bool, now throttle.Instant) (overdue bool) {
	granted := l.flight.granted(*got, &l.clock)
	l.late.count(granted, fresh)
	overdue = l.late.judge(now)
	if !fresh || l.closed || l.flight.voided != l.voided || got.seen.epoch < l.known.seen.epoch {
		l.discard(granted)
		return overdue
	}
	for _, p := range granted {
		l.hand.hold(p)
	}
	return overdue
}
