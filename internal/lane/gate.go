package lane

import (
	"context"
	"io"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirgo/weir/internal/learn"
	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// A gate is the limiter of a lane: the store's limiter, and in front of it what
// only the lane knows. It holds calls to what their answers have taught. It is
// closed after a refusal for longer than callers wait, wherever that was told:
// another process that shares the limits may have told the limiter. After that it
// admits one call at a time until a good answer.
type gate struct {
	throttle.Limiter
	course  *Course                             // what answers have taught; nil: nothing is learned
	longest time.Duration                       // longest pause of the limiter that callers wait through
	started time.Time                           // where the gate's clock was read
	store   atomic.Pointer[throttle.StoreState] // as the limiter told last; nil: it has none

	shut atomic.Bool // what follows matters

	mu       sync.Mutex
	closedTo throttle.Instant
	probes   []probe // calls in flight that departed since it was closed, first to last
	wake     func()
}

// A probe is a call that departed since the gate was closed, and is in flight. It is
// known by the call's ID: the clock is
// read anew at each step of a call's way, so no instant tells it.
type probe struct {
	id    uint64
	since throttle.Instant
}

// newGate returns the gate before a limiter, of a lane whose callers wait through
// pauses up to maxPause.
func newGate(inner throttle.Limiter, c *Course, maxPause time.Duration) *gate {
	return &gate{Limiter: inner, course: c, longest: maxPause + newsLag, started: time.Now()}
}

// now returns the instant by the gate's clock.
func (g *gate) now() throttle.Instant {
	return throttle.InstantOf(g.started).Add(time.Since(g.started))
}

// Take implements [throttle.Limiter].
func (g *gate) Take(now throttle.Instant, r throttle.Request) (at throttle.Instant, err error) {
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

// take asks what was learned and the limiter.
func (g *gate) take(now throttle.Instant, r throttle.Request) (throttle.Instant, error) {
	if g.course == nil {
		return g.Limiter.Take(now, r)
	}
	return g.course.Take(now, r, g.Limiter)
}

// probe is Take while the gate is closed, and until the good answer after that.
func (g *gate) probe(now throttle.Instant, r throttle.Request) (throttle.Instant, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if now < g.closedTo {
		return 0, &shaping.Error{Err: ErrPaused, Wait: g.closedTo.Sub(now), Reason: throttle.ReasonPause}
	}
	if at := g.held(); at > now {
		return at, nil
	}
	at, err := g.take(now, r)
	if err == nil && at <= now && r.ID != 0 {
		g.probes = append(g.probes, probe{r.ID, now})
	}
	return at, err
}

// held returns when another probe may go: at once, or when the last has been
// unanswered for too long.
func (g *gate) held() throttle.Instant {
	if n := len(g.probes); n > 0 {
		return g.probes[n-1].since.Add(unanswered)
	}
	return 0
}

// closeTo refuses everybody until then, and admits one call after it. That
// those in flight are answered well does not open it.
func (g *gate) closeTo(until throttle.Instant) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if until <= g.closedTo {
		return
	}
	g.closedTo, g.probes = until, nil
	g.shut.Store(true)
}

// newsLag is how much longer than it is a pause told elsewhere may look, dated
// as it is from when the news came. Vendors tell whole seconds: none that callers
// wait through here is refused there.
const newsLag = time.Second

// hear takes in what the limiter has learned, perhaps from elsewhere: it closes
// the gate where the limiter is paused for longer than callers wait, and reports
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

// closedFor returns how long from now everybody is refused.
func (g *gate) closedFor(now throttle.Instant) time.Duration {
	g.hear(now)
	if !g.shut.Load() {
		return 0
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return max(0, g.closedTo.Sub(now))
}

// resume opens the gate. As after every closing one call goes first.
func (g *gate) resume() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closedTo = 0
}

// Reconcile implements [throttle.Limiter]. Where answers teach, what follows a
// refusal is learned: the limiter is told only how long to pause.
func (g *gate) Reconcile(now throttle.Instant, f throttle.Fact) {
	if f.Resumed {
		g.resume()
		if g.course != nil {
			g.course.Resume(now)
		}
	}
	if g.course != nil && !f.Resumed {
		if f.Until == 0 {
			return
		}
		f.Departed = 0 // it pauses and slows nothing
	}
	g.Limiter.Reconcile(now, f)
}

// seen returns how the lane stands, for a call that leaves.
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

// refused lets the lane learn from a refusal, whose call still is to land.
func (g *gate) refused(ctx context.Context, now throttle.Instant, a *Answer) {
	if g.course != nil {
		g.course.Refused(ctx, now, a)
	}
}

// landed takes in that a call is no longer in flight, and what its answer was.
func (g *gate) landed(ctx context.Context, now throttle.Instant, a *Answer) {
	room := g.course != nil && g.course.Landed(ctx, now, a)
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

// down counts the call as a probe in flight no longer, and reports whether it was.
func (g *gate) down(id uint64) bool {
	i := slices.IndexFunc(g.probes, func(p probe) bool { return p.id == id })
	if i < 0 {
		return false
	}
	g.probes = slices.Delete(g.probes, i, i+1)
	return true
}

// Forecast implements [throttle.Limiter]. What was learned is a guess, and that
// calls in flight end is no certainty, so they hold nobody by a bound.
func (g *gate) Forecast(now throttle.Instant, r throttle.Request) throttle.Forecast {
	forecast := g.Limiter.Forecast(now, r)
	if g.course != nil && forecast.At <= now {
		if at, reason := g.course.Held(now, r); at > now {
			forecast.Reason, forecast.Limit = reason, learnedLimit
		}
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

// learnedLimit is the name of the limit that was learned.
const learnedLimit = "learned"

// Refund implements [throttle.Limiter].
func (g *gate) Refund(now, at throttle.Instant, r throttle.Request) {
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

// configure tells the learner of the configured limits.
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
	if r, ok := g.Limiter.(throttle.Remote); ok {
		r.Fetch(now, n, line)
	}
}

// Close implements [throttle.Remote].
func (g *gate) Close() error {
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
	s.Whole = s.Whole && g.known() == learn.Known{}
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
