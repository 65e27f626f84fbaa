package shaping

import (
	"cmp"
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

// pass lets w, who has just entered the line, depart at once.
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

// ask asks the limiter for w, who has just entered the line, if w goes next. If w can
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
