package shaping

import (
	"slices"
	"time"

	"github.com/weirgo/weir/throttle"
)

// Pause lets no caller depart for d from now. It never shortens a pause. After it, the
// limits pace the line, without a saved burst.
func (q *Queue) Pause(d time.Duration) {
	now := q.Now()
	q.Reconcile(throttle.Fact{Until: now.Add(max(d, 1))})
}

// Reconcile passes to the limiter what the vendor answered, and re-times all callers in
// line. If permits were granted before a pause, and their caller has not woken up yet,
// they are void. Instants are by [Queue.Now].
func (q *Queue) Reconcile(f throttle.Fact) {
	q.limiter.Reconcile(q.Now(), f)
	for _, o := range q.peers() {
		o.reconciled(f)
	}
}

// reconciled re-times all callers in line after the limiter has taken in what the vendor
// answered.
func (q *Queue) reconciled(f throttle.Fact) {
	q.lock()
	defer q.unlock()
	now := q.Now()
	if !f.Resumed && f.Until > now {
		q.pausedAt.Store(int64(now))
	}
	q.advance(now)
}

// Tune replaces the limits, and re-times all callers in line. If it returns an error,
// nothing has changed. The error is the limiter's. It says which limits do not
// validate, or matches [errors.ErrUnsupported] if limits cannot be replaced.
func (q *Queue) Tune(limits ...throttle.Limit) error {
	if err := q.limiter.Tune(q.Now(), limits...); err != nil {
		return err
	}
	for _, o := range q.peers() {
		o.retune()
	}
	return nil
}

// retune re-times all callers in line after the limits have changed.
func (q *Queue) retune() {
	q.lock()
	defer q.unlock()
	now := q.Now()
	q.readTolerance()
	q.rates = nil
	q.sift(now)
	q.advance(now)
}

// sift rejects each caller who can no longer be granted, or no longer in time, even if
// all callers before it left.
func (q *Queue) sift(now throttle.Instant) {
	for _, w := range slices.Collect(q.line.all()) {
		forecast := q.forecast(w, now)
		if forecast.At == throttle.Never {
			if err := q.impossible(w, now); err != nil {
				q.sendAway(w, err)
				continue
			}
		}
		if forecast.At > w.deadline {
			q.dismiss(w, forecast, now)
		}
	}
}

// impossible returns the error of the limiter that never grants what w asks for. It spends
// nothing.
func (q *Queue) impossible(w *waiter, now throttle.Instant) error {
	if j := q.joint(); j != nil {
		return j.impossible(now, w.request())
	}
	_, err := q.limiter.Take(now, w.request())
	return err
}

// Settle states what a departure should have been charged. If that is more, the
// difference is charged now. If it is less, the difference goes to those in
// line, as far as [throttle.Limiter] allows.
func (q *Queue) Settle(d Departure, actual throttle.Request) {
	q.settleAll(d, actual)
	q.notified() // of all who need the limiter, if a roster was made meanwhile
}

// settleAll passes to the limiter, or to each of them, what a departure cost.
func (q *Queue) settleAll(d Departure, actual throttle.Request) {
	if j := q.joint(); j != nil {
		j.settle(q.Now(), d, actual)
		return
	}
	q.limiter.Settle(q.Now(), d.Grant, d.Request, actual)
}

// A State is the state of a queue and of its limiter at one instant.
type State struct {
	throttle.State
	Waiting int    // callers in line
	Stale   uint64 // permits that were void because their caller woke up too late
}

// State returns the state of the queue and of its limiter.
func (q *Queue) State() State {
	q.lock()
	defer q.unlock()
	s := State{State: q.limiter.State(q.Now()), Waiting: q.line.count, Stale: q.stale}
	if r := q.roster(); r != nil {
		r.junction.mu.Lock()
		s.Waiting, s.Stale = int(r.waiting.Load()), r.stale
		r.junction.mu.Unlock()
	}
	return s
}

// Waiting returns the number of callers in line. If there are none, it takes no
// lock.
func (q *Queue) Waiting() int {
	if r := q.roster(); r != nil {
		return int(r.waiting.Load())
	}
	if !q.busy.Load() {
		return 0
	}
	return q.count()
}

// count returns the number of callers in line. Waiting is inlined without it.
func (q *Queue) count() int {
	q.lock()
	defer q.unlock()
	return q.line.count
}
