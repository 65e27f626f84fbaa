package shaping

import (
	"cmp"
	"io"
	"math"
	"time"

	"github.com/weirgo/weir/throttle"
)

// approach returns the present instant and the one before which w cannot go. The
// limiter needs much stack for that: so it is asked here, before join. If it
// panics, the queue is unlocked.
func (q *Queue) approach(w *waiter) (now, bound throttle.Instant) {
	asked := false
	defer func() {
		if !asked {
			q.unlock()
		}
	}()
	now = q.Now()
	if q.due <= now && !w.late { // its timer is late
		q.advance(now)
	}
	w.since = q.since(now)
	bound = q.forecast(w, now).At
	asked = true
	return now, bound
}

// join puts w in line, who cannot go before bound, or answers at once, by granting
// or rejecting it. It returns the call that w must run, if there is one. It unlocks the
// queue.
func (q *Queue) join(w *waiter, t *Turn, bound, now throttle.Instant) (begun *Wait, call func(), err error) {
	defer q.unlock()
	if q.closed {
		return nil, nil, q.rejected(now)
	}
	came, head := w.place, q.line.first()
	q.stand(w, t, now)
	g, err := q.ask(w, bound, now)
	if err == nil && g.At <= now {
		q.pass(w, g, now)
		w.place = came
		return nil, nil, nil
	}
	shed := false
	if err == nil {
		shed, err = q.admit(w, came, bound, now)
	}
	if err != nil {
		q.line.leave(w)
		w.place = came
		if w.late || q.joint() != nil || q.line.first() != head { // w was before it for a moment
			q.advance(now)
		}
		return nil, nil, err
	}
	if q.Hook != nil {
		begun = q.beginWait(w, t, now)
	}
	call = q.await(w, g.At, now)
	// W may go before its class's first caller, so that another class is due.
	if first := q.line.first(); shed || w.late || first != w && first != head {
		q.advance(now)
	}
	return begun, call, nil
}

// rejected returns the error of a closed queue. It is not inlined, because that would enlarge the
// stack of join, which calls others.
//
//go:noinline
func (q *Queue) rejected(now throttle.Instant) *Error {
	return q.rejection(ErrClosed, throttle.Forecast{}, now)
}

// pass lets w, a newcomer in the line, depart at once.
func (q *Queue) pass(w *waiter, g throttle.Grant, now throttle.Instant) {
	w.out = outcome{grant: g, all: w.out.all, granted: now}
	q.line.depart(w)
	q.caughtUp(g.At, w.since)
	if q.line.count > 0 { // it was more urgent than they are
		q.advance(now)
	}
}

// take asks the limiter for what w asks for.
func (q *Queue) take(w *waiter, now throttle.Instant) (throttle.Grant, error) {
	if j := q.joint(); j != nil {
		return j.take(w, now)
	}
	return q.limiter.Take(now, w.request())
}

// forecast returns the limiter's forecast for w.
func (q *Queue) forecast(w *waiter, now throttle.Instant) throttle.Forecast {
	return q.limiter.Forecast(now, w.request())
}

// ask asks the limiter for w, a newcomer in the line, if w goes next. If w can
// never be granted, it asks even so, for the error.
// If w is not granted, the instant is after now: that at which it asks again, or Never if
// the head does so before it.
func (q *Queue) ask(w *waiter, bound, now throttle.Instant) (throttle.Grant, error) {
	joint := q.joint() != nil
	if bound == throttle.Never && joint {
		if err := q.impossible(w, now); err != nil {
			return throttle.Grant{}, err
		}
	}
	if (bound != throttle.Never || joint) && w != q.next(now) {
		return throttle.Grant{At: throttle.Never}, nil
	}
	return q.take(w, now)
}

// beginWait returns what the hook receives of a wait that begins. It is not
// inlined, as rejected.
//
//go:noinline
func (q *Queue) beginWait(w *waiter, t *Turn, now throttle.Instant) *Wait {
	f := q.forecast(w, now)
	begun := &Wait{
		Queue:   q,
		Planned: max(0, f.At.Sub(now)),
		Waiting: q.line.count - 1,
		Lane:    f.Lane,
		Limit:   f.Limit,
		Reason:  cmp.Or(f.Reason, throttle.ReasonRate),
	}
	if t != nil {
		begun.Visits = t.visits
		t.reason, t.lane, t.limit = begun.Reason, begun.Lane, begun.Limit
	}
	return begun
}

// stand puts w in line, at its place. A turn that passed before without
// standing in line goes before those who joined the line in the instant in
// which it passed.
func (q *Queue) stand(w *waiter, t *Turn, now throttle.Instant) {
	w.cost = q.burden(w)
	q.numbered++
	number := q.numbered
	if j := q.joint(); j != nil {
		number = j.junction.numbered.Add(1)
	}
	switch {
	case w.arrived == 0:
		w.place = place{now, number}
	case w.number == 0:
		w.number = math.MinInt64 + number
	}
	q.line.share = q.lowPriorityShare()
	q.line.enter(w, urgencyOf(w.ctx).of(t))
}

// since returns when a newcomer counts as having come. That is now, or earlier by as
// much as a caller left the line late a moment ago. Without this, a single worker in a
// loop would fall behind by a timer's lateness with each call. It has no line in which
// that lateness could count.
func (q *Queue) since(now throttle.Instant) throttle.Instant {
	if late := time.Duration(q.late.Load()); late > 0 && now <= throttle.Instant(q.lateTo.Load()) {
		return now.Add(-late)
	}
	q.caughtUp(now, now)
	return now
}

// caughtUp ends the credit for lateness that since gives a newcomer. It does so if the
// permits were charged at the very instant from which the newcomer counted. Nothing
// fell due during the lateness then, so it has delayed nobody, and its credit must not
// let several callers leave at once.
func (q *Queue) caughtUp(charged, since throttle.Instant) {
	if late := q.late.Load(); late > 0 && charged == since {
		q.late.CompareAndSwap(late, 0)
	}
}

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

// An alarm rings once, after a time. Only the last setting counts. A [time.Timer] is one.
type alarm interface {
	Reset(d time.Duration) bool
	Stop() bool
}

// ringAt sets the alarm. At Never, it does not ring.
func (q *Queue) ringAt(at, now throttle.Instant) {
	q.rings = at
	if at != throttle.Never && q.alarm == nil && q.PrecisePacing { // nobody waits while a queue's fields are set
		q.alarm = newKernelTimer(q.wake) // nil: the system has no such timer
	}
	switch {
	case at == throttle.Never:
		if q.alarm != nil {
			q.alarm.Stop()
		}
	case q.alarm == nil:
		q.alarm = time.AfterFunc(at.Sub(now), q.wake)
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
