package shaping

import (
	"cmp"
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirgo/weir/throttle"
)

// DefaultMaxWaiting is the most callers that wait in a queue that sets no
// number: enough for every worker of a process, few enough that their memory,
// about 3 KB each, does not end it.
const DefaultMaxWaiting = 10_000

// deadlineMargin is how long before a context's deadline a wait ends, so that
// its own error, which says what held it, is what the caller sees.
const deadlineMargin = time.Millisecond

// A Queue is a line of callers in front of a [throttle.Limiter]. Make it with
// [NewQueue] and set its fields before first use. Its methods are safe for
// concurrent use.
//
// A queue has no goroutine of its own. Whoever joins the line at its head,
// leaves it, or finds its one timer fired advances the line under the lock.
type Queue struct {
	MaxWaiting int           // most callers in line; zero: DefaultMaxWaiting
	MaxWait    time.Duration // longest wait of a caller, also without a deadline; zero: none
	Hook       *Hook         // told of waits; nil: nobody is

	// Overflow says who goes when the line is full: when MaxWaiting callers
	// wait, or what they hold is more than MaxWaitingBytes. Zero: who comes.
	Overflow Overflow
	// MaxWaitingBytes is the most that those in line may hold, as their
	// [Turn].Bytes say; one caller alone may hold more. Zero: any number.
	MaxWaitingBytes int64
	// MaxForecast is the longest that a newcomer may be expected to wait, with
	// those before it at the configured rates. It is a guess, and may refuse
	// somebody who would have been in time. Zero: nobody is refused for a guess.
	MaxForecast time.Duration

	// LowPriorityShare is the share of departures, by cost, that the callers
	// below the most urgent class in line are guaranteed together, so that none
	// of them starves. It goes to the one of them that came first. Zero:
	// DefaultLowPriorityShare; negative: nothing is guaranteed.
	LowPriorityShare float64

	limiter throttle.Limiter
	remote  throttle.Remote // the limiter; nil if it is none

	started time.Time        // where the queue's clock was read
	base    throttle.Instant // and what it said

	// busy sends callers to the lock: somebody waits, the queue is closed, or
	// somebody left it late a moment ago.
	busy atomic.Bool

	mu        sync.Mutex
	closed    bool
	tolerance time.Duration // how late a permit may be spent
	numbered  int64         // places that were given a number
	line      line
	rates     []float64 // permits per second of each limit; nil: not read yet
	expiring  byDeadline
	timer     *time.Timer
	due       throttle.Instant // when the head asks again; Never where only news can help
	fetching  bool             // the remote was told of somebody in line
	pausedAt  throttle.Instant // when a pause was told last
	late      time.Duration    // how late after it was due the last late one left the line
	lateTo    throttle.Instant // and until when that counts
	shed      uint64           // callers sent away for want of room
	stale     uint64           // permits that were void when their caller woke
}

// NewQueue returns a queue in front of the limiter, which must not be nil.
func NewQueue(limiter throttle.Limiter) *Queue {
	if limiter == nil {
		panic("shaping: NewQueue of a nil limiter")
	}
	started := time.Now()
	q := &Queue{
		limiter: limiter,
		started: started,
		base:    throttle.InstantOf(started),
		due:     throttle.Never,
	}
	q.readTolerance()
	if remote, ok := limiter.(throttle.Remote); ok {
		q.remote = remote
		remote.Notify(q.wake)
	}
	return q
}

func (q *Queue) readTolerance() {
	q.tolerance = q.limiter.Tolerance()
	if q.tolerance <= 0 {
		q.tolerance = throttle.Tolerance()
	}
}

// Now returns the instant by the queue's clock, in which all its instants are.
func (q *Queue) Now() throttle.Instant {
	return q.base + throttle.Instant(time.Since(q.started))
}

// Wait waits for one permit of every limit. It returns nil once the permits
// are spent for the caller, who departs now. Otherwise nothing is spent and
// the error is ctx's, an [*Error], or the limiter's for what can never be
// granted, such as [throttle.ErrExceedsBurst].
func (q *Queue) Wait(ctx context.Context) error { return q.WaitN(ctx, 1) }

// WaitN is [Queue.Wait] for n permits of every limit.
func (q *Queue) WaitN(ctx context.Context, n int) error {
	t := Turn{N: n}
	return q.WaitTurn(ctx, &t)
}

// WaitTurn is [Queue.Wait] for a turn, which may come back: it then stands
// where its first arrival puts it.
func (q *Queue) WaitTurn(ctx context.Context, t *Turn) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	now := q.Now()
	if !q.busy.Load() {
		at, err := q.limiter.Take(now, t.request(now))
		if err != nil {
			return err
		}
		if at <= now {
			t.depart(at, now)
			return nil
		}
	}
	return q.wait(ctx, t, q.deadline(ctx, t, now))
}

// wait is WaitTurn where the permits may not be at hand. A permit that is void
// by the time its caller wakes sends the caller back into the line.
//
// Whoever waits keeps its stack, and a goroutine begins with 2 KB: what is on
// the way to park is kept out of it, in the waiter.
func (q *Queue) wait(ctx context.Context, t *Turn, deadline throttle.Instant) error {
	var ended func(error)
	for {
		w := &waiter{ctx: ctx, deadline: deadline}
		begun, err := q.join(w, t)
		if w.ready != nil {
			if ended == nil {
				ended = q.tell(w, begun)
			}
			if err = q.park(w); err == nil && q.missed(w) {
				continue
			}
			if err == nil {
				t.depart(w.charged, w.granted)
			}
		}
		if ended != nil {
			ended(err)
		}
		return err
	}
}

// tell tells the hook that w waits. Where the hook panics nobody will wait for
// w: it leaves the line.
func (q *Queue) tell(w *waiter, begun *Wait) (ended func(error)) {
	defer func() {
		if ended == nil {
			_ = q.leave(w)
		}
	}()
	return q.Hook.wait(w.ctx, begun)
}

// join puts the turn in line, as w, or answers at once: granted or refused.
func (q *Queue) join(w *waiter, t *Turn) (begun *Wait, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.Now()
	if q.due <= now { // its timer is late
		q.advance(now)
	}
	if q.closed {
		return nil, q.refusal(ErrClosed, throttle.Forecast{}, now)
	}
	q.stand(w, t, now)
	q.line.share = q.lowPriorityShare()
	q.line.enter(w, urgencyOf(w.ctx).of(t))
	bound := q.limiter.Forecast(now, w.Request).At
	next, err := q.ask(w, bound, now)
	if err == nil && next <= now {
		q.line.depart(w)
		q.caughtUp(next, w.Since)
		t.depart(next, now)
		if q.line.count > 0 { // it overtook them
			q.advance(now)
		}
		return nil, nil
	}
	shed := q.shed
	if err == nil {
		err = q.admit(w, t, bound, now)
	}
	if err != nil {
		q.line.leave(w)
		return nil, err
	}
	begun = q.foretell(w, t, now)
	t.arrived, t.number = w.arrived, w.number
	q.await(w, next, now)
	if q.shed > shed { // the head may be among them
		q.advance(now)
	}
	return begun, nil
}

// ask asks the limiter for w, who has just entered the line, if w heads it or, for
// the error, can never be granted. It returns when the head asks again; an instant
// not after now if w is granted.
func (q *Queue) ask(w *waiter, bound, now throttle.Instant) (throttle.Instant, error) {
	heads := w == q.line.first()
	if !heads && bound != throttle.Never {
		return q.due, nil
	}
	at, err := q.limiter.Take(now, w.Request)
	if err == nil && at > now && !heads {
		return q.due, nil
	}
	return at, err
}

// foretell returns what the hook is told of a wait that begins; nil where there
// is no hook.
func (q *Queue) foretell(w *waiter, t *Turn, now throttle.Instant) *Wait {
	if q.Hook == nil {
		return nil
	}
	f := q.limiter.Forecast(now, w.Request)
	return &Wait{
		Queue:   q,
		Planned: max(0, f.At.Sub(now)),
		Waiting: q.line.count - 1,
		Visits:  t.visits,
		Limit:   f.Limit,
		Reason:  cmp.Or(f.Reason, throttle.ReasonRate),
	}
}

// stand sets where w stands, and what it asks for. A turn that passed without a
// line before goes before those who joined the line in the instant in which it
// passed.
func (q *Queue) stand(w *waiter, t *Turn, now throttle.Instant) {
	w.Request = t.request(q.since(now))
	w.cost, w.back, w.bytes = q.burden(w.Request), t.visits > 0, max(t.Bytes, 0)
	w.place = place{t.arrived, t.number}
	q.numbered++
	switch {
	case t.arrived == 0:
		w.place = place{now, q.numbered}
	case t.number == 0:
		w.number = math.MinInt64 + q.numbered
	}
}

// since returns when a newcomer counts as having come: now, or earlier by as
// much as somebody left the line late a moment ago. A single worker in a loop
// has no line in which its lateness could count, and would fall behind by a
// timer's lateness with each call.
func (q *Queue) since(now throttle.Instant) throttle.Instant {
	if q.late > 0 && now <= q.lateTo {
		return now.Add(-q.late)
	}
	q.caughtUp(now, now)
	return now
}

// caughtUp forgets a lateness where permits were charged no later than their
// caller counted as having come: nothing fell due while it was late, so that
// held nobody up, and must not let several leave at once.
func (q *Queue) caughtUp(charged, since throttle.Instant) {
	if charged == since && q.late > 0 {
		q.late = 0
		q.busy.Store(q.line.count > 0 || q.closed)
	}
}

// deadline returns when the wait of a caller who came at an instant must end.
func (q *Queue) deadline(ctx context.Context, t *Turn, came throttle.Instant) throttle.Instant {
	deadline := throttle.Never
	if d, ok := ctx.Deadline(); ok {
		// What is left of it is right also if it has no monotonic reading and
		// the wall clock was stepped since the queue was made.
		deadline = q.Now().Add(time.Until(d)).Add(-deadlineMargin)
	}
	if longest := cmp.Or(t.MaxWait, q.MaxWait); longest > 0 {
		deadline = min(deadline, came.Add(longest))
	}
	return deadline
}

func (q *Queue) maxWaiting() int {
	if q.MaxWaiting > 0 {
		return q.MaxWaiting
	}
	return DefaultMaxWaiting
}

// refuse returns the error that sends w away, who is in line.
func (q *Queue) refuse(w *waiter, cause error, now throttle.Instant) error {
	f := q.limiter.Forecast(now, w.Request)
	err := q.refusal(cause, f, now)
	err.Waiting-- // the others
	err.Before, _ = q.line.ahead(w)
	err.Forecast = max(0, q.expected(w, f.At, now))
	return err
}

func (q *Queue) refusal(cause error, f throttle.Forecast, now throttle.Instant) *Error {
	return &Error{Err: cause, Wait: max(0, f.At.Sub(now)), Waiting: q.line.count, Limit: f.Limit, Reason: f.Reason}
}

// park waits until w is granted, sent away, or its caller gives up.
func (q *Queue) park(w *waiter) error {
	select {
	case <-w.ready:
		if w.err != nil || w.ctx.Err() == nil {
			return w.err
		}
	case <-w.ctx.Done():
	}
	return q.leave(w)
}

// leave takes w, whose caller has given up, out of the line.
func (q *Queue) leave(w *waiter) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case w.index > 0:
		head, expires := q.line.first(), w.expiry == 1 // the others were measured against it
		q.drop(w)
		if expires || q.line.first() != head {
			q.advance(q.Now())
		}
	case w.err != nil:
		return w.err
	case w.granted != 0:
		// Granted in the moment of the cancel: another may have it.
		q.giveBack(q.Now(), w.charged, w.Request)
	}
	return w.ctx.Err()
}

// missed reports whether the permits of w are void: it woke so late after their
// instant that others may hold the next ones by now, because the process stood
// still; or a pause was told between the grant and now.
func (q *Queue) missed(w *waiter) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.Now()
	late := now.Sub(w.charged)
	if late > q.tolerance || w.granted <= q.pausedAt {
		q.stale++
		q.giveBack(now, w.charged, w.Request)
		return true
	}
	if late := now.Sub(w.due); late > 0 {
		q.late, q.lateTo = late, now.Add(q.tolerance)
		q.busy.Store(true)
	}
	w.granted = now // it departs with this last look
	return false
}

// giveBack returns permits that were granted and never left, and lets others
// have them.
func (q *Queue) giveBack(now, charged throttle.Instant, r throttle.Request) {
	q.limiter.Refund(now, charged, r)
	q.advance(now)
}
