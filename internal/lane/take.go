package lane

import (
	"time"

	"github.com/weirgo/weir/internal/learn"
	"github.com/weirgo/weir/throttle"
)

const (
	// patience is how long a call may be without an answer while the number of
	// calls in flight still grows. Then more calls are let go, as if it had been
	// answered. A vendor refuses faster than it serves, and a slow vendor must not
	// be asked one call at a time.
	patience = 100 * time.Millisecond
	// unanswered is how long a call that the next one waits for may take. Then the
	// next one goes: an unanswered call is neither good nor bad.
	unanswered = time.Second
	// sample is how many departures lie between two that are timed while nobody
	// waits.
	sample = 8
)

// Take is the limiter's Take, with what was learned on top. Nothing is spent
// unless both allow it.
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
	limiter.Refund(now, at, r)
	return now.Add(patience), nil
}

// hurry lets more calls go because those in flight are slow.
func (c *Course) hurry(now throttle.Instant) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if throttle.Instant(c.news.Load()).Add(patience) > now || c.steers.Load() {
		return
	}
	c.begin(&learn.Fact{})
	c.raise(now)
}

// raise lets one more call be in flight.
func (c *Course) raise(now throttle.Instant) {
	if c.together() {
		c.say(learn.AppendHurry(nil))
	} else {
		c.state.Hurry()
	}
	c.news.Store(int64(now))
	c.replan(now)
}

// slow reports whether the bound of calls in flight still grows, is reached,
// and none of them was answered for a while.
func (c *Course) slow(now throttle.Instant) bool {
	return c.grows() && c.Look().flying() >= c.plan.Most && throttle.Instant(c.news.Load()).Add(patience) <= now
}

// grows reports whether the plan's bound of calls in flight is the one that
// grows until the first refusal.
func (c *Course) grows() bool {
	return c.state.Mode == learn.Start && c.plan.Most == c.part(max(1, int(c.state.Cap)))
}

// steer is Take while the plan decides.
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
	left := flight{ordinal: v.ordinal(), flying: v.flying(), at: now}
	if c.fleet != nil {
		left.given = c.fleet.departed(now, v.ordinal())
	}
	c.flights[r.ID], c.left = left, now
	if v.flying() == 1 {
		c.news.Store(int64(now))
	}
	if c.plan.Told {
		c.replan(now)
	}
	return at, nil
}

// held returns the instant since which, or until which, what was learned holds
// a call. It is the learner's guess.
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
		due = max(due, c.pace.Forecast(now, one).At)
	}
	return due
}

// hold returns the instant before which nobody departs. An answer is not waited
// for without end.
func (c *Course) hold() throttle.Instant {
	hold := c.plan.Hold
	if c.plan.Asks {
		hold = max(c.plan.Sure, c.left.Add(unanswered))
	}
	if c.fleet != nil {
		hold = max(hold, c.fleet.braked)
	}
	return hold
}

// crowded returns when fewer calls will be in flight than the plan's bound.
// That is when one lands. If the next call waits for the answer of a probe, it
// is at the latest when the probe was without an answer for too long.
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
	n, next := c.unheard(now, lease)
	if n < c.plan.Most {
		return now
	}
	return next
}

// unheard returns how many calls that the plan's bound concerns have been unanswered
// for less than a lease, and when the first will have been for longer.
func (c *Course) unheard(now throttle.Instant, lease time.Duration) (n int, next throttle.Instant) {
	next = throttle.Never
	for _, f := range c.flights {
		if overdue := f.at.Add(lease); c.numbered(&f) > c.plan.Since && overdue > now {
			n, next = n+1, min(next, overdue)
		}
	}
	return n, next
}

// Held returns until when what was learned would hold a call now, and why. If
// that is not after now, it would not hold the call.
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
