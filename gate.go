package weir

import (
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// unanswered is how long a call that the next one waits for may take: then the
// next one goes. An unanswered call is neither good nor bad.
const unanswered = time.Second

// A gate is the limiter of a lane: the store's limiter, and in front of it what
// only the lane knows. It is closed after a refusal for longer than callers
// wait, wherever that was told: another process that shares the limits may have
// told the limiter. It admits one call until a good answer after that, and,
// where no limit says how calls are spaced, after every pause: then two, four and
// so on, until more may go than do. It holds calls in flight down where a refusal
// names no time and there is no rate to cut.
type gate struct {
	throttle.Limiter
	requests *atomic.Int64 // in the lane: in line, in flight or between attempts
	longest  time.Duration // longest pause of the limiter that callers wait through
	started  time.Time     // where the gate's clock was read
	free     atomic.Bool   // without limits: the gate alone restrains
	store    atomic.Int32  // a storeWord

	restrained atomic.Bool // what follows matters

	mu       sync.Mutex
	closedTo throttle.Instant
	allowed  float64          // calls in flight; zero: any number
	doubling bool             // allowed doubles with each round of good answers, else grows by one
	cutAt    throttle.Instant // when allowed was cut last
	flying   []flight         // calls in flight that departed while restrained, first to last
	wake     func()
}

// A flight is a call that is counted as in flight. It is known by the call's ID:
// the clock is read anew at each step of a call's way, so no instant tells it.
type flight struct {
	id    uint64
	since throttle.Instant
}

// newGate returns the gate before a limiter of so many limits, in a lane that
// counts its requests and whose callers wait through pauses up to maxPause.
func newGate(inner throttle.Limiter, limits int, requests *atomic.Int64, maxPause time.Duration) *gate {
	g := &gate{Limiter: inner, requests: requests, longest: maxPause + newsLag, started: time.Now()}
	g.free.Store(limits == 0)
	return g
}

// now returns the instant by the gate's clock.
func (g *gate) now() throttle.Instant {
	return throttle.InstantOf(g.started).Add(time.Since(g.started))
}

// Take implements [throttle.Limiter].
func (g *gate) Take(now throttle.Instant, r throttle.Request) (at throttle.Instant, err error) {
	if g.restrained.Load() {
		at, err = g.restrain(now, r)
	} else {
		at, err = g.Limiter.Take(now, r)
	}
	if at > now && at != throttle.Never && at.Sub(now) > g.longest && g.hear(now) {
		return g.restrain(now, r)
	}
	return at, err
}

// restrain is Take where more than the limiter may hold the request.
func (g *gate) restrain(now throttle.Instant, r throttle.Request) (throttle.Instant, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if now < g.closedTo {
		return 0, &shaping.Error{Err: ErrPaused, Wait: g.closedTo.Sub(now), Reason: throttle.ReasonPause}
	}
	if at := g.held(); at > now {
		return at, nil
	}
	at, err := g.Limiter.Take(now, r)
	if err == nil && at <= now && g.allowed > 0 && r.ID != 0 {
		g.flying = append(g.flying, flight{r.ID, now})
	}
	return at, err
}

// held returns when another call may fly: at once, or when the first of those
// in its way has been unanswered for too long.
func (g *gate) held() throttle.Instant {
	over := len(g.flying) - int(g.allowed)
	if g.allowed == 0 || over < 0 {
		return 0
	}
	return g.flying[over].since.Add(unanswered)
}

// closeTo refuses everybody until then, and admits one call after it. That
// those in flight are answered well does not open it.
func (g *gate) closeTo(until throttle.Instant) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if until <= g.closedTo {
		return
	}
	g.closedTo, g.flying = until, nil
	g.begin(1, true)
}

// newsLag is how much longer than it is a pause told elsewhere may look, dated
// as it is from when the news came. Vendors tell whole seconds: none that callers
// wait through here is refused there.
const newsLag = time.Second

// hear takes in what the limiter has learned, perhaps from elsewhere: it closes
// the gate where the limiter is paused for longer than callers wait, and reports
// whether it is.
func (g *gate) hear(now throttle.Instant) (closed bool) {
	r, ok := g.Limiter.(throttle.Reader)
	if !ok {
		return false
	}
	s := r.State(now)
	g.store.Store(int32(storeWordOf(s.Store)))
	if s.Paused.Sub(now) <= g.longest {
		return false
	}
	g.closeTo(s.Paused)
	return true
}

// storeWord says where the limits are enforced, as the limiter told last.
func (g *gate) storeWord() storeWord { return storeWord(g.store.Load()) }

// closedFor returns how long from now everybody is refused.
func (g *gate) closedFor(now throttle.Instant) time.Duration {
	g.hear(now)
	if !g.restrained.Load() {
		return 0
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return max(0, g.closedTo.Sub(now))
}

// begin restrains the calls in flight. Those that fly already are not counted:
// their answers come when they come.
func (g *gate) begin(allowed float64, doubling bool) {
	g.allowed, g.doubling = allowed, doubling
	g.restrained.Store(true)
}

// Reconcile implements [throttle.Reconciler].
func (g *gate) Reconcile(now throttle.Instant, f throttle.Fact) {
	if r, ok := g.Limiter.(throttle.Reconciler); ok {
		r.Reconcile(now, f)
	}
	if f.Resumed {
		g.resume()
	}
	if !f.Refused || !g.free.Load() {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if f.Until > 0 {
		g.begin(1, true)
		return
	}
	if f.Departed <= g.cutAt {
		return // it was in flight when others were refused already
	}
	g.cutAt = now
	// The lane of a route is made when the route is refused: its requests are
	// fewer than fly. So the first cut is made good fast.
	flying, first := g.allowed, g.allowed == 0
	if first {
		flying = float64(g.requests.Load())
	}
	g.begin(max(1, flying*throttle.Cut), first)
}

// landed says that the call is no longer in flight.
func (g *gate) landed(id uint64, good bool) {
	if !g.restrained.Load() {
		return
	}
	g.mu.Lock()
	if g.down(id) && good {
		g.grow()
	}
	wake := g.wake
	g.mu.Unlock()
	if wake != nil {
		wake()
	}
}

// down counts the call as in flight no longer, and reports whether it was.
func (g *gate) down(id uint64) bool {
	i := slices.IndexFunc(g.flying, func(f flight) bool { return f.id == id })
	if i < 0 {
		return false
	}
	g.flying = slices.Delete(g.flying, i, i+1)
	return true
}

func (g *gate) grow() {
	switch {
	case !g.free.Load():
		g.allowed = 0
	case g.doubling:
		g.allowed++
	default:
		g.allowed += 1 / g.allowed
	}
	// Where more may fly than there are, half of it unused, the gate is open.
	if g.allowed == 0 || float64(g.requests.Load()) < g.allowed/2 {
		g.allowed, g.flying = 0, nil
		g.restrained.Store(false)
	}
}

// Forecast implements [throttle.Forecaster]. That calls in flight end is no
// certainty, so they hold nobody by a bound.
func (g *gate) Forecast(now throttle.Instant, r throttle.Request) throttle.Forecast {
	forecast := throttle.Forecast{At: now, Reason: throttle.ReasonRate}
	if f, ok := g.Limiter.(throttle.Forecaster); ok {
		forecast = f.Forecast(now, r)
	}
	if !g.restrained.Load() {
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

// Refund implements [throttle.Refunder].
func (g *gate) Refund(now, at throttle.Instant, r throttle.Request) {
	if f, ok := g.Limiter.(throttle.Refunder); ok {
		f.Refund(now, at, r)
	}
	if !g.restrained.Load() {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.down(r.ID)
}

// Settle implements [throttle.Settler].
func (g *gate) Settle(now, at throttle.Instant, r, actual throttle.Request) {
	if s, ok := g.Limiter.(throttle.Settler); ok {
		s.Settle(now, at, r, actual)
	}
}

// Tune implements [throttle.Tuner].
func (g *gate) Tune(now throttle.Instant, limits ...throttle.Limit) error {
	t, ok := g.Limiter.(throttle.Tuner)
	if !ok {
		return shaping.ErrNotTunable
	}
	if err := t.Tune(now, limits...); err != nil {
		return err
	}
	g.free.Store(len(limits) == 0)
	return nil
}

// Notify implements [throttle.Notifier].
func (g *gate) Notify(wake func()) {
	g.mu.Lock()
	g.wake = wake
	g.mu.Unlock()
	if n, ok := g.Limiter.(throttle.Notifier); ok {
		n.Notify(func() {
			g.hear(g.now())
			wake()
		})
	}
}

// Fetch implements [throttle.Fetcher].
func (g *gate) Fetch(now throttle.Instant, n int, line iter.Seq[throttle.Request]) {
	if f, ok := g.Limiter.(throttle.Fetcher); ok {
		f.Fetch(now, n, line)
	}
}

// Tolerance implements [throttle.Tolerant].
func (g *gate) Tolerance() time.Duration {
	if t, ok := g.Limiter.(throttle.Tolerant); ok {
		return t.Tolerance()
	}
	return 0
}

// State implements [throttle.Reader].
func (g *gate) State(now throttle.Instant) throttle.State {
	s := throttle.State{Whole: true, Cut: 1}
	if r, ok := g.Limiter.(throttle.Reader); ok {
		s = r.State(now)
	}
	if !g.restrained.Load() {
		return s
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	s.Whole = false
	if g.closedTo > now {
		s.Paused = max(s.Paused, g.closedTo)
	}
	return s
}
