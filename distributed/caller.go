package distributed

import (
	"sync"
	"time"

	"github.com/weirgo/weir/distributed/internal/conn"
	"github.com/weirgo/weir/distributed/internal/script"
	"github.com/weirgo/weir/internal/store"
)

// A caller makes the calls of a lane to Redis, one at a time: for a limiter, or for slots,
// which embed it. One call goes so:
//
//   - start has it stand in the node's line;
//   - depart begins it, with a deadline, unless the node's breaker forbids it;
//   - run runs the script, and ended notes how that ended;
//   - then what came of it is taken in, under mu, after landed.
//
// Locks: mu guards what follows it, here and in what embeds this. Store.mu and that of a
// node may be taken while it is held, never the other way round. It is not held while
// Redis is called or the queue woken. Depart, run and ended want it free.
type caller struct {
	store *Store
	link  *link
	lane  string // its name, as it stands in keys and messages
	key   string // that decides which node holds the lane
	watched

	mu       sync.Mutex
	node     *node // that holds the key, as far as that is known
	wake     func()
	closed   bool
	trip     trip
	met      bool        // a call was answered
	lost     bool        // the policy for a loss holds
	cause    string      // of the loss
	underway bool        // a call is in line, or in progress
	wait     *time.Timer // from which callers no longer wait for it; nil: none runs
	waits    int         // for calls so far
}

// A loser is what a caller makes calls for.
type loser interface {
	conn.Caller
	lose(cause string) // has the policy for a loss hold; mu is held
}

// start has a call stand in the node's line, if none does, and reports whether it has to
// wait there. It reports false if the store is closed.
func (c *caller) start(self conn.Caller) (lined, ok bool) {
	c.store.mu.Lock()
	defer c.store.mu.Unlock()
	if c.store.closed && !c.closed {
		return false, false
	}
	c.underway = true
	return !c.node.Enter(self), true
}

// depart begins a call: it returns the instant, how long the call may take, and the
// function that must be given how it ended, which is nil if none may run.
func (c *caller) depart(self loser) (began time.Time, deadline time.Duration, done func(error)) {
	c.link.subscribe()
	began = time.Now()
	c.mu.Lock()
	set := &c.store.set
	if deadline = c.trip.deadline(set); !c.met || c.lost || !c.link.client.Own {
		// It dials, or knows no deadline: callers wait no longer than for any other.
		c.waitAtMost(self, deadline)
		deadline = set.firstDeadline
	}
	before := c.node
	c.mu.Unlock()
	n := c.link.nodeOf(c.key, before)
	if n != before {
		c.mu.Lock()
		c.node = n
		c.mu.Unlock()
		before.Left(self)
	}
	return began, deadline, n.Allow()
}

// waitAtMost has the policy for a loss hold if the call in progress takes longer, though
// it may still be answered.
func (c *caller) waitAtMost(self loser, d time.Duration) {
	c.landed()
	if c.lost {
		return
	}
	this := c.waits
	c.wait = time.AfterFunc(d, func() {
		c.mu.Lock()
		if c.underway && c.waits == this && !c.closed {
			self.lose("slow")
		}
		c.mu.Unlock()
		c.wakeQueue()
	})
}

// landed ends the wait for a call, also one whose timer has just rung.
func (c *caller) landed() {
	c.waits++
	if c.wait != nil {
		c.wait.Stop()
		c.wait = nil
	}
}

// wakeQueue wakes the queue, if there is one. It wants mu free.
func (c *caller) wakeQueue() {
	c.mu.Lock()
	wake := c.wake
	c.mu.Unlock()
	if wake != nil {
		wake()
	}
}

// An outcome is what came of one run of a script.
type outcome struct {
	began    time.Time // when the call did
	deadline time.Duration
	took     time.Duration // from the script's departure until its reply was read
	read     time.Time     // when that was
	err      error
	cause    string // of the error, in a word; "": there is none
	stalled  bool   // this process stood still meanwhile
}

// run runs a script once, in what is left of a call that began then.
func (c *caller) run(p script.Program, words []any, began time.Time, deadline time.Duration) (v any, o outcome) {
	sent := time.Now()
	ctx := c.node.Deadline(began.Add(deadline), deadline-sent.Sub(began))
	v, err := c.link.client.Run(ctx, p.Hash, p.Source, words)
	o = outcome{began: began, deadline: deadline, read: time.Now(), err: err, cause: conn.CauseOf(err)}
	c.node.Done(ctx, err)
	o.took = o.read.Sub(sent)
	o.stalled = stoodStill(o.cause, o.read.Sub(began), deadline)
	return v, o
}

// ended notes how a call for an operation ended: with a reply, which may make no sense, or
// with an error.
func (c *caller) ended(o *outcome, senseless error, operation store.Operation, done func(error)) {
	if senseless != nil {
		o.err, o.cause = senseless, "reply"
	}
	if o.stalled {
		done(conn.ErrStalled)
	} else {
		done(o.err)
	}
	c.link.ended(c.node, o.cause, o.err)
	c.called(operation, o.read.Add(-o.took), o.took, o.cause)
}

// failed reports whether a call that failed means that Redis is lost, or still is.
func (c *caller) failed(o *outcome) bool {
	return !c.trip.excuses(o.stalled, o.read.Sub(o.began), o.deadline, &c.store.set) || c.lost
}

// Notify implements [throttle.Remote] and [store.Flights].
func (c *caller) Notify(wake func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wake = wake
}
