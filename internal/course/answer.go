package course

import (
	"context"
	"math"
	"time"

	"github.com/weirgo/weir/internal/flight"
	"github.com/weirgo/weir/internal/learn"
	"github.com/weirgo/weir/throttle"
)

// An Answer is the outcome of a call that departed.
type Answer struct {
	ID       uint64      // of the call
	Seen     flight.Seen // state of the flights when the call departed
	Departed throttle.Instant
	Stood    time.Duration // time in line
	Others   bool          // other callers are in line
	Served   bool
	Refused  bool             // for lack of quota; if neither served nor refused, it teaches nothing
	Until    throttle.Instant // end of the pause that a refusal asks for; zero: none
	Quotas   []learn.Quota    // reported by the answer; not kept
}

// waited reports whether the call was in line for longer than a while, or others are.
func (a *Answer) waited(while time.Duration) bool { return a.Stood > while || a.Others }

// Landed applies an answer that is no refusal, or a call without an answer. It reports whether
// calls may depart now that could not before. Most answers change nothing but the number of calls
// in flight: then it reads no clock.
func (c *Course) Landed(ctx context.Context, clock func() throttle.Instant, a *Answer) (room bool) {
	if c == nil {
		return false
	}
	decides := c.steers.Load() || len(a.Quotas) > 0
	room = decides || c.most.Load() > 0 && a.waited(0)
	if room && a.waited(0) {
		c.moved.Store(int64(clock()))
	}
	// While calls in flight are not bounded, a sample of the answers is observed.
	if decides || a.Served && (room || a.Seen.Ordinal()%sample == 0) {
		c.Observe(ctx, clock(), a) // a call is in flight until its answer is known
	}
	if a.Seen == 0 {
		return room
	}
	c.flights.Answered()
	if c.fleet != nil {
		c.mu.Lock()
		c.fleet.unsent.Landed++
		c.mu.Unlock()
	}
	return room
}

// Observe lets the learner learn from an answer. The call stays in flight: it was refused and lands
// afterwards, or it departed from another lane with the same quota.
func (c *Course) Observe(ctx context.Context, now throttle.Instant, a *Answer) {
	if c == nil {
		return
	}
	if c.fleet != nil {
		c.observeShared(now, a)
		return
	}
	c.mu.Lock()
	f, flown := c.fact(now, a)
	switch {
	case !a.Served && !a.Refused:
		if flown != nil && c.begun {
			c.state.Unread(f.Ordinal)
		}
	case c.begun || a.Refused || a.waited(0) || len(a.Quotas) > 0:
		c.begin(&f)
		c.state.Observe(&f, now)
	default: // no state is needed yet: only the pace of departures is noted
		c.mark(&f)
	}
	if c.begun {
		c.replan(now)
	}
	c.report(ctx, now)
}

// fact returns the answer in the learner's terms. If it is the first one of a call that departed
// while the plan decided, it also returns the entry of that call; otherwise nil.
func (c *Course) fact(now throttle.Instant, a *Answer) (f learn.Fact, flown *flight.Call) {
	v := c.Look()
	f = learn.Fact{
		Departed: a.Departed, Landed: now, Ordinal: a.Seen.Ordinal(), Flying: a.Seen.Flying(), Granted: v.Ordinal(),
		Waited: a.waited(0), Refused: a.Refused, Until: a.Until, Quotas: a.Quotas,
	}
	if a.Seen != 0 { // it is in flight until it has landed
		f.Answered = v.Ordinal() - int64(v.Flying()) + 1
	}
	if call := c.flights.Find(a.ID); call != nil && call.Seen.Ordinal() > c.forgot {
		flown = call
		f.Ordinal, f.Flying, f.Departed = call.Seen.Ordinal(), call.Seen.Flying(), call.At
		call.Seen = 0 // it counts once
	}
	if f.Ordinal == 0 { // the lane was made for this refusal
		c.flights.Pass()
		f.Ordinal, f.Flying = c.Look().Ordinal(), 1
		f.Granted = f.Ordinal
	}
	return f, flown
}

// mark notes the departures that show the pace of the lane.
func (c *Course) mark(f *learn.Fact) {
	m := learn.Mark{Ordinal: f.Ordinal, At: f.Departed}
	if c.first.Ordinal == 0 {
		c.first, c.marks[1] = m, m
	}
	c.marks = [2]learn.Mark{c.marks[1], m}
}

// begin makes the state from earlier notes, unless there is one.
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
	case c.state.Mode != learn.Start || p.Reported || p.Hold > now:
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
