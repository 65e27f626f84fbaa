package lane

import (
	"context"
	"math"
	"time"

	"github.com/weirgo/weir/internal/learn"
	"github.com/weirgo/weir/throttle"
)

// An Answer is what came of a call that departed.
type Answer struct {
	ID       uint64 // of the call
	Seen     Seen   // state of the course when the call departed
	Departed throttle.Instant
	Stood    time.Duration // in line
	Others   bool          // stand in line
	Served   bool
	Refused  bool             // for want of quota; if it was neither served nor refused, it teaches nothing
	Until    throttle.Instant // of a refusal, when its pause ends; zero: no time was told
	Quotas   []learn.Quota    // that the answer told; not kept
}

// waited reports whether the call stood in line for longer than a while, or others do.
func (a *Answer) waited(while time.Duration) bool { return a.Stood > while || a.Others }

// Refused takes in the refusal of a call. Landed is told of the same call
// afterwards.
func (c *Course) Refused(ctx context.Context, now throttle.Instant, a *Answer) {
	c.observe(ctx, now, a)
}

// Told takes in what an answer tells of quotas, of a call that has not passed.
func (c *Course) Told(ctx context.Context, now throttle.Instant, a *Answer) {
	c.observe(ctx, now, a)
}

// Landed takes in an answer that is no refusal, or that there will be none. It
// reports whether others may be let go now who could not before.
func (c *Course) Landed(ctx context.Context, now throttle.Instant, a *Answer) (room bool) {
	if c.steers.Load() || len(a.Quotas) > 0 {
		if a.waited(0) {
			c.news.Store(int64(now))
		}
		c.observe(ctx, now, a) // a call flies until its answer is known
		c.down(now, a)
		return true
	}
	c.down(now, a)
	most := c.most.Load()
	if most > 0 && a.waited(0) {
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

// observe lets the learner learn from an answer.
func (c *Course) observe(ctx context.Context, now throttle.Instant, a *Answer) {
	if c.fleet != nil {
		c.observeShared(now, a)
		return
	}
	c.mu.Lock()
	_, unheard := c.flights[a.ID]
	f := c.fact(now, a)
	switch {
	case !a.Served && !a.Refused:
		if unheard && c.begun {
			c.state.Untold(f.Ordinal)
		}
	case c.begun || a.Refused || a.waited(0) || len(a.Quotas) > 0:
		c.begin(&f)
		*c.state = learn.Observe(*c.state, &f, now)
	default: // nobody needs a state yet: only how fast calls leave is noted
		c.mark(&f)
	}
	if c.begun {
		c.replan(now)
	}
	n := c.changed(now)
	c.mu.Unlock()
	if (n.event || n.line) && c.tell != nil {
		c.tell.learned(ctx, n)
	}
}

// fact returns the answer in the learner's terms.
func (c *Course) fact(now throttle.Instant, a *Answer) learn.Fact {
	v := c.Look()
	f := learn.Fact{
		Departed: a.Departed, Landed: now, Ordinal: a.Seen.ordinal(), Flying: a.Seen.flying(), Granted: v.ordinal(),
		Waited: a.waited(0), Refused: a.Refused, Until: a.Until, Quotas: a.Quotas,
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

// mark notes the departures that tell how fast calls leave.
func (c *Course) mark(f *learn.Fact) {
	m := learn.Mark{Ordinal: f.Ordinal, At: f.Departed}
	if c.first.Ordinal == 0 {
		c.first, c.marks = m, [2]learn.Mark{m, m}
		return
	}
	c.marks = [2]learn.Mark{c.marks[1], m}
}

// begin makes the state from what was noted before, unless there is one.
func (c *Course) begin(f *learn.Fact) {
	if c.begun {
		return
	}
	c.begun, c.state = true, new(learn.New(c.setting))
	if c.first.Ordinal > 0 {
		c.state.Met(f.Landed.Sub(f.Departed), c.first, c.marks)
	}
}

// replan asks the state for its plan, and puts it in force.
func (c *Course) replan(now throttle.Instant) {
	p := c.planned(now)
	switch {
	case c.together(): // the store paces
	case p.Changed(c.plan):
		c.retime(now, p.Rate)
	default:
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

// retime puts a rate in force. Departures are spaced evenly. A call counts
// once, however many permits it costs.
func (c *Course) retime(now throttle.Instant, rate float64) {
	if rate <= 0 {
		c.pace = nil
		return
	}
	per := time.Duration(min(max(1, math.Round(1e9/rate)), math.MaxInt64/4))
	limit := throttle.LeakyBucket(1, per)
	if c.pace != nil && c.pace.Tune(now, limit) == nil {
		return
	}
	c.pace, _ = throttle.Local{}.Limiter("", limit) // it validates: per is positive
}
