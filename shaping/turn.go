package shaping

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/weirgo/weir/throttle"
)

// A Turn is one request's place in line: its cost, and the instant of its first
// arrival, which it keeps when it comes back. The zero value is a probe, which waits
// for nothing but a pause. A turn belongs to one goroutine at a time.
type Turn struct {
	N       int           // permits of every limit beyond Each; no permits at all: the turn is a probe
	Each    []int         // permits of each limit, in the order of the limits
	MaxWait time.Duration // longest wait each time that it comes; zero: the queue's
	ID      uint64        // of the call whose turn it is, for a limiter that counts calls in flight; zero: it has none

	Priority Priority // its class; zero: the context's
	Tenant   string   // the tenant with whose callers it shares the class; "": the context's
	Weight   int      // of Tenant; below one means one
	Bytes    int64    // that the caller holds while it waits, such as its body's; see [Queue].MaxWaitingBytes

	arrived  throttle.Instant // first arrival; zero: not yet
	number   int64            // among arrivals of the same instant; zero: it never stood in line
	visits   int              // times it departed
	urgent   bool             // it departed as an urgent request
	granted  throttle.Grant   // what Take returned last
	all      *grants          // what it returned of each roster; nil: there is one limiter
	departed throttle.Instant // when it departed last; zero: never, or it was returned
	returned bool             // it did not depart after all
	lane     string           // roster whose limiter held it in its last wait that a hook saw; "": there is one limiter
	limit    string           // that held it in that wait; "": none did
	reason   throttle.Reason  // of that wait; "": there was none
}

// Arrived returns the instant of the turn's first arrival. It is zero if the
// turn has not arrived.
func (t *Turn) Arrived() throttle.Instant { return t.arrived }

// Departed returns the instant of the turn's last departure, when the queue
// last made sure that its permits hold. It is zero if the turn never departed,
// or was returned.
func (t *Turn) Departed() throttle.Instant { return t.departed }

// Held returns what held the turn in its last wait in line, and the name of the limit that
// did; "": it has not waited, or no limit held it. It is known if the queue has a Hook.
func (t *Turn) Held() (throttle.Reason, string) { return t.reason, t.limit }

// HeldIn returns the name of the [Roster] whose limiter held the turn when its last wait in
// line began; "": it has not waited, or the queue has one limiter. It is known if the queue
// has a Hook.
func (t *Turn) HeldIn() string { return t.lane }

// A Departure says what was charged for a turn that departed, and when.
// [Queue.Settle] and [Queue.Charge] take it.
type Departure struct {
	Request throttle.Request
	Grant   throttle.Grant // its instant is the departure's, or earlier by the tolerance at most

	all *grants // of each roster; nil: there is one limiter
}

// Departure returns the turn's last departure. Its grant is zero if the turn
// never departed, or was returned.
func (t *Turn) Departure() Departure {
	return Departure{Request: t.request(t.departed), Grant: t.granted, all: t.all}
}

// Part returns what the limiter of the i-th roster charged for a departure from the
// queue, for its own [throttle.Limiter.Settle].
func (q *Queue) Part(d Departure, i int) Departure {
	j := q.joint()
	if j == nil {
		return d
	}
	return Departure{Request: j.part(i, d.Request), Grant: d.all.of(i, d.Grant)}
}

// depart notes a departure at the instant now, by a grant of another.
func (t *Turn) depart(g throttle.Grant, all *grants, now throttle.Instant) {
	if t.arrived == 0 {
		t.arrived = now
	}
	t.granted, t.all, t.departed, t.returned = g, all, now, false
	t.visits++
}

// request returns what the turn asks the limiter for, in line since an instant.
func (t *Turn) request(since throttle.Instant) throttle.Request {
	return throttle.Request{N: t.N, Each: t.Each, Since: since, ID: t.ID, Urgent: t.urgent}
}

// mostBytes is the most bytes that a caller counts as holding, so that no sum of them overflows.
const mostBytes = 1 << 48

// stand makes w, who is new, the caller whose turn it is.
func (t *Turn) stand(w *waiter) {
	w.n, w.id, w.bytes, w.place, w.late = t.N, t.ID, min(max(t.Bytes, 0), mostBytes), place{t.arrived, t.number}, t.returned
	if t.Each != nil {
		each := each(slices.Clone(t.Each)) // the turn may change while w is still a leaver
		w.each = &each
	}
}

// Return gives back what the turn was granted last, if it did not depart after
// all. Those in line may have it; see [throttle.Limiter] for permits older than
// the tolerance.
// Returning a turn again does nothing.
func (q *Queue) Return(t *Turn) {
	if t.departed == 0 {
		return
	}
	out := outcome{grant: t.granted, all: t.all}
	t.granted, t.all, t.departed, t.returned = throttle.Grant{}, nil, 0, true
	t.visits--
	q.lock()
	defer q.unlock()
	now := q.Now()
	q.refund(now, out, t.request(0))
	q.advance(now)
}

// Charge charges a departure once more, without waiting, because what departed
// once was sent twice. Later departures pay for it.
func (q *Queue) Charge(d Departure) {
	twice := d.Request
	twice.N *= 2
	twice.Each = slices.Clone(twice.Each)
	for i := range twice.Each {
		twice.Each[i] *= 2
	}
	q.settleAll(d, twice)
}

// CheckWait returns the error with which WaitTurn would reject the turn after the
// delay, as far as that is certain now. It returns nil if the turn would stand in line
// or go. It spends nothing.
func (q *Queue) CheckWait(ctx context.Context, t *Turn, delay time.Duration) error {
	q.lock()
	defer q.unlock()
	now, delay := q.Now(), max(delay, 0)
	if q.closed {
		return q.rejected(now)
	}
	w := &waiter{ctx: ctx, deadline: q.deadline(ctx, t.MaxWait, delay), since: now, urgent: urgencyOf(ctx).of(t).urgent()}
	t.stand(w)
	forecast := q.forecast(w, now)
	if forecast.At == throttle.Never {
		if err := q.impossible(w, now); err != nil {
			return err
		}
	}
	if forecast.At = max(forecast.At, now.Add(delay)); forecast.At > w.deadline {
		return q.rejection(q.lateFor(w), forecast, now)
	}
	return nil
}

// of returns the urgency of a turn: what the turn says and, for the rest, what
// the context says. A caller without a turn has the context's.
func (u urgency) of(t *Turn) urgency {
	if t == nil {
		return u
	}
	u.priority = cmp.Or(t.Priority, u.priority)
	if t.Tenant != "" {
		u.tenant, u.weight = t.Tenant, t.Weight
	}
	return u
}
