package call

import (
	"sync"
	"time"

	"github.com/weirgo/weir/distributed/internal/script"
	"github.com/weirgo/weir/throttle"
)

// A Clock converts instants between the queue's clock, in nanoseconds, and that of Redis, in
// microseconds. The clocks need not agree: all it knows is that a reply was written before it was
// read. An instant of Redis is dated by the fastest reply, so it is late by the trip of that reply,
// and never early:
//
//	a reply of 12:00:00.000 read at 12:00:05.002   difference 5.002 s
//	another of 12:00:01.000 read at 12:00:06.001   difference 5.001 s, in force
//	a permit of 12:00:02.000 is dated              12:00:07.001
//
// If the trip becomes longer than that of the fastest reply, every permit for now would be void on
// arrival. So after lateReplies such replies in a row, the fastest of them is used. It dates
// permits later, which is on the strict side.
type Clock struct {
	asked throttle.Instant // by the queue's clock
	at    time.Time        // when asked was noted; zero: never

	known    bool             // a reply came
	ahead    throttle.Instant // of the queue's clock over that of Redis: the difference in force
	least    throttle.Instant // of the samples since the one in force was confirmed
	confirms throttle.Instant // when least is judged

	late    int              // replies in a row that came too late for permits for now
	soonest throttle.Instant // the least sample of these
}

const (
	coarse   = 10 * throttle.Instant(time.Microsecond)
	judgment = 10 * time.Second

	lateReplies = 2 // a single one may have waited in the socket of a stopped process
)

// Anchor notes the instant of the queue's clock. A caller reads it a moment earlier, so the
// greatest difference to our own clock is the true one.
func (c *Clock) Anchor(now throttle.Instant) {
	at := time.Now()
	if c.at.IsZero() || now.Sub(c.asked) > at.Sub(c.at) {
		c.asked, c.at = now, at
	}
}

// Now returns the instant by the queue's clock, outside its calls.
func (c *Clock) Now() throttle.Instant { return c.When(time.Now()) }

// When returns the instant by the queue's clock at a time.
func (c *Clock) When(t time.Time) throttle.Instant {
	if c.at.IsZero() {
		return throttle.InstantOf(t)
	}
	return c.asked.Add(t.Sub(c.at))
}

// Learn applies a reply that Redis dated now, read at an instant after a call that took this long.
// Permits are void once they are older than the tolerance.
func (c *Clock) Learn(now int64, read throttle.Instant, took, tolerance time.Duration) {
	sample := read - script.InstantOf(now)
	if sample < 0 {
		sample -= coarse - 1
	}
	sample -= sample % coarse
	switch {
	case !c.known, sample < c.ahead:
		c.adopt(sample, read)
	case sample > c.ahead+throttle.Instant(took)+coarse:
		// No reply takes longer than its call: the clock of Redis moved back.
		c.adopt(sample, read)
	case read >= c.confirms:
		if c.least > c.ahead {
			c.adopt(c.least, read) // the clocks drift
		}
		c.least, c.confirms = sample, read.Add(judgment)
	default:
		c.least = min(c.least, sample)
		if sample <= c.ahead.Add(tolerance) {
			c.late = 0
			return
		}
		// It came too late for permits for now.
		if c.late++; c.late == 1 || sample < c.soonest {
			c.soonest = sample
		}
		if c.late >= lateReplies {
			c.adopt(c.soonest, read)
		}
	}
}

// adopt puts a difference in force.
func (c *Clock) adopt(ahead, now throttle.Instant) {
	c.known, c.late, c.ahead = true, 0, ahead
	c.least, c.confirms = ahead, now.Add(judgment)
}

// InForce returns the difference in force; zero before the first reply.
func (c *Clock) InForce() throttle.Instant { return c.ahead }

// Here returns an instant of Redis by the queue's clock.
func (c *Clock) Here(micros int64) throttle.Instant { return script.InstantOf(micros) + c.ahead }

// A stepper notices that the clock of a server, or of this process, was set. The lanes of
// the server share it, so that a step is reported once. It is safe for concurrent use.
type stepper struct {
	longest time.Duration // that a call takes

	mu    sync.Mutex
	clock Clock
	at    time.Time // of the last step; zero: never
}

// Steps applies the server's clock in a reply, and reports whether a clock was set. No call
// takes longer than its deadline, so a difference that changed by more is a step. The reply to
// a call that was under way when a step was noticed may be older than the step.
func (s *stepper) Steps(there int64, read time.Time, took, tolerance time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &s.clock
	if c.at.IsZero() {
		c.asked, c.at = throttle.InstantOf(read), read
	}
	if read.Add(-took).Before(s.at) {
		return false
	}
	known, before := c.known, c.ahead
	c.Learn(there, c.When(read), took, tolerance)
	moved := c.ahead.Sub(before)
	if !known || max(moved, -moved) <= s.longest {
		return false
	}
	s.at = read
	return true
}
