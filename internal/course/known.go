package course

import (
	"context"
	"math"
	"time"

	"github.com/weirgo/weir/internal/learn"
	"github.com/weirgo/weir/throttle"
)

// Recall makes a new course continue with earlier knowledge.
func (c *Course) Recall(now throttle.Instant, m learn.Memory) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fleet != nil {
		c.say(learn.Message{Memory: &m})
		return
	}
	s := learn.New(c.setting)
	if s.Import(m); s.Mode == learn.Start {
		return
	}
	c.begun, c.state = true, &s
	c.replan(now)
	c.event = c.state.Known(c.plan)
	c.logged = c.event
}

// Export returns what was learned, for a later course. It returns false if nothing is certain.
func (c *Course) Export() (learn.Memory, bool) {
	s, _ := c.Learned()
	return s.Export()
}

// Known returns what was learned. The zero value means that nothing is certain.
func (c *Course) Known() learn.Known {
	if !c.Steers() {
		return learn.Known{}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state.Known(c.plan)
}

// Learned returns what was learned, and the plan in force, for forecasts and for the simulator.
func (c *Course) Learned() (learn.State, learn.Plan) {
	if c == nil {
		return learn.State{}, learn.Plan{}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return *c.state, c.plan
}

// A Report is an estimate, and where to report it.
type Report struct {
	Known       learn.Known
	Event, Line bool // to the span of a call, to the log
}

// report unlocks the course, and reports the estimate if that is due.
func (c *Course) report(ctx context.Context, now throttle.Instant) {
	r := c.changed(now)
	c.mu.Unlock()
	if (r.Event || r.Line) && c.reports != nil {
		c.reports.Learned(ctx, r)
	}
}

// changed returns the report that is due. An event is due if the estimate differs by a tenth from that of the last
// event. The first estimates of a search may be many times too high, and the next refusals correct them. So a line of
// log is due only if the estimate is narrow, has stood for a while, and differs from the last line.
func (c *Course) changed(now throttle.Instant) (r Report) {
	k := c.state.Known(c.plan)
	if k.Probing = false; k == (learn.Known{}) { // a probe is not reported
		return Report{}
	}
	if r.Known = k; now.Sub(c.eventAt) >= eventEvery && !near(k, c.event, 0.1) {
		r.Event, c.event, c.eventAt = true, k, now
	}
	if !near(k, c.standing, standingWithin) || k.Rate != 0 && !k.Reported && c.state.U > narrowWidth {
		c.standing, c.stands = k, now
	}
	if now.Sub(c.stands) >= standsFor && !near(k, c.logged, logChange) {
		r.Line, c.logged = true, k
	}
	return r
}

// near reports whether k differs from an earlier estimate by at most a share of that.
func near(k, known learn.Known, share float64) bool {
	return math.Abs(k.Rate-known.Rate) <= known.Rate*share && (k.InFlight == 0) == (known.InFlight == 0) &&
		math.Abs(float64(k.InFlight-known.InFlight)) <= float64(known.InFlight)*share
}

const (
	standsFor      = 10 * time.Second // how long an estimate is narrow before it is logged
	narrowWidth    = 0.05             // greatest width of such an estimate: with 0.1, two of 24 vendors of 6/s were logged as 4.75/s, and with 0.05 all within 15 %
	standingWithin = 0.2              // of the estimate: the most that it may move meanwhile
	logChange      = 0.25             // of the last logged estimate: a greater change is logged
	eventEvery     = 5 * time.Second  // least time between two events of a lane: a search has more steps
)
