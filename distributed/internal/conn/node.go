package conn

import (
	"errors"
	"sync"
	"time"

	"github.com/sony/gobreaker/v2"
)

// A Node is a server of Redis, and the calls of a store to it. While it does not answer a
// breaker stops the calls, and one caller at a time probes it. No other has a timer or a
// goroutine then, so an outage costs the same however many there are. As many calls run at
// once as there are connections. The others wait in line, and their time begins when they
// leave. It is safe for concurrent use.
type Node struct {
	Addr string // "": the only one, or one that is not known yet

	breakFor time.Duration
	calling  *sync.WaitGroup // of all calls of the store
	breaker  *gobreaker.TwoStepCircuitBreaker[struct{}]

	mu   sync.Mutex // the innermost: nothing else is locked while it is held
	room int        // calls that may begin
	line []Caller   // whose calls wait for room

	lost    bool                // the breaker is open
	callers map[Caller]struct{} // that lost the node, and wait for its return
	probe   Timer
}

// A Caller is what calls a node: for the permits of a lane, or for its slots. It has one
// call in line or in progress at most. Its methods are called with no lock held.
type Caller interface {
	Call()  // makes the call that waited in line
	Probe() // calls a node that was lost, to see whether it is back

	// Restore notes that the node is back. It reports whether the caller will call only to report
	// what was spent meanwhile. So many others will before it, one after another.
	Restore(debts int) (owes bool)
}

// ErrStalled ends a call whose deadline fired late because this process stopped. It says nothing
// about the node.
var ErrStalled = errors.New("this process stood still")

// NewNode returns a node with room for a number of calls at once. After several failed calls in a
// row no call begins for breakFor. Its calls are counted in calling.
func NewNode(addr string, room int, breakAfter uint32, breakFor time.Duration, calling *sync.WaitGroup) *Node {
	n := &Node{Addr: addr, room: room, breakFor: breakFor, calling: calling, callers: make(map[Caller]struct{})}
	n.probe.Ring = n.ask
	n.breaker = gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		Timeout:     breakFor,
		ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= breakAfter },
		IsExcluded:  func(err error) bool { return errors.Is(err, ErrStalled) },
		OnStateChange: func(_ string, _, to gobreaker.State) {
			switch to {
			case gobreaker.StateOpen: // a loss begins, or continues
				n.mu.Lock()
				n.lost = true
				n.askSoon()
				n.mu.Unlock()
			case gobreaker.StateClosed:
				n.mu.Lock()
				n.lost = false
				n.mu.Unlock()
				n.release()
			}
		},
	})
	return n
}

// Allow returns a function that must be called with the result of the call; nil if no call may run.
func (n *Node) Allow() (done func(error)) {
	done, _ = n.breaker.Allow() // nil with the error
	return done
}

// Enter begins a call, or puts it in line, and reports whether it began. The goroutines of the
// calls in progress run those in line after their own.
func (n *Node) Enter(c Caller) (begun bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.room == 0 {
		n.line = append(n.line, c)
		return false
	}
	n.room--
	n.carryOn(c)
	return true
}

// carryOn runs a call that has room, and the calls that follow it.
func (n *Node) carryOn(c Caller) {
	n.calling.Go(func() {
		for c != nil {
			c.Call()
			c = n.next()
		}
	})
}

// Lend takes room for a call that its caller will run, if there is any.
func (n *Node) Lend() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.room == 0 {
		return false
	}
	n.room--
	n.calling.Add(1)
	return true
}

// Run runs a lent call. The caller does not run the calls that follow it. If the call panics, so
// does the caller, and its room is released.
func (n *Node) Run(c Caller) {
	defer n.calling.Done()
	defer func() {
		if next := n.next(); next != nil {
			n.carryOn(next)
		}
	}()
	c.Call()
}

// next returns the caller whose call follows one that has ended. If none follows, the room is
// released.
func (n *Node) next() (c Caller) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.line) == 0 {
		n.room++
		return nil
	}
	c, n.line[0], n.line = n.line[0], nil, n.line[1:]
	return c
}

// askSoon sets the timer of the next probe, for when the breaker allows a call.
func (n *Node) askSoon() { n.probe.Set(n.breakFor + time.Millisecond) }

// ask makes one of the callers that lost the node probe it. Each time it is another one, at random
// as maps are ranged over, because one lane's key may be what fails.
func (n *Node) ask() {
	n.mu.Lock()
	var asks Caller
	for c := range n.callers {
		asks = c
		break
	}
	if asks != nil && n.lost {
		n.askSoon() // unless an answer comes before
	}
	n.mu.Unlock()
	if asks != nil {
		asks.Probe()
	}
}

// Await makes a caller that lost the node wait for its return, and reports whether the node is lost
// at all.
func (n *Node) Await(c Caller) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.lost {
		if len(n.callers) == 0 {
			n.askSoon()
		}
		n.callers[c] = struct{}{}
	}
	return n.lost
}

// Left notes that the keys of a caller have moved to another node. Keys of other waiting callers
// may have moved, too.
func (n *Node) Left(c Caller) {
	n.Forget(c)
	n.release()
}

// Forget ends the wait of a caller.
func (n *Node) Forget(c Caller) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.callers, c)
}

// release ends the wait of all callers that wait for the node.
func (n *Node) release() {
	n.mu.Lock()
	callers := n.callers
	n.callers = make(map[Caller]struct{})
	n.probe.Stop()
	n.mu.Unlock()
	if len(callers) == 0 {
		return
	}
	n.calling.Go(func() {
		debts := 0
		for c := range callers {
			if c.Restore(debts) {
				debts++
			}
		}
	})
}

// Close ends the probes.
func (n *Node) Close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.probe.Stop()
}

// A Timer calls Ring when it is due, and can be set repeatedly. It is made when first set, because
// most timers never are.
type Timer struct {
	Ring func()
	t    *time.Timer
}

// Set sets the timer to ring after a time, in place of an earlier setting.
func (t *Timer) Set(d time.Duration) {
	if t.t == nil {
		t.t = time.AfterFunc(d, t.Ring)
	} else {
		t.t.Reset(d)
	}
}

// Stop stops the timer, unless it has rung.
func (t *Timer) Stop() {
	if t.t != nil {
		t.t.Stop()
	}
}
