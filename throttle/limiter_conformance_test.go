package throttle_test

import (
	"testing"
	"time"

	"github.com/weirgo/weir/throttle"
	"github.com/weirgo/weir/throttle/limitertest"
)

func TestDecisions(t *testing.T) {
	histories := 10_000
	if testing.Short() {
		histories = 500
	}
	limitertest.Suite{Make: throttle.NewAt, Histories: histories}.Decisions(t)
}

// A limiter that computes in whole microseconds runs the same cases: this one
// charges at exact instants and rounds what it returns.
func TestDecisionsOfACoarserTick(t *testing.T) {
	coarsely := func(limits ...throttle.Limit) throttle.Limiter {
		return coarse{throttle.NewAt(limits...), t}
	}
	limitertest.Suite{Make: coarsely, Histories: 300, Tick: time.Duration(tick)}.Decisions(t)
}

const tick = throttle.Instant(time.Microsecond)

// A coarse limiter returns instants rounded up to the tick, and may be asked at
// whole ticks only.
type coarse struct {
	throttle.Limiter
	t *testing.T
}

func roundUp(at throttle.Instant) throttle.Instant {
	if at == throttle.Never {
		return at
	}
	return at + (tick-at%tick)%tick
}

func (c coarse) whole(instants ...throttle.Instant) {
	for _, at := range instants {
		if at%tick != 0 {
			c.t.Errorf("asked at %d, want whole ticks of %d", at, tick)
		}
	}
}

func (c coarse) Take(now throttle.Instant, r throttle.Request) (throttle.Grant, error) {
	c.whole(now, r.Since)
	granted, err := c.Limiter.Take(now, r)
	granted.At = roundUp(granted.At)
	return granted, err
}

func (c coarse) Forecast(now throttle.Instant, r throttle.Request) throttle.Forecast {
	c.whole(now, r.Since)
	f := c.Limiter.Forecast(now, r)
	f.At = roundUp(f.At)
	return f
}

func (c coarse) Refund(now throttle.Instant, g throttle.Grant, r throttle.Request) {
	c.whole(now, g.At)
	c.Limiter.Refund(now, g, r)
}

func (c coarse) Settle(now throttle.Instant, g throttle.Grant, r, actual throttle.Request) {
	c.whole(now, g.At)
	c.Limiter.Settle(now, g, r, actual)
}

func (c coarse) Reconcile(now throttle.Instant, f throttle.Fact) {
	c.whole(now, f.Until)
	c.Limiter.Reconcile(now, f)
}

func (c coarse) Tune(now throttle.Instant, limits ...throttle.Limit) error {
	c.whole(now)
	return c.Limiter.Tune(now, limits...)
}

func (c coarse) State(now throttle.Instant) throttle.State {
	c.whole(now)
	s := c.Limiter.State(now)
	for i := range s.Limits {
		s.Limits[i].Next = roundUp(now.Add(s.Limits[i].Next)).Sub(now)
	}
	return s
}
