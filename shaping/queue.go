package shaping

import (
	"cmp"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirgo/weir/throttle"
)

// DefaultMaxWaiting is the most callers that wait in a queue if it sets no
// number. It is enough for every worker of a process. The memory of a waiting
// caller is about 3 KB, so that of a full line is about 30 MB.
const DefaultMaxWaiting = 10_000

// deadlineMargin is how long before a context's deadline a wait ends. The
// caller then sees the queue's error, which says what held it, and not the
// context's.
const deadlineMargin = time.Millisecond

// A Line says how many callers may wait in a queue, for how long, and who yields. The zero
// value works.
type Line struct {
	// MaxWaiting is the most callers in line. Zero means [DefaultMaxWaiting].
	MaxWaiting int

	// MaxWaitingBytes is the most bytes that the callers in line may hold: the Bytes of
	// their [Turn], for HTTP the Content-Length of their bodies. One caller alone may hold
	// more. Zero means any number.
	MaxWaitingBytes int64

	// MaxWait is the longest wait of a caller, with or without a deadline. Zero means no
	// bound but the context.
	MaxWait time.Duration

	// MaxForecast is the longest time that a newcomer may be expected to wait, if all callers
	// before it depart at the configured rates. The expectation is a guess, and may
	// reject a caller who would have been in time. Zero means that no caller is rejected for
	// a guess.
	MaxForecast time.Duration

	// Overflow says which caller is rejected if the line is full: if more than MaxWaiting
	// callers wait, or if they hold more than MaxWaitingBytes. Zero means OverflowReject,
	// which rejects the newcomer.
	Overflow Overflow

	// LowPriorityShare is the share of departures, by cost, that the callers below the
	// most urgent class are guaranteed together, so that no caller starves. Among those
	// callers, the one that came first goes first. They keep what they are owed while
	// the more urgent class is empty. If one leaves the line without a departure, what
	// was saved for it is not passed to callers who ask for less. The share is at most
	// one half. Zero means [DefaultLowPriorityShare]; negative means none.
	LowPriorityShare float64

	// PrecisePacing lets departures follow their schedule within a fraction of a
	// millisecond, instead of one or two. On Linux the kernel's timer is used then. It takes
	// a file descriptor for each queue in which a caller has waited, until the queue is
	// closed or collected. Elsewhere nothing changes, nor in a bubble of testing/synctest,
	// whose time is exact. If false, the runtime's timer is used.
	PrecisePacing bool
}

// A Queue is a line of callers in front of a [throttle.Limiter]. Make it with
// [NewQueue], and set its fields before first use. It is safe for concurrent
// use.
//
// A queue has no goroutine of its own. A caller that joins the line at its head, one
// that leaves it, and the queue's one timer move the line on, under the lock.
type Queue struct {
	Line
	Hook *Hook // observes waits; nil: nothing does

	limiter throttle.Limiter
	remote  atomic.Pointer[remote] // the limiter, if it is one; nil: it is not, or nobody has waited yet

	started time.Time        // when the queue read the wall clock
	base    throttle.Instant // what the wall clock said then

	leavers leavers

	// Callers who find these as they are now go, or depart, without the lock.
	late      atomic.Int64 // by how many nanoseconds the last late caller left the line after it was due
	lateTo    atomic.Int64 // the instant until which late counts
	tolerance atomic.Int64 // how late a permit may be spent, in nanoseconds
	pausedAt  atomic.Int64 // the instant at which a pause was set last
	busy      atomic.Bool  // somebody waits, or the queue is closed

	mu       sync.Mutex // taken with lock and unlock
	closed   bool
	fetching bool  // the remote has seen somebody in line
	numbered int64 // numbers given to places
	line     line
	out      outgoing  // those who came out of it, to be woken once the lock is free
	rates    []float64 // permits per second of each limit; nil: not read yet
	expiring deadlines
	alarm    alarm            // nil: nobody has waited yet
	rings    throttle.Instant // when the alarm rings; Never: it is not set; zero: it may have rung
	due      throttle.Instant // when the head asks again; Never: only a message of the limiter can help it
	stale    uint64           // permits that were void when their caller woke up
	asleep   *sleepers        // those who were let go and have not run; nil: no permit was ever void
}

// NewQueue returns a queue in front of the limiter. It panics if the limiter is
// nil.
func NewQueue(limiter throttle.Limiter) *Queue {
	if limiter == nil {
		panic("shaping: NewQueue of a nil limiter")
	}
	q := newQueue(limiter)
	q.readTolerance()
	if r, ok := limiter.(throttle.Remote); ok {
		r.Notify(q.notified)
	}
	return q
}

// newQueue returns a queue that knows nothing of its limiter yet.
func newQueue(limiter throttle.Limiter) *Queue {
	started := time.Now()
	return &Queue{
		limiter: limiter,
		started: started,
		base:    throttle.InstantOf(started),
		due:     throttle.Never,
	}
}

// readTolerance reads the limiter's permit tolerance, which changes with its
// limits.
func (q *Queue) readTolerance() {
	tolerance := q.limiter.Tolerance()
	if tolerance <= 0 {
		tolerance = throttle.Tolerance()
	}
	q.tolerance.Store(int64(tolerance))
}

// Now returns the present instant by the queue's clock. All instants that the
// queue takes or returns are by that clock.
func (q *Queue) Now() throttle.Instant {
	return q.base + throttle.Instant(time.Since(q.started))
}

// Wait waits for one permit of every limit. If it returns nil, the permits are spent
// for the caller, who departs now. Otherwise nothing is spent. The error is ctx's if
// the caller gave up, and an [*Error] if the queue rejected it. For what can never be
// granted it is the limiter's, such as [throttle.ErrExceedsBurst].
func (q *Queue) Wait(ctx context.Context) error { return q.WaitN(ctx, 1) }

// WaitN is [Queue.Wait] for n permits of every limit.
func (q *Queue) WaitN(ctx context.Context, n int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if q.idle() {
		now := q.Now()
		if g, _, err := q.try(now, throttle.Request{N: n, Since: now}); err == nil && g.At <= now {
			return nil
		}
	}
	w := q.newWaiter(ctx, 0)
	w.n = n
	err := q.wait(w, nil)
	if err == nil {
		q.departed(w)
	}
	return err
}

// TryN spends n permits of every limit and returns true if they are at hand and the
// line is empty. Otherwise it returns false at once, also if n can never be granted or
// the queue is closed, and nothing is spent. It calls no store: over limits that
// processes share it returns true only if this process has permits left over.
func (q *Queue) TryN(n int) bool {
	q.lock()
	defer q.unlock()
	now := q.Now()
	if q.due <= now { // its timer is late
		q.advance(now)
	}
	if q.closed || q.line.count > 0 {
		return false
	}
	since := q.since(now)
	g, _, err := q.try(now, throttle.Request{N: n, Since: since})
	if err != nil || g.At > now {
		return false
	}
	q.caughtUp(g.At, since)
	return true
}

// WaitTurn is [Queue.Wait] for a turn. A turn that comes back stands where its
// first arrival puts it.
func (q *Queue) WaitTurn(ctx context.Context, t *Turn) error {
	if t.reason != "" {
		t.reason, t.lane, t.limit = "", "", ""
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if q.idle() {
		now := q.Now()
		if g, all, err := q.try(now, t.request(now)); err == nil && g.At <= now {
			t.depart(g, all, now)
			return nil
		}
	}
	w := q.newWaiter(ctx, t.MaxWait)
	t.stand(w)
	err := q.wait(w, t)
	t.arrived, t.number, t.urgent = w.arrived, w.number, w.urgent
	if err == nil {
		t.depart(w.out.grant, w.out.all, w.out.granted)
		q.departed(w)
	}
	return err
}

// try spends permits for a caller who does not stand in line.
func (q *Queue) try(now throttle.Instant, r throttle.Request) (g throttle.Grant, all *grants, err error) {
	if j := q.joint(); j != nil {
		return j.try(now, r)
	}
	g, err = q.limiter.Take(now, r)
	return g, nil, err
}

// idle reports whether permits may be taken without the lock: the line is empty, and no
// lateness counts for the next caller.
func (q *Queue) idle() bool { return !q.busy.Load() && q.late.Load() == 0 }

// wait waits for w, whose permits may not be at hand. If a permit is void when
// its caller wakes up, the caller goes back into the line. A caller of WaitN has
// no turn.
//
// Each waiting goroutine keeps its stack, and a stack begins with 2 KB, of which
// 1.1 KB may be used. So what is needed on the way to the select is kept in the
// waiter, not on the stack.
func (q *Queue) wait(w *waiter, t *Turn) error {
	var ended func(error)
	w.urgent = urgencyOf(w.ctx).of(t).urgent()
	for {
		q.lock() // not in join, which uses more stack
		now, bound := q.approach(w)
		begun, call, err := q.join(w, t, bound, now)
		if !w.waits {
			return conclude(ended, err)
		}
		if call != nil { // before the hook, which may take long
			q.borrow(w, call)
		}
		if begun != nil && ended == nil {
			ended = q.announce(w, begun)
		}
		select {
		case <-w.ready:
			err = q.woken(w)
		case <-w.ctx.Done():
			err = q.leave(w)
		}
		if err != nil || !q.missed(w) {
			return conclude(ended, err)
		}
		w.waits, w.out = false, outcome{}
	}
}

// conclude calls the hook for the end of the wait, and returns that.
func conclude(ended func(error), err error) error {
	if ended != nil {
		ended(err)
	}
	return err
}

// woken returns the error of w, who came out of the line. If its caller has
// given up in the same moment, it leaves.
func (q *Queue) woken(w *waiter) error {
	if w.out.err != nil || w.ctx.Err() == nil {
		return w.out.err
	}
	return q.leave(w)
}

// borrow runs the call that was lent to w. If it panics, w leaves the line.
func (q *Queue) borrow(w *waiter, call func()) {
	ended := false
	defer func() {
		if !ended {
			_ = q.leave(w)
		}
	}()
	call()
	ended = true
}

// announce calls the hook for w, which waits. The function that it returns is never nil. If the hook
// panics, w leaves the line, because its caller is gone.
func (q *Queue) announce(w *waiter, begun *Wait) (ended func(error)) {
	defer func() {
		if ended == nil {
			_ = q.leave(w)
		}
	}()
	if q.Hook.Wait != nil {
		ended = q.Hook.Wait(w.ctx, *begun)
	}
	if ended == nil {
		ended = func(error) {}
	}
	return ended
}

// deadline returns when the wait of a caller must end that comes after a delay, and
// that has a longest wait, unless that is zero.
func (q *Queue) deadline(ctx context.Context, longest, delay time.Duration) throttle.Instant {
	deadline := q.deadlineOf(ctx)
	if longest = cmp.Or(longest, q.MaxWait); longest > 0 {
		deadline = min(deadline, q.Now().Add(delay).Add(longest))
	}
	return deadline
}

// deadlineOf returns when a wait must end by its context; Never: at no time.
func (q *Queue) deadlineOf(ctx context.Context) throttle.Instant {
	d, ok := ctx.Deadline()
	if !ok {
		return throttle.Never
	}
	// What is left of it is right also if it has no monotonic reading and the wall clock
	// was stepped since the queue was made.
	return q.Now().Add(time.Until(d)).Add(-deadlineMargin)
}

// reject returns the error with which w, who is in line, is rejected.
func (q *Queue) reject(w *waiter, cause error, now throttle.Instant) error {
	f := q.forecast(w, now)
	err := q.rejection(cause, f, now)
	err.Waiting-- // the others
	err.Before, _ = q.ahead(w)
	err.Forecast = q.expected(w, f.At, now)
	return err
}

// rejection returns the error for a caller of whom the forecast is known.
func (q *Queue) rejection(cause error, f throttle.Forecast, now throttle.Instant) *Error {
	if j := q.joint(); j != nil && cause == ErrQueueFull { //nolint:errorlint // it is the queue's own
		f.Lane = cmp.Or(j.lane(), f.Lane)
	}
	return &Error{Err: cause, Wait: max(0, f.At.Sub(now)), Waiting: q.line.count, Lane: f.Lane, Limit: f.Limit, Reason: f.Reason}
}

// refund gives back what was granted for a request.
func (q *Queue) refund(now throttle.Instant, out outcome, r throttle.Request) {
	if j := q.joint(); j != nil {
		j.refund(now, out, r)
		return
	}
	q.limiter.Refund(now, out.grant, r)
}

// lateFor returns why the wait of w must end by its deadline.
func (q *Queue) lateFor(w *waiter) error {
	if q.deadlineOf(w.ctx) > w.deadline.Add(deadlineMargin) {
		return errMaxWait
	}
	return ErrDeadline
}
