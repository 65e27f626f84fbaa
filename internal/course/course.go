package course

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirgo/weir/internal/flight"
	"github.com/weirgo/weir/internal/learn"
	"github.com/weirgo/weir/throttle"
)

// A Course makes a lane follow the learned limit of its vendor. It is between the lane's queue and
// the limiter of the configured limits.
//
// At first, a departure costs one compare-and-swap. The calls in flight grow
// from one, by one for each answer that came while others waited. From the
// first refusal on, or the first quota that is reported, the learner's plan decides
// under a lock.
//
// A nil Course learns nothing and holds no call. A Course is safe for concurrent use.
type Course struct {
	setting learn.Setting
	reports Reporter // nil: no reports

	flights *flight.Table

	most   atomic.Int64 // most calls in flight until the plan decides; zero: any number
	moved  atomic.Int64 // Instant at which most grew, a call landed, or the first one departed
	steers atomic.Bool  // the plan decides

	mu       *sync.Mutex // of the flights
	begun    bool        // the state exists
	marks    [2]learn.Mark
	first    learn.Mark
	state    *learn.State // unlearned, if begun is false: most lanes need none, and it is large
	plan     learn.Plan
	pace     throttle.Limiter // of the plan's rate; nil: no rate
	forgot   int64            // entries of departures up to this ordinal do not count
	left     throttle.Instant // when the last call departed while the plan decides
	last     flight.Seen      // that call
	event    learn.Known      // in the last event
	eventAt  throttle.Instant // of the last event
	logged   learn.Known      // in the last line of log
	standing learn.Known      // the estimate that has stood since stands
	stands   throttle.Instant
	fleet    *fleet // nil: no other process shares the lane
}

// unlearned is the state of a course without one. It is never written.
var unlearned learn.State

// A Reporter receives reports of the estimate. It is called without a lock.
type Reporter interface {
	Learned(context.Context, Report)
}

// NewCourse returns the course of a new lane. The reporter may be nil.
func NewCourse(set learn.Setting, r Reporter) *Course {
	flights := new(flight.Table)
	c := &Course{setting: set, reports: r, flights: flights, mu: &flights.Mutex}
	c.reset()
	return c
}

// reset forgets everything but the setting.
func (c *Course) reset() {
	c.begun, c.state, c.pace, c.plan = false, &unlearned, nil, learn.Plan{}
	c.event, c.logged, c.standing = learn.Known{}, learn.Known{}, learn.Known{}
	c.forgot = c.Look().Ordinal() // calls in flight are identified by the flights' state at departure
	c.marks, c.first = [2]learn.Mark{}, learn.Mark{}
	if f := c.fleet; f != nil {
		f.begun, f.met, f.facts, f.rate, f.every, f.unbound = false, false, nil, 0, 1, false
		c.bind(0, 0)
		c.begun, c.state = true, new(learn.New(c.setting))
		c.most.Store(0) // the plan bounds them
		c.steers.Store(true)
		c.plan = c.planned(0)
		return
	}
	c.steers.Store(false)
	c.most.Store(0)
	if c.setting.Configured == 0 {
		c.most.Store(1)
	}
}

// Forget makes the course forget everything learned. In a fleet all processes forget, even if this
// one has not applied all messages.
func (c *Course) Forget() {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fleet != nil {
		c.say(learn.Message{Forget: true})
		return
	}
	c.reset()
}

// Configure replaces the configured limits. Spread and Share stay as they were.
func (c *Course) Configure(now throttle.Instant, limits []throttle.Limit) {
	if c == nil {
		return
	}
	set := SettingOf(limits)
	c.mu.Lock()
	defer c.mu.Unlock()
	if set.Share, set.Spread, set.Shared, set.Without = c.setting.Share, c.setting.Spread, c.setting.Shared, c.setting.Without; set == c.setting {
		return
	}
	if c.setting = set; c.begun {
		c.state.Setting = set
	}
	c.most.Store(0)
	if set.Configured == 0 && c.fleet == nil { // search for the limit, starting with the calls in flight
		c.begin(&learn.Fact{})
		c.state.Cap = max(c.state.Cap, float64(c.Look().Flying()))
	}
	if c.begun {
		c.replan(now)
	}
}

// SettingOf returns what the learner needs of the configured limits: the slowest of those of up to
// a minute, to which refusals refer.
func SettingOf(limits []throttle.Limit) learn.Setting {
	var set learn.Setting
	if len(limits) > 0 {
		set.Configured = learn.AnyRate
	}
	for _, limit := range limits {
		rate := limit.PerSecond()
		if unitOf(limit.Unit) != requests || limit.Per > time.Minute || rate >= set.Configured {
			continue
		}
		set.Configured, set.Burst = rate, float64(limit.Capacity())
	}
	return set
}

// Follow gives the course of a new sub-lane the pace at which calls leave its lane. The sub-lane is
// made for a refusal, which refused a share of those calls.
func (c *Course) Follow(of *Course) {
	of.mu.Lock()
	defer of.mu.Unlock()
	if c.fleet != nil {
		m := of.meeting(&learn.Fact{Flying: 1})
		m.First = m.Pace[0]
		c.mu.Lock()
		defer c.mu.Unlock()
		c.fleet.unsent.Data = learn.Message{Meeting: m}.Append(nil)
		return
	}
	marks := of.marks
	if of.begun {
		marks = of.state.Pace
	}
	c.first, c.marks = marks[0], marks
	c.flights.Start(of.Look().Ordinal())
}

// Adopt gives the course of a new sub-lane the configured limits of its lane, as far as they bound
// the learned limit.
func (c *Course) Adopt(of *Course) {
	of.mu.Lock()
	setting := of.setting
	of.mu.Unlock()
	c.mu.Lock() // the store may have messages for it already
	defer c.mu.Unlock()
	c.setting = setting
	c.reset()
}

// Resume ends a vendor's pause on an operator's request. In a fleet all processes end it, even if
// this one has not applied it yet.
func (c *Course) Resume(now throttle.Instant) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.fleet != nil:
		c.say(learn.Message{Resume: true})
	case c.begun:
		c.state.Resume(now, c.granted(now))
		c.replan(now)
	}
}

// Look returns the state of the flights, for a call that departs.
func (c *Course) Look() flight.Seen {
	if c == nil {
		return 0
	}
	return c.flights.Look()
}

// Tolerance returns the permit tolerance of the learned rate; zero: nothing is learned.
func (c *Course) Tolerance() (d time.Duration) {
	if c.Steers() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.pace != nil {
			d = c.pace.Tolerance()
		}
	}
	return d
}
