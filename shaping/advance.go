package shaping

import (
	"io"

	"github.com/weirgo/weir/throttle"
)

// await makes w, who is in line, wait. If it is next, it asks the limiter again at the instant at.
// If no other caller waits, w may be lent the limiter's call.
func (q *Queue) await(w *waiter, at, now throttle.Instant) (call func()) {
	w.waits = true
	q.expiring.add(w)
	if w == q.next(now) {
		q.due = at
	}
	q.retime(now)
	r := q.meet()
	if r == nil || r.lender == nil || q.line.count > 1 {
		q.fetch(now)
		return nil
	}
	q.fetching = true
	return r.lender.Lend(now, w.deadline, r.line)
}

// drop takes w out of the line without a departure.
func (q *Queue) drop(w *waiter) {
	q.line.leave(w)
	q.expiring.remove(w)
}

// letGo lets w depart.
func (q *Queue) letGo(w *waiter, out outcome) {
	q.line.depart(w)
	q.expiring.remove(w)
	q.out.add(w, out)
	q.asleep.add(w)
}

// sendAway takes w out of the line with an error.
func (q *Queue) sendAway(w *waiter, err error) {
	q.drop(w)
	q.out.add(w, outcome{err: err})
}

// wake asks the limiter again for all callers in line, because an earlier answer may no
// longer hold.
func (q *Queue) wake() {
	q.lock()
	defer q.unlock()
	q.readTolerance()
	if q.line.count > 0 { // else it was settled when the last one left
		q.rings = 0
		q.advance(q.Now())
	}
}

// advance lets callers depart that can depart now, rejects those whose wait is certain to end too
// late, and sets the timer for the rest. When it rejects the head, the next caller may ask for less
// and depart at once, so it starts again.
func (q *Queue) advance(now throttle.Instant) {
	for q.grant(now) && q.expire(now) {
	}
	q.settle(now)
}

// grant lets callers at the head of the line depart, until one cannot. It reports whether there is
// such a head; it asks again at q.due.
func (q *Queue) grant(now throttle.Instant) (waits bool) {
	due := min(q.due, now) // of the head; callers behind it have no instant
	q.due = throttle.Never
	for gone := 0; q.line.count > 0; due = now {
		w := q.next(now)
		if w.ctx.Err() != nil { // its goroutine is about to leave
			gone = q.dropHead(w, gone)
			continue
		}
		g, err := q.take(w, now)
		if err == nil && g.At > now {
			q.due = g.At
			if w = q.holds(now); w == nil {
				return true
			}
			if g, err = q.take(w, now); err == nil && g.At > now {
				return true
			}
			if err == nil && w != q.line.first() {
				q.line.owe(w)
			}
		}
		if err != nil {
			q.sendAway(w, err)
			continue
		}
		q.letGo(w, outcome{grant: g, all: w.out.all, granted: now, due: max(g.At, due)})
	}
	return false
}

// next returns the caller to ask for: the head of the line. If permits that a limit reserves
// hold the head, which is owed its class's share, it is an urgent caller who can go sooner.
func (q *Queue) next(now throttle.Instant) *waiter {
	w := q.line.first()
	if len(q.line.classes) < 2 || w.urgent {
		return w
	}
	u, r := q.line.classes[0].first(), w.request()
	if !u.urgent {
		return w
	}
	held := q.limiter.Forecast(now, r)
	r.Urgent = true
	freed := q.limiter.Forecast(now, r)
	inFlight := held.Reason == throttle.ReasonConcurrency && freed.Reason != held.Reason // its end is unknown
	if inFlight || held.At > freed.At && held.At > q.forecast(u, now).At {
		return u
	}
	return w
}

// holds returns a caller in line whose permits are due although the head's are not, or
// nil if there is no such caller.
func (q *Queue) holds(now throttle.Instant) *waiter {
	r, place := q.remote.Load(), -1
	switch j := q.joint(); {
	case j != nil:
		place = j.holder(now, r.line)
	case r != nil && r.lender != nil:
		place = r.lender.Holder(now, r.line)
	}
	if place < 0 {
		return nil
	}
	for w := range q.line.inOrder() {
		if place == 0 {
			return w
		}
		place--
	}
	return nil
}

// expire rejects the callers whose deadline has come or cannot be met any more. It reports whether
// others may depart now: the line has a new head.
func (q *Queue) expire(now throttle.Instant) (again bool) {
	head := q.line.first()
	for i := range q.expiring {
		for group := &q.expiring[i]; len(group.byDeadline) > 0; {
			w := group.byDeadline[0]
			forecast := q.forecast(w, now)
			if w.deadline > now && forecast.At <= w.deadline {
				break
			}
			q.dismiss(w, forecast, now)
		}
	}
	return q.line.first() != head
}

// dismiss rejects w because of its deadline.
func (q *Queue) dismiss(w *waiter, f throttle.Forecast, now throttle.Instant) {
	err := q.rejection(q.lateFor(w), f, now)
	err.Waiting-- // the others
	q.sendAway(w, err)
}

// settle sets the alarm for the head's next question or for the next deadline,
// and shows a remote limiter the callers in line.
func (q *Queue) settle(now throttle.Instant) {
	q.retime(now)
	q.fetch(now)
}

// retime sets the alarm.
func (q *Queue) retime(now throttle.Instant) {
	waits := q.line.count > 0
	q.busy.Store(waits || q.closed)
	at := min(q.due, q.expiring.next())
	if !waits {
		at = throttle.Never
	}
	if at != q.rings {
		q.ringAt(at, now)
	}
}

// fetch shows a remote limiter the callers in line.
func (q *Queue) fetch(now throttle.Instant) {
	r, waits := q.remote.Load(), q.line.count > 0
	if r != nil && (waits || q.fetching) {
		q.fetching = waits
		r.Fetch(now, q.line.count, r.line)
	}
}

// ringAt sets the alarm. At Never, it does not ring.
func (q *Queue) ringAt(at, now throttle.Instant) {
	q.rings = at
	switch {
	case at == throttle.Never:
		if q.alarm != nil {
			q.alarm.Stop()
		}
	case q.alarm == nil:
		q.alarm = newAlarm(at.Sub(now), q.PrecisePacing, q.wake)
	default:
		q.alarm.Reset(at.Sub(now))
	}
}

// Close rejects all callers in line, and all who come later, with [ErrClosed]. It does
// not close the limiter. It always returns nil. Calling it again does nothing.
func (q *Queue) Close() error {
	q.lock()
	defer q.unlock()
	if q.closed {
		return nil
	}
	q.closed = true
	now := q.Now()
	rejection := q.rejected(now)
	rejection.Waiting-- // the others
	for q.line.count > 0 {
		q.sendAway(q.line.first(), rejection)
	}
	q.settle(now)
	if j := q.joint(); j != nil {
		_ = j.Close() // it returns no error
	}
	if c, ok := q.alarm.(io.Closer); ok {
		_ = c.Close() // no caller waits any more
	}
	return nil
}
