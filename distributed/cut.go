package distributed

import (
	"time"

	"github.com/weirgo/weir/throttle"
)

// Thousandths of the configured rate: all of it, and what one refusal leaves
// until the store has told.
const (
	wholeRate = 1000
	cutRate   = wholeRate * throttle.Cut
)

// servedEvery is how often the store is told that a call was served while the rate
// is cut. It restores a step a second.
const servedEvery = time.Second

// A cut is how far refusals without a told time have slowed the lane.
type cut struct {
	rate   int64            // in force, in thousandths; zero: never told, which is all of it
	at     throttle.Instant // when a refusal slowed; zero: a call that departed since then was served
	served throttle.Instant // when the store was last told of a served call
}

// refused takes in a fact, and reports whether the store must be told to cut.
func (c *cut) refused(now throttle.Instant, f throttle.Fact) bool {
	if !f.Refused && f.Departed > c.at {
		c.at = 0
	}
	if !f.Slows() || f.Until != 0 && c.at != 0 {
		return false
	}
	c.rate, c.at = cutRate, now
	return true
}

// restores takes in that a call was served, and reports whether the store must be
// told.
func (c *cut) restores(now throttle.Instant) bool {
	if c.rate == 0 || c.rate >= wholeRate || now.Sub(c.served) < servedEvery {
		return false
	}
	c.served = now
	return true
}

// fraction returns how much of the configured rate is in force, at most 1.
func (c *cut) fraction() float64 {
	if c.rate == 0 {
		return 1
	}
	return float64(c.rate) / wholeRate
}
