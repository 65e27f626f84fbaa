package call

import (
	"sync"
	"time"

	"github.com/weirgo/weir/distributed/internal/conn"
	"github.com/weirgo/weir/distributed/internal/script"
	"github.com/weirgo/weir/internal/store"
)

// A Caller makes the calls of a lane to Redis, one at a time: for a limiter, or for slots,
// which embed it. One call goes so:
//
//   - start has it stand in the node's line;
//   - depart begins it, with a deadline, unless the node's breaker forbids it;
//   - run runs the script, and ended notes how that ended;
//   - then what came of it is taken in, under mu, after landed.
//
// Locks: mu guards what follows it, here and in what embeds this. That of the hub and that of a
// node may be taken while it is held, never the other way round. It is not held while
// Redis is called or the queue woken. Depart, run and ended want it free.
type Caller struct {
	Hub  *Hub
	Link *Link
	Lane string // its name, as it stands in keys and messages
	Key  string // that decides which node holds the lane
	watched

	Mu       sync.Mutex
	Node     *node // that holds the key, as far as that is known
	Wake     func()
	Closed   bool
	Trip     trip
	Met      bool        // a call was answered
	Lost     bool        // the policy for a loss holds
	Cause    string      // of the loss
	Underway bool        // a call is in line, or in progress
	Wait     *time.Timer // from which callers no longer wait for it; nil: none runs
	waits    int         // for calls so far
}

// A Loser is what a caller makes calls for.
type Loser interface {
	conn.Caller
	Lose(cause string) // has the policy for a loss hold; mu is held
}

// Start has a call stand in the node's line, if none does, and reports whether it has to
// wait there. It reports false if the store is closed.
func (c *Caller) Start(self conn.Caller) (lined, ok bool) {
	c.Hub.Mu.Lock()
	defer c.Hub.Mu.Unlock()
	if c.Hub.closed && !c.Closed {
		return false, false
	}
	c.Underway = true
	return !c.Node.Enter(self), true
}

// Depart begins a call: it returns the instant, how long the call may take, and the
// function that must be given how it ended, which is nil if none may run.
func (c *Caller) Depart(self Loser) (began time.Time, deadline time.Duration, done func(error)) {
	c.Link.subscribe()
	began = time.Now()
	c.Mu.Lock()
	set := &c.Hub.Set
	if deadline = c.Trip.Deadline(set); !c.Met || c.Lost || !c.Link.Client.Own {
		// It dials, or knows no deadline: callers wait no longer than for any other.
		c.WaitAtMost(self, deadline)
		deadline = set.FirstDeadline
	}
	before := c.Node
	c.Mu.Unlock()
	n := c.Link.nodeOf(c.Key, before)
	if n != before {
		c.Mu.Lock()
		c.Node = n
		c.Mu.Unlock()
		before.Left(self)
	}
	return began, deadline, n.Allow()
}

// WaitAtMost has the policy for a loss hold if the call in progress takes longer, though
// it may still be answered.
func (c *Caller) WaitAtMost(self Loser, d time.Duration) {
	c.Landed()
	if c.Lost {
		return
	}
	this := c.waits
	c.Wait = time.AfterFunc(d, func() {
		c.Mu.Lock()
		if c.Underway && c.waits == this && !c.Closed {
			self.Lose("slow")
		}
		c.Mu.Unlock()
		c.WakeQueue()
	})
}

// Landed ends the wait for a call, also one whose timer has just rung.
func (c *Caller) Landed() {
	c.waits++
	if c.Wait != nil {
		c.Wait.Stop()
		c.Wait = nil
	}
}

// WakeQueue wakes the queue, if there is one. It wants mu free.
func (c *Caller) WakeQueue() {
	c.Mu.Lock()
	wake := c.Wake
	c.Mu.Unlock()
	if wake != nil {
		wake()
	}
}

// An outcome is what came of one run of a script.
type outcome struct {
	began    time.Time // when the call did
	deadline time.Duration
	Took     time.Duration // from the script's departure until its reply was read
	Read     time.Time     // when that was
	Err      error
	Cause    string // of the error; "": there was no error
	stalled  bool   // this process stood still meanwhile
}

// Run runs a script once, in what is left of a call that began then.
func (c *Caller) Run(p script.Program, words []any, began time.Time, deadline time.Duration) (v any, o outcome) {
	sent := time.Now()
	ctx := c.Node.Deadline(began.Add(deadline), deadline-sent.Sub(began))
	v, err := c.Link.Client.Run(ctx, p.Hash, p.Source, words)
	o = outcome{began: began, deadline: deadline, Read: time.Now(), Err: err, Cause: conn.CauseOf(err)}
	c.Node.Done(ctx, err)
	o.Took = o.Read.Sub(sent)
	o.stalled = stoodStill(o.Cause, o.Read.Sub(began), deadline)
	return v, o
}

// Ended notes how a call for an operation ended: with a reply, which may make no sense, or
// with an error.
func (c *Caller) Ended(o *outcome, senseless error, operation store.Operation, done func(error)) {
	if senseless != nil {
		o.Err, o.Cause = senseless, "reply"
	}
	if o.stalled {
		done(conn.ErrStalled)
	} else {
		done(o.Err)
	}
	c.Link.ended(c.Node, o.Cause, o.Err)
	c.called(operation, o.Read.Add(-o.Took), o.Took, o.Cause)
}

// Failed reports whether a call that failed means that Redis is lost, or still is.
func (c *Caller) Failed(o *outcome) bool {
	return !c.Trip.excuses(o.stalled, o.Read.Sub(o.began), o.deadline, &c.Hub.Set) || c.Lost
}

// Notify implements [throttle.Remote] and [store.Flights].
func (c *Caller) Notify(wake func()) {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	c.Wake = wake
}

// Attached has the caller use the link.
func (c *Caller) Attached(k *Link) { c.Link, c.Node = k, k.node("") }
