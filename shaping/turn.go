package shaping

import (
	"context"
	"slices"
	"time"

	"github.com/weirgo/weir/throttle"
)

// A Turn is one request's place in line: its cost and, once it has arrived, its
// arrival, which it keeps when it comes back. The zero value asks for nothing.
// A turn belongs to one goroutine at a time.
type Turn struct {
	N       int           // permits of every limit beyond Each; none: the turn is a probe
	Each    []int         // permits of each limit, in the order of the limits
	MaxWait time.Duration // longest wait each time it comes; zero: the queue's
	ID      uint64        // of the call whose turn it is, for a limiter that counts calls in flight; zero: it has none

	Priority Priority // class in which it waits; zero: what the context says
	Tenant   string   // with whose callers it shares the class; "": what the context says
	Weight   int      // of the Tenant; below one: one
	Bytes    int64    // that the caller holds while it waits, such as its body's; see [Queue].MaxWaitingBytes

	arrived  throttle.Instant // first arrival; zero: not yet
	number   int64            // among arrivals of the same instant; zero: it never stood in line
	visits   int              // times it departed
	charged  throttle.Instant // what Take answered last
	departed throttle.Instant // when that was; zero: it never departed, or was returned
}

// Arrived returns the instant of the turn's first arrival; zero where it has
// not arrived.
func (t *Turn) Arrived() throttle.Instant { return t.arrived }

// Departed returns the instant of the turn's last departure, that of the last
// look at whether its permits still hold; zero where it never departed, or was
// returned.
func (t *Turn) Departed() throttle.Instant { return t.departed }

// A Departure is what was charged for a turn that departed, and when, for
// [Queue.Settle] and [Queue.Charge].
type Departure struct {
	Request throttle.Request
	Charged throttle.Instant // which may be earlier than the turn departed, by the tolerance at most
}

// Departure returns the turn's last departure; its instant is zero if the turn
// never departed, or was returned.
func (t *Turn) Departure() Departure {
	return Departure{Request: t.request(t.departed), Charged: t.charged}
}

// depart notes a departure that Take answered with charged at the instant now.
func (t *Turn) depart(charged, now throttle.Instant) {
	if t.arrived == 0 {
		t.arrived = now
	}
	t.charged, t.departed = charged, now
	t.visits++
}

func (t *Turn) request(since throttle.Instant) throttle.Request {
	return throttle.Request{N: t.N, Each: t.Each, Since: since, ID: t.ID}
}

// Return gives back what the turn was granted last, where it did not depart
// after all: those in line may have it. Permits older than the tolerance are
// lost. Returning a turn again does nothing.
func (q *Queue) Return(t *Turn) {
	if t.departed == 0 {
		return
	}
	charged := t.charged
	t.charged, t.departed = 0, 0
	t.visits--
	q.mu.Lock()
	defer q.mu.Unlock()
	q.giveBack(q.Now(), charged, t.request(0))
}

// Charge charges the departure once more, although nobody waited for it: what
// was let go once was sent twice. The next departures pay for it.
func (q *Queue) Charge(d Departure) {
	twice := d.Request
	twice.N *= 2
	twice.Each = slices.Clone(twice.Each)
	for i := range twice.Each {
		twice.Each[i] *= 2
	}
	q.limiter.Settle(q.Now(), d.Charged, d.Request, twice)
}

// CheckWait returns the error with which WaitTurn would refuse the turn at once
// if it came after the delay, as far as that is certain now; nil if it would
// stand in line or go. It spends nothing.
func (q *Queue) CheckWait(ctx context.Context, t *Turn, delay time.Duration) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.Now()
	if q.closed {
		return q.refusal(ErrClosed, throttle.Forecast{}, now)
	}
	then := now.Add(max(delay, 0))
	forecast := q.limiter.Forecast(now, t.request(now))
	forecast.At = max(forecast.At, then)
	if forecast.At > q.deadline(ctx, t, then) {
		return q.refusal(ErrDeadline, forecast, now)
	}
	return nil
}
