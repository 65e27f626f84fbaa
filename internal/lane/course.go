// Package lane holds what a lane knows of its vendor: how many calls fly, and
// what their answers teach.
package lane

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirgo/weir/internal/learn"
	"github.com/weirgo/weir/throttle"
)

// A Course holds a lane to what its answers have taught of the vendor's limit.
// It stands between the lane's queue and the limiter of the configured limits.
//
// While nothing was refused and no quota told, a departure costs one
// compare-and-swap: the calls in flight grow from one, by one for each answer
// that came while others waited. From the first refusal, or the first quota
// told, the learner's plan decides under a lock.
//
// A Course is safe for concurrent use.
type Course struct {
	setting learn.Setting
	tell    func(context.Context, learn.Known) // told, under no lock, when what is known has changed; nil: nobody is

	count  atomic.Uint64 // departures << flightBits | calls in flight
	most   atomic.Int64  // calls in flight while nothing steers; zero: any number
	news   atomic.Int64  // Instant at which most grew, one of them landed, or the first left
	freed  atomic.Int64  // Instant at which one landed last
	steers atomic.Bool   // the plan decides

	mu      sync.Mutex
	begun   bool // state was made
	marks   [2]learn.Mark
	first   learn.Mark
	state   learn.State
	plan    learn.Plan
	pace    throttle.Limiter  // of the plan's rate; nil: it has none
	flights map[uint64]flight // departed while the plan decides, by their call's ID
	left    throttle.Instant  // when the last of them did
	told    learn.Known       // as tell was told last
	toldAt  throttle.Instant  // and when
}

// flightBits hold the calls in flight in Course.count.
const flightBits = 24

// A flight is a call in flight.
type flight struct {
	ordinal int64
	flying  int // calls in flight when it left, itself included
	at      throttle.Instant
}

const (
	// patience is how long a call may be unanswered while the number of calls in
	// flight is still growing: more are let go then, as if it had been answered. A
	// vendor refuses faster than it serves, and one that is slow must not be
	// asked one call at a time.
	patience = 100 * time.Millisecond
	// unanswered is how long a probe may be. Then the next call goes.
	unanswered = time.Second
	// sample is how many departures lie between two that are timed while nobody
	// waits.
	sample = 8
)

// NewCourse returns the course of a lane of which nothing is known.
func NewCourse(set learn.Setting, tell func(context.Context, learn.Known)) *Course {
	c := &Course{setting: set, tell: tell}
	c.reset()
	return c
}

func (c *Course) reset() {
	c.begun, c.pace, c.plan, c.told = false, nil, learn.Plan{}, learn.Known{}
	c.flights = nil // what flies is known by how the course stood as it left
	c.marks, c.first = [2]learn.Mark{}, learn.Mark{}
	c.steers.Store(false)
	c.most.Store(0)
	if c.setting.Configured == 0 {
		c.most.Store(1)
	}
}

// Forget makes the course one of which nothing is known.
func (c *Course) Forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reset()
}

// Recall makes a new course one that goes on with what was learned before.
func (c *Course) Recall(now throttle.Instant, m learn.Memory) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := learn.New(c.setting)
	if s.Import(m); s.Mode == learn.Start {
		return
	}
	c.begun, c.state = true, s
	c.replan(now)
	c.told = c.state.Known(c.plan)
}

// Export returns what was learned, for a course to come; false if nothing is sure.
func (c *Course) Export() (learn.Memory, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.begun {
		return learn.Memory{}, false
	}
	return c.state.Export()
}

// Configure tells the course that the configured limits are others now: those of
// set, whose Spread stays as it was.
func (c *Course) Configure(now throttle.Instant, set learn.Setting) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if set.Spread = c.setting.Spread; set == c.setting {
		return
	}
	c.setting, c.state.Setting = set, set
	c.most.Store(0)
	if set.Configured == 0 {
		c.unbind()
	}
	if c.begun {
		c.replan(now)
	}
}

// unbind begins to look for the limit where none is configured any more, with as
// many calls in flight as there are.
func (c *Course) unbind() {
	c.begin(&learn.Fact{})
	c.state.Cap = max(c.state.Cap, float64(c.Look().flying()))
}

// Follow gives the course of a sub-lane that is being made for a refusal what its
// lane knows of how fast calls leave: a share of that was refused.
func (c *Course) Follow(of *Course) {
	of.mu.Lock()
	marks := of.marks
	if of.begun {
		marks = of.state.Pace
	}
	of.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.first, c.marks = marks[0], marks
	c.count.Store(uint64(of.Look().ordinal()) << flightBits)
}

// Resume takes an operator's word that what the vendor told no longer holds.
func (c *Course) Resume(now throttle.Instant) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.begun {
		c.state.Resume(now)
		c.replan(now)
	}
}

// A Seen is how the course stood when a call left. The zero value is of a call
// that did not.
type Seen uint64

// Look returns how the course stands. A call looks as it leaves.
func (c *Course) Look() Seen { return Seen(c.count.Load()) }

func (s Seen) ordinal() int64 { return int64(s >> flightBits) }
func (s Seen) flying() int    { return int(s & (1<<flightBits - 1)) }

// Take is the Take of the limiter, with what was learned on top: nothing is
// spent unless both allow it.
func (c *Course) Take(now throttle.Instant, r throttle.Request, limiter throttle.Limiter) (throttle.Instant, error) {
	if c.steers.Load() {
		return c.steer(now, r, limiter)
	}
	if r.ID == 0 {
		return limiter.Take(now, r)
	}
	for c.full() {
		if at := throttle.Instant(c.news.Load()).Add(patience); at > now {
			return at, nil
		}
		c.hurry(now)
	}
	at, err := limiter.Take(now, r)
	if err != nil || at > now || c.depart(now) {
		return at, err
	}
	if f, ok := limiter.(throttle.Refunder); ok {
		f.Refund(now, at, r)
	}
	return now.Add(patience), nil
}

func (c *Course) full() bool {
	most := c.most.Load()
	return most > 0 && int64(c.Look().flying()) >= most
}

// depart counts one more call in flight, unless as many fly as may.
func (c *Course) depart(now throttle.Instant) bool {
	for {
		v := c.count.Load()
		most := c.most.Load()
		if most > 0 && int64(Seen(v).flying()) >= most {
			return false
		}
		if c.count.CompareAndSwap(v, v+1<<flightBits+1) {
			if most > 0 && Seen(v).flying() == 0 {
				c.news.Store(int64(now))
			}
			return true
		}
	}
}

// hurry lets more calls fly because those that do are slow.
func (c *Course) hurry(now throttle.Instant) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if throttle.Instant(c.news.Load()).Add(patience) > now || c.steers.Load() {
		return
	}
	c.begin(&learn.Fact{})
	c.raise(now)
}

func (c *Course) raise(now throttle.Instant) {
	c.state.Hurry()
	c.news.Store(int64(now))
	c.replan(now)
}

// slow tells whether the number of calls in flight still grows, as many fly as
// may, and none of them has been answered for a while.
func (c *Course) slow(now throttle.Instant) bool {
	return c.grows() && c.Look().flying() >= c.plan.Most && throttle.Instant(c.news.Load()).Add(patience) <= now
}

// grows tells whether the plan's bound of calls in flight is the one that grows
// until the first refusal.
func (c *Course) grows() bool {
	return c.state.Mode == learn.Start && c.plan.Most == max(1, int(c.state.Cap))
}

// steer is Take where the plan decides.
func (c *Course) steer(now throttle.Instant, r throttle.Request, limiter throttle.Limiter) (at throttle.Instant, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.plan.Told {
		c.replan(now)
	}
	if c.slow(now) {
		c.raise(now)
	}
	due := c.held(now, r)
	if due > now {
		return due, nil
	}
	// Each is charged no earlier than the other allowed it: credit for a late
	// timer is for the time in which nothing else held the call.
	r.Since = min(max(r.Since, due), now)
	if at, err = limiter.Take(now, r); err != nil || at > now || r.ID == 0 {
		return at, err
	}
	if c.pace != nil {
		if paced, err := c.pace.Take(now, throttle.Request{N: 1, Since: max(r.Since, at)}); err == nil {
			at = min(paced, now)
		}
	}
	v := Seen(c.count.Add(1<<flightBits + 1))
	if c.flights == nil {
		c.flights = make(map[uint64]flight)
	}
	c.flights[r.ID], c.left = flight{v.ordinal(), v.flying(), now}, now
	if v.flying() == 1 {
		c.news.Store(int64(now))
	}
	if c.plan.Told {
		c.replan(now)
	}
	return at, nil
}

// held returns since when, or until when, what was learned lets a call go. It is
// the learner's guess.
func (c *Course) held(now throttle.Instant, r throttle.Request) throttle.Instant {
	due := c.hold()
	if due > now {
		return due
	}
	if r.ID == 0 {
		return 0
	}
	if at := c.crowded(now); at > now {
		return at
	}
	if c.plan.Most > 0 {
		due = max(due, throttle.Instant(c.freed.Load()))
	}
	if c.pace != nil {
		one := throttle.Request{N: 1, Since: max(r.Since, due)}
		due = max(due, c.pace.(throttle.Forecaster).Forecast(now, one).At)
	}
	return due
}

// hold returns before when nobody leaves. An answer is not waited for without end.
func (c *Course) hold() throttle.Instant {
	if c.plan.Asks {
		return max(c.plan.Sure, c.left.Add(unanswered))
	}
	return c.plan.Hold
}

// crowded returns when fewer calls than the plan's bound will fly: when one
// lands or, where the next call waits for the answer of a probe, when that has
// been unanswered for too long.
func (c *Course) crowded(now throttle.Instant) throttle.Instant {
	if c.plan.Most == 0 {
		return now
	}
	lease := unanswered
	if c.plan.Since == 0 {
		if c.Look().flying() < c.plan.Most {
			return now
		}
		switch {
		case c.grows():
			return throttle.Instant(c.news.Load()).Add(patience)
		case c.state.Mode != learn.Trial:
			return throttle.Never
		}
		// Nobody knows yet that calls in flight count: a call that takes much
		// longer than others must not stop them.
		lease = min(max(lease, time.Duration(4e9*c.state.RTT)), 10*unanswered)
	}
	n, next := 0, throttle.Never
	for _, f := range c.flights {
		if overdue := f.at.Add(lease); f.ordinal > c.plan.Since && overdue > now {
			n, next = n+1, min(next, overdue)
		}
	}
	if n < c.plan.Most {
		return now
	}
	return next
}

// Held returns until when what was learned would hold a call now, and why; an
// instant not after now if it would not.
func (c *Course) Held(now throttle.Instant, r throttle.Request) (throttle.Instant, throttle.Reason) {
	if !c.steers.Load() {
		if c.full() {
			return throttle.Instant(c.news.Load()).Add(patience), throttle.ReasonConcurrency
		}
		return now, ""
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	at := c.held(now, r)
	switch {
	case at <= now:
		return now, ""
	case at > c.hold() && c.crowded(now) > now:
		return at, throttle.ReasonConcurrency
	default:
		return at, throttle.ReasonRate
	}
}

// Refund takes back a departure that did not take place.
func (c *Course) Refund(now, at throttle.Instant, r throttle.Request) {
	if r.ID == 0 {
		return
	}
	c.land()
	if !c.steers.Load() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.flights, r.ID)
	if c.pace != nil {
		c.pace.(throttle.Refunder).Refund(now, at, throttle.Request{N: 1, Since: r.Since})
	}
}

// land counts one call in flight less, and returns how many were left.
func (c *Course) land() int {
	for {
		v := c.count.Load()
		n := Seen(v).flying()
		if n == 0 {
			return 0
		}
		if c.count.CompareAndSwap(v, v-1) {
			return n - 1
		}
	}
}

// An Answer is what came of a call that left.
type Answer struct {
	ID       uint64 // of the call
	Seen     Seen   // as the call left
	Departed throttle.Instant
	Waited   bool // it stood in line, or others do
	Served   bool
	Refused  bool             // for want of quota; neither served nor refused: it teaches nothing
	Until    throttle.Instant // of a refusal: nothing departs before it; zero: no time was told
	Quotas   []learn.Quota    // not kept
}

// Refused takes in the refusal of a call, which Landed is told of afterwards.
func (c *Course) Refused(ctx context.Context, now throttle.Instant, a *Answer) {
	c.observe(ctx, now, a)
}

// Landed takes in an answer that is no refusal, or that there will be none. It
// reports whether others may be let go now who could not before.
func (c *Course) Landed(ctx context.Context, now throttle.Instant, a *Answer) (room bool) {
	if c.steers.Load() || len(a.Quotas) > 0 {
		if a.Waited {
			c.news.Store(int64(now))
		}
		c.observe(ctx, now, a) // a call flies until its answer is known
		c.down(now, a)
		return true
	}
	c.down(now, a)
	most := c.most.Load()
	if most > 0 && a.Waited {
		c.news.Store(int64(now))
		if a.Served {
			c.observe(ctx, now, a)
		}
		return true
	}
	if a.Served && a.Seen.ordinal()%sample == 0 {
		c.observe(ctx, now, a)
	}
	return false
}

// down counts a call that left as in flight no longer.
func (c *Course) down(now throttle.Instant, a *Answer) {
	if a.Seen != 0 {
		c.land()
		c.freed.Store(int64(now))
	}
}

// observe lets the learner learn from an answer.
func (c *Course) observe(ctx context.Context, now throttle.Instant, a *Answer) {
	c.mu.Lock()
	_, unheard := c.flights[a.ID]
	f := c.fact(now, a)
	switch {
	case !a.Served && !a.Refused:
		if unheard {
			c.state.Untold(f.Ordinal)
		}
	case c.begun || a.Refused || a.Waited || len(a.Quotas) > 0:
		c.begin(&f)
		c.state = learn.Observe(c.state, &f, now)
	default: // nobody needs a state yet: only how fast calls leave is noted
		c.mark(&f)
	}
	if c.begun {
		c.replan(now)
	}
	changed, told := c.changed(now)
	c.mu.Unlock()
	if changed && c.tell != nil {
		c.tell(ctx, told)
	}
}

// fact returns the answer as the learner wants it.
func (c *Course) fact(now throttle.Instant, a *Answer) learn.Fact {
	v := c.Look()
	f := learn.Fact{
		Departed: a.Departed, Landed: now, Ordinal: a.Seen.ordinal(), Flying: a.Seen.flying(), Granted: v.ordinal(),
		Waited: a.Waited, Refused: a.Refused, Until: a.Until, Quotas: a.Quotas,
	}
	if flown, ok := c.flights[a.ID]; ok {
		f.Ordinal, f.Flying, f.Departed = flown.ordinal, flown.flying, flown.at
		delete(c.flights, a.ID)
	}
	if f.Ordinal == 0 { // the lane was made for this refusal
		c.count.Add(1 << flightBits)
		f.Ordinal, f.Flying = c.Look().ordinal(), 1
		f.Granted = f.Ordinal
	}
	return f
}

func (c *Course) mark(f *learn.Fact) {
	m := learn.Mark{Ordinal: f.Ordinal, At: f.Departed}
	if c.first.Ordinal == 0 {
		c.first, c.marks = m, [2]learn.Mark{m, m}
		return
	}
	c.marks = [2]learn.Mark{c.marks[1], m}
}

// begin makes the state, with what was noted before.
func (c *Course) begin(f *learn.Fact) {
	if c.begun {
		return
	}
	c.begun = true
	c.state = learn.New(c.setting)
	if c.first.Ordinal > 0 {
		c.state.Met(f.Landed.Sub(f.Departed), c.first, c.marks)
	}
}

// replan asks the state for its plan, and puts that in force.
func (c *Course) replan(now throttle.Instant) {
	p := c.state.Plan(now, c.Look().ordinal())
	if p.Changed(c.plan) {
		c.retime(now, p.Rate)
	} else {
		p.Rate = c.plan.Rate
	}
	c.plan = p
	switch {
	case c.steers.Load():
	case c.state.Mode != learn.Start || p.Told || p.Hold > now:
		c.steers.Store(true)
	case c.setting.Configured == 0:
		c.most.Store(int64(p.Most))
	}
}

// retime puts a rate in force. Departures are spaced evenly, and a cost of
// several permits is one call to the vendor.
func (c *Course) retime(now throttle.Instant, rate float64) {
	if rate <= 0 {
		c.pace = nil
		return
	}
	per := time.Duration(min(max(1, math.Round(1e9/rate)), math.MaxInt64/4))
	limit := throttle.LeakyBucket(1, per)
	if c.pace != nil && c.pace.(throttle.Tuner).Tune(now, limit) == nil {
		return
	}
	c.pace, _ = throttle.Local{}.Limiter("", limit) // it validates: per is positive
}

// Tolerance returns the permit tolerance of the learned rate; zero: there is
// none.
func (c *Course) Tolerance() time.Duration {
	if !c.steers.Load() {
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pace == nil {
		return 0
	}
	return c.pace.(throttle.Tolerant).Tolerance()
}

// Known returns what was learned; the zero value says that nothing is sure.
func (c *Course) Known() learn.Known {
	if !c.steers.Load() {
		return learn.Known{}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state.Known(c.plan)
}

// changed reports whether what is known differs by a tenth from what was told
// last, and was told long enough ago.
func (c *Course) changed(now throttle.Instant) (bool, learn.Known) {
	k := learn.Known{}
	if c.begun && now.Sub(c.toldAt) >= tellEvery {
		k = c.state.Known(c.plan)
	}
	k.Probing = false // is no news
	if k == (learn.Known{}) || math.Abs(k.Rate-c.told.Rate) <= c.told.Rate/10 && (k.InFlight == 0) == (c.told.InFlight == 0) &&
		math.Abs(float64(k.InFlight-c.told.InFlight)) <= float64(c.told.InFlight)/10 {
		return false, k
	}
	c.told, c.toldAt = k, now
	return true, k
}

// tellEvery is how long lies between two reports of one lane: a limit that changes
// is news, and the steps of a search are not.
const tellEvery = 5 * time.Second
