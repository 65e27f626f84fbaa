package call

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirgo/weir/distributed/internal/conn"
	"github.com/weirgo/weir/distributed/internal/script"
	"github.com/weirgo/weir/internal/store"
)

// A Caller makes the calls of a lane to Redis, one at a time: for a limiter, or for slots,
// which embed it. One call goes so:
//
//   - [Caller.Start] puts it in the node's line;
//   - [Caller.Make] begins it, with a deadline, unless the node's breaker forbids it, runs
//     the script, and notes its outcome;
//   - then the lane applies the outcome, under Mu, after [Caller.Landed].
//
// Locks: Mu guards what follows it, here and in what embeds this. That of the hub and that of a
// node may be taken while it is held, never the other way round. It is not held while
// Redis is called or the queue woken. Make wants it free.
type Caller struct {
	Hub  *Hub
	Link *Link
	Lane string                      // its name, as in keys and messages
	Key  string                      // decides which node holds the lane
	By   atomic.Pointer[store.Watch] // nil: no watch

	Mu       sync.Mutex
	Node     *node // that holds the key, if known
	Wake     func()
	Closed   bool
	Trip     trip
	Met      bool        // a call was answered
	Lost     bool        // the policy for a loss is in force
	Cause    string      // of the loss
	Underway bool        // a call is in line, or in progress
	Wait     *time.Timer // ends the callers' wait for the call; nil: not set
	waits    int         // for calls so far
	failures int         // of calls, in a row
	probe    conn.Timer  // of a loss that is not the node's
}

// A Lane is what a caller makes calls for.
type Lane interface {
	conn.Caller
	Lose(cause string) // puts the policy for a loss in force; Mu is held
}

// Start puts a call in the node's line, and reports whether it must wait there. Callers await it no
// longer than any call may take. Ok is false if the store is closed.
func (c *Caller) Start(self Lane, awaited bool) (lined, ok bool) {
	c.Hub.Mu.Lock()
	defer c.Hub.Mu.Unlock()
	if c.Hub.closed && !c.Closed {
		return false, false
	}
	c.Underway = true
	if lined = !c.Node.Enter(self); lined && awaited {
		c.WaitAtMost(self)
	}
	return lined, true
}

// WaitAtMost puts the policy for a loss in force if the call in progress takes too long, although
// it may still be answered.
func (c *Caller) WaitAtMost(self Lane) {
	c.Landed()
	if c.Lost {
		return
	}
	this := c.waits
	c.Wait = time.AfterFunc(c.Trip.Deadline(&c.Hub.Set), func() {
		c.Mu.Lock()
		if c.Underway && c.waits == this && !c.Closed {
			self.Lose("slow")
		}
		c.Mu.Unlock()
		c.WakeQueue()
	})
}

// Landed ends the wait for a call, even if its timer has just rung.
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

// An Outcome is the result of a call.
type Outcome struct {
	Took    time.Duration // from sending the script to reading its reply
	Read    time.Time     // when the reply was read
	Err     error         // also of an invalid reply
	Cause   string        // of the error; "": there was no error
	began   time.Time     // when the call began
	longest time.Duration // allowed duration
	stalled bool          // this process stopped meanwhile
}

// Open is the cause of a call that the node's breaker forbade.
const Open = "open"

var errOpen = errors.New("breaker is open")

// Make makes a call: it runs a script with the words that prepare returns, and hands the
// reply to read. Prepare also returns what the call is for.
func (c *Caller) Make(self Lane, p script.Program, prepare func() ([]any, store.Operation), read func(any) error) (o Outcome) {
	began, longest, done := c.depart(self)
	if done == nil {
		return Outcome{Err: errOpen, Cause: Open}
	}
	ended := conn.ErrStalled // also if the call panics
	defer func() { done(ended) }()
	words, operation := prepare()
	sent := time.Now()
	ctx, cancel := context.WithDeadline(context.Background(), began.Add(longest))
	defer cancel()
	v, err := c.Link.Client.Run(ctx, p.Hash, p.Source, words)
	o = Outcome{began: began, longest: longest, Read: time.Now(), Err: err, Cause: conn.CauseOf(err)}
	o.Took = o.Read.Sub(sent)
	// The deadline fired late if this process stopped.
	o.stalled = o.Cause == "timeout" && o.Read.Sub(began) > longest+max(longest/2, 20*time.Millisecond)
	if o.Err == nil {
		if o.Err = read(v); o.Err != nil {
			o.Cause = "reply"
		}
	}
	if !o.stalled {
		ended = o.Err
	}
	c.Link.ended(c.Node, o.Cause, o.Err)
	c.called(operation, o.Read.Add(-o.Took), o.Took, o.Cause)
	return o
}

// depart begins a call. It returns the instant, how long the call may take, and a function that
// must be called with its result. The function is nil if no call may run.
func (c *Caller) depart(self Lane) (began time.Time, deadline time.Duration, done func(error)) {
	c.Link.subscribe()
	began = time.Now()
	c.Mu.Lock()
	set := &c.Hub.Set
	if deadline = c.Trip.Deadline(set); !c.Met || c.Lost || !c.Link.Client.Own {
		// The call dials, or knows no deadline: callers wait no longer than for any other.
		c.WaitAtMost(self)
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

// Answered applies the duration of a call that was answered. That ends a loss.
func (c *Caller) Answered(took time.Duration) {
	c.Trip.Saw(took, !c.Met || c.Lost)
	c.Met = true
	c.Recover()
}

// Recover ends a loss.
func (c *Caller) Recover() { c.Lost, c.Cause, c.failures = false, "", 0 }

// Failed applies a failed call. Redis is lost unless only this process stopped. While the breaker is
// open the cause stays.
func (c *Caller) Failed(self Lane, o *Outcome) {
	switch {
	case o.Cause != Open && c.Trip.excuses(o.stalled, o.Read.Sub(o.began), o.longest, &c.Hub.Set) && !c.Lost:
		return
	case o.Cause != Open:
		self.Lose(o.Cause)
	case !c.Lost:
		self.Lose(Open)
	}
	c.failures++
}

// firstProbe is how long after the first failure Redis is called again. Each further failure doubles
// that, up to 64 times.
const firstProbe = 10 * time.Millisecond

// AskLater puts the next call of a loss off, longer each time. Otherwise a failure would wake the
// queue, which would ask again at once. Once the node is lost, the node probes. No call is in
// progress, or a node that is back would not find the lane.
func (c *Caller) AskLater(self Lane) {
	if c.Node.Await(self) {
		return
	}
	wait := firstProbe << min(max(c.failures-1, 0), 6)
	if conn.Lasting(c.Cause) {
		wait = max(wait, c.Hub.Set.BreakFor)
	}
	c.probe.Ring = self.Probe
	c.probe.Set(wait)
}

// Leave closes the caller. A call in progress goes on.
func (c *Caller) Leave(self Lane) {
	c.Closed = true
	c.Node.Forget(self)
	c.probe.Stop()
}

// Notify implements [throttle.Remote] and [store.Flights].
func (c *Caller) Notify(wake func()) {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	c.Wake = wake
}

// Attached makes the caller use the link.
func (c *Caller) Attached(k *Link) { c.Link, c.Node = k, k.node("") }

// Watch implements [store.Limiter] and [store.Flights].
func (c *Caller) Watch(by store.Watch) { c.By.Store(&by) }

func (c *Caller) caller() *Caller { return c }

// called passes on a call that has ended, with the cause of a failure.
func (c *Caller) called(operation store.Operation, began time.Time, took time.Duration, cause string) {
	if by := c.By.Load(); by != nil && by.Called != nil {
		by.Called(store.Call{Operation: operation, Began: began, Took: took, Cause: cause})
	}
}

// A trip estimates the usual round trip to the store, and its spread, as RFC
// 6298 does, section 2.
type trip struct {
	Mean, spread time.Duration // zero: no call yet
	rough        bool          // the estimate is of a call that may have dialled
	stood        time.Duration // total time of calls in a row whose deadlines fired late
}

// Saw applies the duration of a call. A call that may have dialled, the first or one after a loss,
// restarts the estimate, until the next call.
func (t *trip) Saw(took time.Duration, dialled bool) {
	t.stood = 0
	if dialled || t.rough {
		t.Mean, t.spread, t.rough = took, took/2, dialled
		return
	}
	off := took - t.Mean
	t.Mean += off / 8
	if off < 0 {
		off = -off
	}
	t.spread += (off - t.spread) / 4
}

// Usual returns how long nearly every round trip takes at most.
func (t *trip) Usual() time.Duration { return t.Mean + 4*t.spread }

// TimerSlack is how late a timer of the runtime usually wakes, and more.
const TimerSlack = 2 * time.Millisecond

// Lead returns how long before the last permit in hand the next ones must be
// asked for.
func (t *trip) Lead() time.Duration { return t.Usual() + TimerSlack }

// Deadline returns how long a call may take.
func (t *trip) Deadline(set *Settings) time.Duration {
	return min(max(4*t.Mean, set.Deadline), set.MaxDeadline)
}

// Fresh reports whether the reply to a call of this duration may be believed. A reply that waited
// in the socket of a stopped process looks as if just written. The first call may have to dial.
func (t *trip) Fresh(took time.Duration, met bool, tolerance time.Duration, set *Settings) bool {
	if !met {
		return took <= tolerance+set.Deadline/2
	}
	return took <= tolerance+max(t.Usual(), set.Deadline)
}

// excuses reports whether a failed call says nothing about the store, because this process stopped.
// On busy processors that may repeat while Redis is down. So callers wait no longer once such calls
// in a row took as long as a first call may take.
func (t *trip) excuses(stalled bool, took, deadline time.Duration, set *Settings) bool {
	if !stalled {
		t.stood = 0
		return false
	}
	excused := t.stood < set.FirstDeadline
	t.stood += min(took, 2*deadline) // a long stop counts as one
	return excused
}

// Settings are a store's settings with their defaults filled in.
type Settings struct {
	Policy        string // for a loss, as logs have it
	FailOpen      bool   // a loss leaves each replica the whole limits
	FailClosed    bool   // a loss rejects all calls; neither: each replica has a share
	Share         float64
	Replicas      int
	Horizon       time.Duration
	Prefetch      time.Duration
	Deadline      time.Duration
	MaxDeadline   time.Duration
	FirstDeadline time.Duration
	BreakAfter    uint32
	BreakFor      time.Duration
	Lease         time.Duration
}

// DefaultReplicas is what a lane for which Redis never answered divides by.
const DefaultReplicas = 100

// Local reports whether a loss leaves each replica a share of the limits.
func (s *Settings) Local() bool { return !s.FailOpen && !s.FailClosed }
