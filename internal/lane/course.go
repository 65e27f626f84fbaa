package lane

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirgo/weir/internal/learn"
	"github.com/weirgo/weir/throttle"
)

// A Course holds a lane to what its answers have taught of the vendor's limit.
// It stands between the lane's queue and the limiter of the configured limits.
//
// At first, a departure costs one compare-and-swap. The calls in flight grow
// from one, by one for each answer that came while others waited. From the
// first refusal on, or the first quota that is told, the learner's plan decides
// under a lock.
//
// A Course is safe for concurrent use.
type Course struct {
	setting learn.Setting
	tell    teller // nil: nobody is told

	count  atomic.Uint64 // departures << flightBits | calls in flight
	most   atomic.Int64  // most calls in flight until the plan decides; zero: any number
	news   atomic.Int64  // Instant at which most grew, a call landed, or the first one departed
	freed  atomic.Int64  // Instant at which the last call landed
	steers atomic.Bool   // the plan decides

	mu       sync.Mutex
	begun    bool // state was made
	marks    [2]learn.Mark
	first    learn.Mark
	state    *learn.State // unlearned, if begun is false: most lanes need none, and it is large
	plan     learn.Plan
	pace     throttle.Limiter  // of the plan's rate; nil: it has none
	flights  map[uint64]flight // calls that departed while the plan decides, by ID
	left     throttle.Instant  // when the last of them departed
	told     learn.Known       // in the last event
	toldAt   throttle.Instant  // when that was
	logged   learn.Known       // in the last line of log
	standing learn.Known       // the estimate that has stood since stands
	stands   throttle.Instant
	fleet    *fleet // nil: no other process shares the lane
}

// unlearned is the state of a course that has none. It is never written.
var unlearned learn.State

// A teller receives reports of the estimate. It is called without a lock.
type teller interface {
	learned(context.Context, report)
}

// NewCourse returns the course of a lane of which nothing is known. If tell is
// nil, nobody is told.
func NewCourse(set learn.Setting, tell teller) *Course {
	c := &Course{setting: set, tell: tell}
	c.reset()
	return c
}

// reset forgets everything but the setting.
func (c *Course) reset() {
	c.begun, c.state, c.pace, c.plan = false, &unlearned, nil, learn.Plan{}
	c.told, c.logged, c.standing = learn.Known{}, learn.Known{}, learn.Known{}
	c.flights = nil // what flies is known by how the course stood as it left
	c.marks, c.first = [2]learn.Mark{}, learn.Mark{}
	c.steers.Store(false)
	c.most.Store(0)
	if c.setting.Configured == 0 {
		c.most.Store(1)
	}
	if c.fleet != nil {
		c.startShared()
	}
}

// Forget makes the course forget what it has learned. In a fleet all processes forget, even
// if this one has not applied what they have learned.
func (c *Course) Forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fleet != nil {
		c.say(learn.AppendForget(nil))
		return
	}
	c.reset()
}

// Configure tells the course which limits are configured from now on. Spread
// stays as it was.
func (c *Course) Configure(now throttle.Instant, set learn.Setting) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if set.Spread, set.Shared = c.setting.Spread, c.setting.Shared; set == c.setting {
		return
	}
	if c.setting = set; c.begun {
		c.state.Setting = set
	}
	c.most.Store(0)
	if set.Configured == 0 && c.fleet == nil {
		c.unbind()
	}
	if c.begun {
		c.replan(now)
	}
}

// unbind begins to look for the limit when none is configured any more, with as
// many calls in flight as there are now.
func (c *Course) unbind() {
	c.begin(&learn.Fact{})
	c.state.Cap = max(c.state.Cap, float64(c.Look().flying()))
}

// Follow tells the course of a new sub-lane how fast calls leave its lane. The
// sub-lane is made for a refusal, and a share of those calls was refused.
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

// Adopt gives the course of a sub-lane that is being made the configured limits of its
// lane, as far as they bound what is learned.
func (c *Course) Adopt(of *Course) {
	of.mu.Lock()
	set := of.setting
	of.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.setting = set
	c.reset()
}

// Resume ends a wait that the vendor asked for, because an operator says so. In a fleet all
// processes end it, even if this one has not applied it yet.
func (c *Course) Resume(now throttle.Instant) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.fleet != nil:
		c.say(learn.AppendResume(nil))
	case c.begun:
		c.state.Resume(now)
		c.replan(now)
	}
}

// Tolerance returns the permit tolerance of the learned rate, and zero if there
// is none.
func (c *Course) Tolerance() time.Duration {
	if !c.steers.Load() {
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pace == nil {
		return 0
	}
	return c.pace.Tolerance()
}
