package reserve

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/weirgo/weir/distributed/internal/script"
	"github.com/weirgo/weir/internal/store"
	"github.com/weirgo/weir/throttle"
)

// receive applies a reply, and returns the events in it that concern an operator.
func (l *Limiter) receive(got *script.Reply, took time.Duration, read time.Time) (events []store.Event) {
	req := &l.flight.request
	now := l.clock.When(read)
	fresh := l.Trip.Fresh(took, l.Met, l.tolerance, &l.Hub.Set)
	l.Answered(took)
	l.flight.reports = nil
	before := l.clock.InForce()
	if l.clock.Learn(got.Now, now, took, l.tolerance); l.clock.InForce() < before {
		l.hand.redate(&l.clock)
	}
	if l.Node.Steps(got.Now, read, took, l.tolerance) {
		events = append(events, store.EventClockStepped)
	}
	if got.Lost {
		events = append(events, store.EventStateLost)
	}
	if got.Healed {
		events = append(events, store.EventStateForeign)
	}
	if l.known.counted(got) {
		if l.known.differs {
			events = append(events, store.EventLimitsDiffer)
		} else {
			events = append(events, store.EventLimitsAgree)
		}
	}
	l.followPause(got, now)
	if req.Limits != l.encoded {
		return events // the limits were replaced meanwhile
	}
	for i, n := range l.flight.spent {
		l.outage.spent[i] -= n
	}
	if l.takeHand(got, fresh, now) && l.Link.Overdue.Due(read) {
		events = append(events, store.EventPermitsVoid)
	}
	l.known.limits(got, req.State, &l.clock, now)
	l.demand.again, l.known.kept = 0, 0
	if l.flight.ahead() && got.First > 0 { // there is less than was asked for
		l.demand.spent = now.Add(l.Hub.Set.Horizon)
	} else if l.refused(got) {
		l.refrain(now, got.First)
	}
	return events
}

// followPause applies the epoch of a reply, the pause that holds, and the end of one that was
// known here. A reply may be older than a message, or than an end that is still to be sent.
func (l *Limiter) followPause(got *script.Reply, now throttle.Instant) {
	switch k := &l.known; {
	case got.Seen.Generation != k.seen.Generation: // that voids nothing
		k.seen, k.begun = got.Seen, l.clock.Now()
	case got.Seen.Epoch > k.seen.Epoch:
		if got.Paused == 0 && l.flight.voided == l.voided && !l.pausing() {
			l.resume(now)
		}
		l.discard(l.hand.all()) // under the epoch that it is of: the store has taken back what was promised
		fallthrough
	case got.Seen.Epoch == k.seen.Epoch:
		k.seen = got.Seen
	}
	if got.Paused > got.Now && got.Seen.Epoch >= l.known.ended && !l.resuming() {
		l.paused = max(l.paused, l.clock.Here(min(got.Paused, got.Now+script.Micros(script.LongestPause))))
	}
}

// takeHand puts the permits of a reply in hand, or discards those that are void. It
// reports whether most permits have come void for a while.
func (l *Limiter) takeHand(got *script.Reply, fresh bool, now throttle.Instant) (overdue bool) {
	granted := l.flight.granted(got, &l.clock)
	l.late.came += awaited(granted)
	if !fresh {
		l.late.void += awaited(granted)
	}
	overdue = l.late.judge(now)
	if !fresh || l.Closed || l.flight.voided != l.voided || got.Seen.Epoch < l.known.seen.Epoch {
		l.discard(granted)
		return overdue
	}
	for _, p := range granted {
		l.hand.hold(p)
	}
	return overdue
}

// An overdue counts the permits that came from the store, and those of them that were void
// before a caller could take them, because the way to Redis is slow or this process stands
// still.
type overdue struct {
	came, void uint64           // permits since that instant
	since      throttle.Instant // zero: no permit came yet
}

const (
	overdueEvery = 10 * time.Second // how long permits are counted, and
	overdueLeast = 8                // how many at least, before they are judged
)

// awaited returns how many permits were asked for by callers in line. The others may be void
// only because no caller came.
func awaited(permits []permit) (n uint64) {
	for i := range permits {
		if !permits[i].ahead {
			n += uint64(permits[i].count)
		}
	}
	return n
}

// judge reports whether most of the permits counted so far were void, once there
// are enough, and begins anew.
func (o *overdue) judge(now throttle.Instant) bool {
	if o.since == 0 {
		o.since = now
	}
	if now.Sub(o.since) < overdueEvery || o.came < overdueLeast {
		return false
	}
	most := 2*o.void > o.came
	*o = overdue{since: now}
	return most
}

// unconfirmed is how long a pause holds that only a message has announced. Any publisher can
// forge one, and the script replies well within that time.
const unconfirmed = time.Second

// Deliver applies a message that the lane is paused from now on, or that a pause was ended.
// Malformed messages are ignored.
func (l *Limiter) Deliver(message string) {
	first, second, _ := strings.Cut(message, " ")
	epoch, err := strconv.ParseInt(first, 10, 64)
	micros, malformed := strconv.ParseInt(second, 10, 64)
	if cmp.Or(err, malformed) != nil || micros < 0 || micros > script.Micros(script.LongestPause) {
		return
	}
	remaining := time.Duration(micros) * time.Microsecond
	l.Mu.Lock()
	s := l.learning
	if epoch <= l.known.seen.Epoch && l.Met || l.Closed || s != nil && s.revokes {
		l.Mu.Unlock()
		return
	}
	// The next call returns what the other replicas have learned. Callers in line make one,
	// unless the learned limit holds them.
	asks := s != nil && (!l.demand.waiting || !s.counted || s.pace.NotBefore > l.view().Now)
	if (asks || remaining > unconfirmed) && !l.Lost {
		l.start(nil)
	}
	now := l.clock.Now()
	// The epoch itself comes with the reply to the next call.
	if until := now.Add(min(remaining, unconfirmed)); until > l.paused && !l.resuming() {
		l.pause(until)
		l.outage.reconcile(now, throttle.Fact{Until: until})
	} else {
		l.voided++
		l.discard(l.hand.all())
	}
	if remaining == 0 {
		l.known.ended = max(l.known.ended, epoch)
		if !l.pausing() {
			l.resume(now)
		}
	}
	l.Mu.Unlock()
	l.WakeQueue()
}
