package course

import (
	"math"
	"time"

	"github.com/weirgo/weir/internal/flight"
	"github.com/weirgo/weir/internal/learn"
	"github.com/weirgo/weir/throttle"
)

const (
	// patience is how long a call may be without an answer while the number of calls in flight
	// still grows. Then more depart: a slow vendor must not get one call at a time, and vendors
	// refuse faster than they serve.
	patience = 100 * time.Millisecond
	sample   = 8 // one of this many departures is timed while no call waits
)

// Calm reports whether nothing learned delays a call.
func (c *Course) Calm() bool { return c == nil || !c.steers.Load() && !c.full() }

// Steers reports whether the plan decides.
func (c *Course) Steers() bool { return c != nil && c.steers.Load() }

// full reports whether the calls in flight have reached their bound, until the plan decides.
func (c *Course) full() bool {
	most := c.most.Load()
	return most > 0 && int64(c.Look().Flying()) >= most
}

// Depart counts one more call in flight while the plan does not decide. It returns false if the
// bound is reached.
func (c *Course) Depart(now throttle.Instant) bool {
	if c == nil {
		return true
	}
	most := c.most.Load()
	v, ok := c.flights.Depart(most)
	if ok && most > 0 && v.Flying() == 1 {
		c.moved.Store(int64(now))
	}
	return ok
}

// Ask implements the veto of a gate. The instants are the learner's guess.
func (c *Course) Ask(t flight.Turn) (throttle.Forecast, error) {
	if !t.Forecast {
		c.refresh(t.Now)
	}
	f := throttle.Forecast{Reason: throttle.ReasonConcurrency, Limit: learnedLimit}
	if !c.steers.Load() {
		if t.ID != 0 && c.full() && c.retries() > t.Now {
			f.At = c.retries()
		}
		return f, nil
	}
	if f.At = c.hold(); f.At > t.Now || t.ID == 0 {
		f.Reason = throttle.ReasonRate
		return f, nil
	}
	if c.leased() {
		if _, err := c.fleet.places.Room(); err != nil {
			return f, err
		}
	}
	if free, next := c.room(t.Now); free == 0 && next > t.Now {
		f.At = next
		return f, nil
	}
	f.Reason = throttle.ReasonRate
	if c.pace != nil {
		one := throttle.Request{N: 1, Since: max(t.Since, f.At)}
		f.At = max(f.At, c.pace.Forecast(t.Now, one).At)
	}
	return f, nil
}

// refresh brings the plan up to an instant at which a call asks to depart.
func (c *Course) refresh(now throttle.Instant) {
	steers := c.steers.Load()
	if steers && c.plan.Reported {
		c.replan(now)
	}
	if steers && c.plan.Probe { // it need not be answered, if it would have been refused by now
		if n, _ := c.flights.Recent(now, time.Hour, c.counts); n > 0 && now.Sub(c.left) >= c.state.Passed() {
			c.state.Pass(&learn.Fact{Departed: c.left, Landed: now, Ordinal: c.last.Ordinal(), Flying: c.last.Flying(), Waited: true})
			c.replan(now)
		}
	}
	full := !steers && c.full() || steers && c.grows() && c.Look().Flying() >= c.plan.Most
	if full && c.retries() <= now {
		c.begin(&learn.Fact{})
		c.raise(now)
	}
}

// Board implements the veto of a gate.
func (c *Course) Board(t flight.Turn) throttle.Instant {
	if !c.steers.Load() {
		if !c.Depart(t.Now) {
			return t.Now.Add(patience)
		}
		return 0
	}
	at := t.Grant.At
	if c.pace != nil {
		since := t.Since
		if c.setting.Configured > 0 { // otherwise the limiter holds no call, and returns now
			since = max(since, at)
		}
		if paced, err := c.pace.Take(t.Now, throttle.Request{N: 1, Since: since}); err == nil {
			at = min(paced.At, t.Now)
		}
	}
	if c.leased() {
		if !c.fleet.places.Board() {
			return throttle.Never
		}
		t.Call.Places = c.allowed(t.Now)
	}
	t.Call.Seen, _ = c.flights.Depart(0)
	if c.fleet != nil {
		if t.Call.Given = t.Grant.Ref.Ordinal; t.Call.Given == 0 {
			c.fleet.departed(t.Now, t.Call.Seen.Ordinal())
		}
		t.Call.Over = c.fleet.view.Landed
	}
	c.left, c.last = t.Now, t.Call.Seen
	if t.Call.Seen.Flying() == 1 {
		c.moved.Store(int64(t.Now))
	}
	return at
}

// Leave implements the veto of a gate. No answer is awaited: a store may grant the permit later.
func (c *Course) Leave(t flight.Turn) {
	c.flights.Answered()
	if t.Call == nil || t.Call.Seen == 0 {
		return
	}
	switch {
	case c.fleet == nil && c.begun:
		c.state.Lapsed(t.Call.Seen.Ordinal(), 1)
	case c.fleet != nil && t.Call.Given == 0: // the store may have counted it, so it has landed, and spent nothing
		c.fleet.unsent.Landed++
		c.fleet.unsent.Refused++
	}
	if c.pace != nil {
		c.pace.Refund(t.Now, t.Grant, throttle.Request{N: 1, Since: t.Since})
	}
}

// Room implements the veto of a gate. Permits fetched for more calls than may depart would be void,
// yet counted.
func (c *Course) Room(now throttle.Instant, n int) int {
	switch {
	case !c.together(): // it also asks what others have learned
		return n
	case c.hold() > now:
		return 0
	}
	free, _ := c.room(now)
	return min(n, free)
}

// learnedLimit is the name of the learned limit in errors and spans.
const learnedLimit = "learned"

// retries returns when more calls depart without an answer.
func (c *Course) retries() throttle.Instant {
	return throttle.Instant(c.moved.Load()).Add(patience)
}

// raise doubles the bound of calls in flight.
func (c *Course) raise(now throttle.Instant) {
	if c.together() {
		c.say(learn.Message{Hurry: true})
	} else {
		c.state.Hurry()
	}
	c.moved.Store(int64(now))
	c.replan(now)
}

// grows reports whether the plan's bound of calls in flight is the one that
// grows until the first refusal.
func (c *Course) grows() bool {
	return c.state.Mode == learn.Start && c.plan.Most == c.part(max(1, int(c.state.Cap)))
}

// hold returns the instant before which no call departs.
func (c *Course) hold() throttle.Instant {
	hold := holdOf(c.plan, c.left)
	if c.fleet != nil {
		hold = max(hold, c.fleet.braked)
	}
	return hold
}

// holdOf returns the instant before which no call departs by a plan, if the last one
// departed at left. The wait for an answer has an end.
func holdOf(p learn.Plan, left throttle.Instant) throttle.Instant {
	if p.Asks {
		return max(p.Sure, left.Add(flight.Patience))
	}
	return p.Hold
}

// room returns how many more calls may be in flight by the plan's bound. If none may, it returns
// when one fewer will be in flight: when one lands. If the next call waits for the answer of a
// probe, that is when the probe has lacked an answer for too long, at the latest.
func (c *Course) room(now throttle.Instant) (free int, next throttle.Instant) {
	if c.plan.Most == 0 {
		return math.MaxInt, now
	}
	if c.leased() {
		if next = throttle.Never; c.state.Mode == learn.Trial { // overdue calls give their places back
			next = c.flights.Lapse(now)
		}
		free, _ = c.fleet.places.Room()
		return free, next
	}
	lease := min(flight.Patience, c.state.Passed())
	if c.plan.Since == 0 {
		if free = c.plan.Most - c.Look().Flying(); free > 0 {
			return free, now
		}
		switch {
		case c.grows():
			return 0, c.retries()
		case c.state.Mode != learn.Trial:
			return 0, throttle.Never
		}
		// It is not known yet whether calls in flight count: a call that takes much
		// longer than others must not stop them.
		lease = flight.Lease(time.Duration(1e9 * c.state.RTT))
	}
	n, next := c.flights.Recent(now, lease, c.counts)
	return max(0, c.plan.Most-n), next
}

// counts reports whether the plan's bound concerns a call in flight.
func (c *Course) counts(f *flight.Call) bool {
	ordinal := f.Seen.Ordinal()
	if ordinal <= c.forgot {
		return false
	}
	if c.together() {
		ordinal = f.Given
	}
	return ordinal > c.plan.Since
}
