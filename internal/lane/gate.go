package lane

import (
	"context"
	"io"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirgo/weir/internal/learn"
	"github.com/weirgo/weir/throttle"
)

// A gate is the limiter of a lane: the store's limiter and, in front of it,
// what only the lane knows. It holds calls to what their answers have taught.
// It closes when a refusal tells a longer pause than callers wait through. That
// refusal may be another process's, told by the shared limiter. When the pause
// has ended, the gate admits one call at a time until one has a good answer.
type gate struct {
	throttle.Limiter
	course  *Course                             // what answers have taught; nil: the lane does not learn
	longest time.Duration                       // longest pause of the limiter that callers wait through
	started time.Time                           // when the gate read the wall clock
	store   atomic.Pointer[throttle.StoreState] // as the limiter told it last; nil: there is no store

	bound  bound   // of calls in flight
	quotas *quotas // that answers told; nil: nobody waits for their resets

	shut atomic.Bool // the gate is closed, or waits for a good answer: the fields below count

	mu       sync.Mutex
	closedTo throttle.Instant
	probes   []probe // calls in flight that departed since the gate closed, first to last
	wake     func()
}

// newGate returns the gate in front of a limiter. The lane's callers wait
// through pauses of up to maxPause.
func newGate(inner throttle.Limiter, c *Course, maxPause time.Duration) *gate {
	return &gate{Limiter: inner, course: c, longest: maxPause + newsLag, started: time.Now()}
}

// now returns the present instant by the gate's clock.
func (g *gate) now() throttle.Instant {
	return throttle.InstantOf(g.started).Add(time.Since(g.started))
}

// Take implements [throttle.Limiter].
func (g *gate) Take(now throttle.Instant, r throttle.Request) (at throttle.Instant, err error) {
	if g.quotas == nil || r.ID == 0 {
		return g.takeUntold(now, r)
	}
	if until := g.quotas.ask(now); until > now && !g.closed(now) {
		return until, nil
	}
	at, err = g.takeUntold(now, r)
	if err != nil || at > now {
		return at, err
	}
	if until := g.quotas.board(now, r.ID); until > now { // others departed meanwhile
		g.refundUntold(now, at, r)
		return until, nil
	}
	return at, nil
}

// takeUntold is Take if no told quota holds the call.
func (g *gate) takeUntold(now throttle.Instant, r throttle.Request) (at throttle.Instant, err error) {
	if r.ID != 0 && g.bound.holds() {
		return g.takeBounded(now, r)
	}
	return g.takeAny(now, r)
}

// takeAny is Take if any number of calls may be in flight.
func (g *gate) takeAny(now throttle.Instant, r throttle.Request) (at throttle.Instant, err error) {
	if g.shut.Load() {
		at, err = g.probe(now, r)
	} else {
		at, err = g.take(now, r)
	}
	if at > now && at != throttle.Never && at.Sub(now) > g.longest && g.hear(now) {
		return g.probe(now, r)
	}
	return at, err
}

// take asks what was learned, and the limiter.
func (g *gate) take(now throttle.Instant, r throttle.Request) (throttle.Instant, error) {
	if g.course == nil {
		return g.Limiter.Take(now, r)
	}
	return g.course.Take(now, r, g.Limiter)
}

// closeTo rejects everybody until an instant, and then admits one call. Good
// answers to calls that are in flight do not open the gate.
func (g *gate) closeTo(until throttle.Instant) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if until <= g.closedTo {
		return
	}
	g.closedTo, g.probes = until, nil
	g.shut.Store(true)
}

// newsLag is how much longer a pause may look in another process than it is,
// because it is dated from when the news came. Vendors tell whole seconds, so
// no pause that callers wait through in one process is rejected in another.
const newsLag = time.Second

// hear takes in what the limiter knows, perhaps from another process. It closes
// the gate if the limiter is paused for longer than callers wait, and reports
// whether it is.
func (g *gate) hear(now throttle.Instant) (closed bool) {
	s := g.Limiter.State(now)
	g.store.Store(s.Store)
	if s.Paused <= g.longest {
		return false
	}
	g.closeTo(now.Add(s.Paused))
	return true
}

// closedFor returns for how long from now everybody is rejected.
func (g *gate) closedFor(now throttle.Instant) time.Duration {
	g.hear(now)
	if !g.shut.Load() {
		return 0
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return max(0, g.closedTo.Sub(now))
}

// resume opens the gate. As after every closing, one call goes first.
func (g *gate) resume() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closedTo = 0
	if g.quotas != nil {
		g.quotas.forget()
	}
}

// Reconcile implements [throttle.Limiter].
func (g *gate) Reconcile(now throttle.Instant, f throttle.Fact) {
	if f.Resumed {
		g.resume()
		if g.course != nil {
			g.course.Resume(now)
		}
	}
	g.Limiter.Reconcile(now, f)
}

// seen returns the state of the course, for a call that departs.
func (g *gate) seen() Seen {
	if g.course == nil {
		return 0
	}
	return g.course.Look()
}

// known returns what answers have taught.
func (g *gate) known() learn.Known {
	if g.course == nil {
		return learn.Known{}
	}
	return g.course.Known()
}

// refused lets the lane learn from a refusal. The refused call has not landed
// yet.
func (g *gate) refused(ctx context.Context, now throttle.Instant, a *Answer) {
	if g.course != nil {
		g.course.Refused(ctx, now, a)
	}
}

// landed takes in that a call is no longer in flight, and what its answer was.
func (g *gate) landed(ctx context.Context, now throttle.Instant, a *Answer) {
	room := g.course != nil && g.course.Landed(ctx, now, a)
	if g.quotas != nil && g.quotas.land(now, a.ID) {
		room = true
	}
	if !room && !g.shut.Load() {
		return
	}
	g.mu.Lock()
	if g.down(a.ID) && a.Served {
		g.probes = nil
		g.shut.Store(false)
	}
	wake := g.wake
	g.mu.Unlock()
	if wake != nil {
		wake()
	}
}

// Forecast implements [throttle.Limiter]. A bound must be certain, so calls are
// not held by what was learned, which is a guess, nor by calls in flight, which
// may end at any time.
func (g *gate) Forecast(now throttle.Instant, r throttle.Request) throttle.Forecast {
	forecast := g.Limiter.Forecast(now, r)
	if g.course != nil && forecast.At <= now {
		if at, reason := g.course.Held(now, r); at > now {
			forecast.Reason, forecast.Limit = reason, learnedLimit
		}
	}
	if forecast.At <= now && r.ID != 0 && (g.bound.full() || g.quotas != nil && g.quotas.free(now) == 0) {
		forecast.Reason, forecast.Limit = throttle.ReasonConcurrency, ""
	}
	if !g.shut.Load() {
		return forecast
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.closedTo > max(now, forecast.At):
		return throttle.Forecast{At: g.closedTo, Reason: throttle.ReasonPause}
	case forecast.At <= now && g.held() > now:
		forecast.Reason = throttle.ReasonConcurrency
	}
	return forecast
}

// learnedLimit is the name of the learned limit in errors and spans.
const learnedLimit = "learned"

// Refund implements [throttle.Limiter].
func (g *gate) Refund(now, at throttle.Instant, r throttle.Request) {
	if g.quotas != nil && r.ID != 0 {
		g.quotas.leave(r.ID)
	}
	g.refundUntold(now, at, r)
}

// refundUntold is Refund of a call that no told quota has counted.
func (g *gate) refundUntold(now, at throttle.Instant, r throttle.Request) {
	if r.ID != 0 && g.bound.holds() {
		g.bound.land()
	}
	g.refund(now, at, r)
}

// refund takes back what was spent for a call that is not counted in flight.
func (g *gate) refund(now, at throttle.Instant, r throttle.Request) {
	g.Limiter.Refund(now, at, r)
	if g.course != nil {
		g.course.Refund(now, at, r)
	}
	if !g.shut.Load() {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.down(r.ID)
}

// Tune implements [throttle.Limiter].
func (g *gate) Tune(now throttle.Instant, limits ...throttle.Limit) error {
	if len(limits) == 0 { // calls are bound by one or the other at any time
		g.configure(now, limits)
	}
	if err := g.Limiter.Tune(now, limits...); err != nil {
		return err
	}
	g.configure(now, limits)
	return nil
}

// configure tells the learner which limits are configured.
func (g *gate) configure(now throttle.Instant, limits []throttle.Limit) {
	if g.course != nil {
		g.course.Configure(now, settingOf(limits))
	}
}

// Notify implements [throttle.Remote].
func (g *gate) Notify(wake func()) {
	g.mu.Lock()
	g.wake = wake
	g.mu.Unlock()
	if n, ok := g.Limiter.(throttle.Remote); ok {
		n.Notify(func() {
			g.hear(g.now())
			wake()
		})
	}
}

// Fetch implements [throttle.Remote].
func (g *gate) Fetch(now throttle.Instant, n int, line iter.Seq[throttle.Request]) {
	if g.bound.fleet != nil {
		g.bound.fleet.Await(n)
	}
	r, ok := g.Limiter.(throttle.Remote)
	if !ok {
		return
	}
	if room := g.room(now, n); room < n {
		if room == 0 {
			return
		}
		// At least two: others are in line, and permits in hand may be theirs.
		n, line = max(room, 2), first(line, room)
	}
	r.Fetch(now, n, line)
}

// Lend implements [throttle.Lender].
func (g *gate) Lend(now, until throttle.Instant, line iter.Seq[throttle.Request]) (call func()) {
	l, ok := g.Limiter.(throttle.Lender)
	if !ok {
		g.Fetch(now, 1, line)
		return nil
	}
	if g.bound.fleet != nil {
		g.bound.fleet.Await(1)
	}
	if g.room(now, 1) == 0 {
		return nil
	}
	return l.Lend(now, until, line)
}

// Holder returns the place in line of a caller whose permits are due although the head's
// are not, or -1 if there is no such caller.
func (g *gate) Holder(now throttle.Instant, line iter.Seq[throttle.Request]) int {
	if h, ok := g.Limiter.(interface {
		Holder(throttle.Instant, iter.Seq[throttle.Request]) int
	}); ok {
		return h.Holder(now, line)
	}
	return -1
}

// room returns for how many of n calls in line permits are had: for those who may
// fly.
func (g *gate) room(now throttle.Instant, n int) int {
	n, _ = g.bound.room(n)
	if g.quotas != nil {
		n = min(n, g.quotas.free(now))
	}
	if g.course != nil && n > 0 {
		n = g.course.Room(now, n)
	}
	return n
}

// first returns the first n of a line.
func first(line iter.Seq[throttle.Request], n int) iter.Seq[throttle.Request] {
	return func(yield func(throttle.Request) bool) {
		left := n
		for r := range line {
			if left--; left < 0 || !yield(r) {
				return
			}
		}
	}
}

// Close implements [throttle.Remote].
func (g *gate) Close() error {
	if g.bound.fleet != nil {
		_ = g.bound.fleet.Close() // it says nothing else
	}
	if c, ok := g.Limiter.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// Tolerance implements [throttle.Limiter].
func (g *gate) Tolerance() time.Duration {
	tolerance := g.Limiter.Tolerance()
	if g.course == nil {
		return tolerance
	}
	if learned := g.course.Tolerance(); learned > 0 {
		tolerance = min(tolerance, learned)
	}
	return tolerance
}

// State implements [throttle.Limiter].
func (g *gate) State(now throttle.Instant) throttle.State {
	s := g.Limiter.State(now)
	s.Whole = s.Whole && g.known() == learn.Known{} && g.bound.flying.Load() == 0
	if !g.shut.Load() {
		return s
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	s.Whole = false
	if g.closedTo > now {
		s.Paused = max(s.Paused, g.closedTo.Sub(now))
	}
	return s
}
