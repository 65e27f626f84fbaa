package shaping

import (
	"slices"
	"time"

	"github.com/weirgo/weir/throttle"
)

// Pause lets nobody depart for d from now, not those in line either. It never
// shortens a pause. Afterwards callers depart spaced, without saved burst.
func (q *Queue) Pause(d time.Duration) {
	now := q.Now()
	q.Reconcile(throttle.Fact{Refused: true, Until: now.Add(max(d, 1))})
}

// Reconcile tells the limiter what the vendor answered, and re-times the line:
// a refusal pauses or slows it, an answer may let it go faster. Permits granted
// before a pause to callers who have not woken yet are void. Instants are by
// [Queue.Now].
func (q *Queue) Reconcile(f throttle.Fact) {
	q.limiter.Reconcile(q.Now(), f)
	if !f.Refused && !q.busy.Load() {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.Now()
	if f.Refused && f.Until > now {
		q.pausedAt = now
	}
	q.advance(now)
}

// Tune replaces the limits and re-times everybody in line. If the error is not
// nil nothing has changed; it is the limiter's, for limits that do not validate or
// because it cannot replace them, which matches [errors.ErrUnsupported].
func (q *Queue) Tune(limits ...throttle.Limit) error {
	if err := q.limiter.Tune(q.Now(), limits...); err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.Now()
	q.readTolerance()
	q.rates = nil
	q.sift(now)
	q.advance(now)
	return nil
}

// sift sends away who, whatever those before it do, can no longer be let go in
// time, or at all.
func (q *Queue) sift(now throttle.Instant) {
	for _, w := range slices.Collect(q.line.all()) {
		forecast := q.limiter.Forecast(now, w.Request)
		if forecast.At == throttle.Never {
			if _, err := q.limiter.Take(now, w.Request); err != nil {
				q.sendAway(w, err)
				continue
			}
		}
		if forecast.At > w.deadline {
			q.dismiss(w, forecast, now)
		}
	}
}

// Settle states what a departure should have been charged: what goes beyond it
// is charged now, and what is given back goes to those in line. See
// [throttle.Limiter].
func (q *Queue) Settle(d Departure, actual throttle.Request) {
	q.limiter.Settle(q.Now(), d.Charged, d.Request, actual)
	q.wake()
}

// A State is a queue's state at one instant.
type State struct {
	throttle.State
	Waiting int    // callers in line
	Stale   uint64 // permits that were void because their caller woke too late
}

// State returns the state of the queue and of its limiter.
func (q *Queue) State() State {
	q.mu.Lock()
	defer q.mu.Unlock()
	return State{State: q.limiter.State(q.Now()), Waiting: q.line.count, Stale: q.stale}
}

// Waiting returns the number of callers in line, without a lock if there is none.
func (q *Queue) Waiting() int {
	if !q.busy.Load() {
		return 0
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.line.count
}
