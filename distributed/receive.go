package distributed

import (
	"time"

	"github.com/weirgo/weir/throttle"
)

// receive takes in a reply, and returns what the operator should know of it.
func (l *limiter) receive(req *request, got reply, took time.Duration, read time.Time) (events []string) {
	fresh := l.fresh(took)
	l.trip.saw(took, !l.met || l.out.lost)
	l.met = true
	if l.out.lost {
		l.find()
	}
	l.flight.reports = nil
	before := l.clock.inForce()
	l.clock.learn(got.now, l.clock.when(read), took, l.tolerance)
	if l.clock.inForce() < before {
		l.redate()
	}
	if got.lost {
		events = append(events, "weir: the state of shared limits was lost, and begins anew")
	}
	if got.differs && !l.differs {
		events = append(events, "weir: other replicas claim stricter limits, and those hold")
	}
	l.alive, l.period, l.share, l.differs = got.alive, got.period, got.share, got.differs
	if got.paused == 0 && got.seen.generation == l.seen.generation && got.seen.epoch > l.seen.epoch && l.flight.voided == l.voided && !l.pausing() {
		l.resume(l.clock.when(read))
	}
	l.enter(got.seen)
	if got.paused > got.now {
		l.paused = max(l.paused, l.clock.here(min(got.paused, got.now+micros(longestPause))))
	}
	if req.limits != l.encoded {
		return events // the limits were replaced meanwhile
	}
	for i, n := range l.flight.spent {
		l.out.spent[i] -= n
	}
	granted := l.granted(req, got)
	for i := range granted {
		l.late.came += uint64(granted[i].count)
	}
	if !fresh {
		l.late.note(granted)
	}
	if l.late.judge(l.clock.when(read)) && l.link.mayTell(read) {
		events = append(events, "weir: most permits are void before they can be used: the way to Redis is slow, or this process stands still")
	}
	if !fresh || l.closed || l.flight.voided != l.voided || got.seen.epoch < l.seen.epoch {
		l.drop(granted)
	} else {
		for _, p := range granted {
			l.hand.hold(p)
		}
	}
	l.again, l.nextAt = 0, l.clock.when(read)
	if len(req.groups) > 0 && len(got.permits) == 0 && got.first > 0 {
		l.refrain(l.nextAt, got.first)
	}
	for i, next := range got.next {
		l.next[i] = 0
		if next > got.now {
			l.next[i] = l.clock.here(next)
		}
	}
	if req.state {
		l.told, l.toldAt = got.limits, l.clock.here(got.now)
	}
	return events
}

// redate dates what is in hand by the difference in force. It was dated later
// than what comes now: both together would depart at more than the rate.
func (l *limiter) redate() {
	for i := range l.hand {
		if micros, ok := l.clock.there(l.hand[i].at); ok {
			l.hand[i].at = l.clock.here(micros)
		}
	}
}

// fresh reports whether the reply to a call that took so long may be believed. One
// that lay in the socket while this process stood still looks as if it had just
// been written.
func (l *limiter) fresh(took time.Duration) bool {
	if !l.met {
		return took <= l.tolerance+l.store.set.deadline/2
	}
	return took <= l.tolerance+max(l.trip.usual(), l.store.set.deadline)
}

// The rate in force, in thousandths of the configured one: all of it, and what a
// refusal leaves until the store has told.
const (
	fullShare = 1000
	cutShare  = fullShare * throttle.Cut
)

// granted returns the permits of a reply by the queue's clock.
func (l *limiter) granted(req *request, got reply) []permit {
	var out []permit
	g, left, ordinal := 0, 0, got.ordinal
	for _, p := range got.permits {
		for count := p.count; count > 0; {
			if left == 0 {
				if g == len(req.groups) {
					return out // more than was asked for
				}
				left = req.groups[g].count
				g++
			}
			n := min(count, left)
			granted := permit{at: l.clock.here(p.at), count: n, costs: req.groups[g-1].costs, of: got.seen.generation}
			if req.lesson != nil {
				granted.first = ordinal + 1
				ordinal += int64(n)
			}
			out = append(out, granted)
			count, left = count-n, left-n
		}
	}
	return out
}

// enter voids what is of an older epoch.
func (l *limiter) enter(seen echo) {
	same := seen.generation == l.seen.generation
	if same && seen.epoch < l.seen.epoch {
		return
	}
	switch {
	case !same:
		l.begun = l.clock.now()
	case seen.epoch > l.seen.epoch:
		l.drop(l.hand.before(throttle.Never))
	}
	l.seen = seen
}
