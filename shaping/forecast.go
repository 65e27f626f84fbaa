package shaping

import (
	"cmp"
	"context"
	"time"

	"github.com/weirgo/weir/throttle"
)

// A Forecast says how long a caller that comes now would wait. Wait is a bound, and
// Expected a guess: callers that come or leave, and calls that end, change it.
//
//	10 callers in line for 1/s, the next permit in 0.4 s: Wait is 0.4 s, Expected 10.4 s
type Forecast struct {
	Wait     time.Duration   // least wait of the caller; zero: no wait is certain
	Expected time.Duration   // wait behind the callers before it, at the known rates; never below Wait. Zero: it departs at once, or only calls in flight delay it
	Lane     string          // name of the [Roster] whose limiter holds the caller; "": none does, or the queue needs one limiter
	Limit    string          // name of the limit that holds the caller; "": no limit does
	Reason   throttle.Reason // what the caller would wait for; "": it would go at once
	Waiting  int             // callers in line that would depart before it; zero: it would be the first
}

// Forecast returns how long the turn would wait if it came now. It spends nothing, and
// takes no place in line. The error is the one with which the queue would reject the turn
// at once, as far as that is certain; nil: it would go or stand in line. The forecast
// holds with an error, too.
func (q *Queue) Forecast(ctx context.Context, t *Turn) (Forecast, error) {
	q.lock()
	defer q.unlock()
	now := q.Now()
	if q.due <= now { // its timer is late
		q.advance(now)
	}
	if q.closed {
		return Forecast{}, q.rejected(now)
	}
	w := &waiter{ctx: ctx, deadline: q.deadline(ctx, t.MaxWait, 0), urgent: urgencyOf(ctx).of(t).urgent()}
	t.stand(w)
	w.since = q.since(now)
	bound, head := q.forecast(w, now), q.line.first()
	q.stand(w, t, now) // for a moment, to find the callers before it
	defer q.line.leave(w)
	f := Forecast{Wait: max(0, bound.At.Sub(now)), Lane: bound.Lane, Limit: bound.Limit, Reason: bound.Reason}
	if f.Waiting, _ = q.ahead(w); f.Waiting > 0 && f.Reason == "" {
		first := q.forecast(cmp.Or(head, w), now) // with no head, others wait for the same limiter
		f.Lane, f.Limit, f.Reason = first.Lane, first.Limit, cmp.Or(first.Reason, throttle.ReasonRate)
	}
	f.Expected = q.expected(w, bound.At, now)
	return f, q.refusal(w, bound, now)
}

// refusal returns the error with which w, who is in line for a moment, would be rejected
// at once.
func (q *Queue) refusal(w *waiter, f throttle.Forecast, now throttle.Instant) error {
	switch {
	case f.At == throttle.Never:
		return q.impossible(w, now)
	case f.At > w.deadline:
		return q.reject(w, q.lateFor(w), now)
	case w == q.line.first() && f.At <= now && f.Reason == "":
		return nil
	}
	if _, ok := q.victims(w, f.At, now); !ok {
		return q.reject(w, ErrQueueFull, now)
	}
	return nil
}
