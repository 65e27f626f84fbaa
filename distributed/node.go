package distributed

import (
	"errors"
	"runtime"
	"sync"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/weirgo/weir/throttle"
)

// A node is a server of Redis as the lanes of a store meet it. While it does not answer
// a breaker stops the calls to it, and one lane at a time asks whether it is back. No
// other lane has a timer or a goroutine then, so that an outage costs the same however
// many lanes there are, of limits or of slots. Of the calls to it as many run at once as there are connections:
// the others wait in line, for their time begins when they leave.
type node struct {
	store     *Store
	addr      string // "": the only one, or one that is not known yet
	breaker   *gobreaker.TwoStepCircuitBreaker[struct{}]
	deadlines sync.Pool // of calls that were answered

	mu      sync.Mutex // the innermost: nothing else is locked while it is held
	clock   clock
	stepped time.Time // when a step of the clocks was noticed last; zero: never
	room    int       // calls that may begin
	line    []asker   // whose calls wait for room
	owing   []asker   // whose calls only tell what was spent while the node was lost
	telling bool      // one of them does

	lost   bool               // the breaker was opened, and not closed since
	askers map[asker]struct{} // that lost it, and wait for it to be back
	probe  *time.Timer        // nil: none was needed yet
}

// An asker is what calls a node for a lane: a limiter, or slots. It has one call in line
// or in progress at most.
type asker interface {
	call()                 // runs the call that it has stood in line for
	probe()                // has it ask whether a node that it lost is back
	restore() (debt asker) // tells it that it is; nil: it has nothing to tell that can wait
}

// A debtor is a limiter whose call only tells what it spent while the node was lost.
type debtor struct{ *limiter }

func (d debtor) call() {
	if d.settleUp() {
		d.limiter.call()
	}
}

// errStalled ends a call whose deadline fired late because this process stood still.
// It says nothing about the node.
var errStalled = errors.New("this process stood still")

// newNode returns a node to which so many calls may run at once.
func newNode(s *Store, room int) *node {
	n := &node{store: s, room: room, askers: make(map[asker]struct{})}
	n.breaker = gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		Timeout:     s.set.breakFor,
		ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= s.set.breakAfter },
		IsExcluded:  func(err error) bool { return errors.Is(err, errStalled) },
		OnStateChange: func(_ string, _, to gobreaker.State) {
			switch to {
			case gobreaker.StateOpen:
				n.lose()
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

// allow returns a function that must be told how the call ended; nil if none may run.
func (n *node) allow() (done func(error)) {
	done, err := n.breaker.Allow()
	if err != nil {
		return nil
	}
	return done
}

// enter begins a call, or puts it in line, and reports which: the calls in progress run
// those in line after their own.
func (n *node) enter(c asker) (begun bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.room == 0 {
		n.line = append(n.line, c)
		return false
	}
	n.begin(c, false)
	return true
}

// owe runs calls that only tell something, one after another, and only while no other is
// in line.
func (n *node) owe(debts []asker) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.owing = append(n.owing, debts...)
	if n.room > 0 && !n.telling && len(n.owing) > 0 {
		n.telling = true
		n.begin(pop(&n.owing), true)
	}
}

func (n *node) begin(c asker, tells bool) {
	n.room--
	n.carryOn(c, tells)
}

// carryOn runs a call that has room, and those that follow it.
func (n *node) carryOn(c asker, tells bool) {
	n.store.calling.Go(func() {
		growStack()
		for c != nil {
			c.call()
			c, tells = n.next(tells)
		}
	})
}

// lend takes room for a call that its caller will run, if there is any.
func (n *node) lend() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.room == 0 {
		return false
	}
	n.room--
	n.store.calling.Add(1)
	return true
}

// run runs a call that was lent. The caller does not run what follows it. If the call
// panics, so does the caller, and others have its room.
func (n *node) run(c asker) {
	defer n.store.calling.Done()
	defer func() {
		if next, tells := n.next(false); next != nil {
			n.carryOn(next, tells)
		}
	}()
	c.call()
}

// growStack has the stack of a goroutine grow to what a call uses, while there is nothing
// on it. Otherwise it grows twice on the way to the socket, and all frames are copied:
// a fifth of what the goroutine of a call cost.
//
//go:noinline
func growStack() {
	var room [callStack]byte
	runtime.KeepAlive(&room)
}

// callStack is more than what the frames of a call take, in bytes.
const callStack = 6 << 10

// next returns whose call follows one that has ended, and whether it only tells. If
// there is none the call leaves its room.
func (n *node) next(told bool) (c asker, tells bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.telling = n.telling && !told
	switch {
	case len(n.line) > 0:
		return pop(&n.line), false
	case len(n.owing) > 0 && !n.telling:
		n.telling = true
		return pop(&n.owing), true
	default:
		n.room++
		return nil, false
	}
}

// steps takes in the node's clock as the reply to a call told it, and reports whether that
// clock or this process's stepped. It is told once for all lanes. No call takes longer than
// its deadline, so that no way explains a difference that changed by more. The reply to a
// call that was under way when a step was noticed may be older than the step.
func (n *node) steps(there int64, read time.Time, took, tolerance time.Duration) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	c, set := &n.clock, &n.store.set
	if c.at.IsZero() {
		c.asked, c.at = throttle.InstantOf(read), read
	}
	if read.Add(-took).Before(n.stepped) {
		return false
	}
	known, before := len(c.ahead) > 0, c.inForce()
	c.learn(there, c.when(read), took, tolerance)
	moved := c.inForce().Sub(before)
	if !known || max(moved, -moved) <= max(set.maxDeadline, set.firstDeadline) {
		return false
	}
	n.stepped = read
	return true
}

func pop(line *[]asker) asker {
	c := (*line)[0]
	(*line)[0], *line = nil, (*line)[1:]
	return c
}

// lose begins a loss, or goes on with it: it has a lane ask once the breaker lets a call
// through, which is after breakFor.
func (n *node) lose() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lost = true
	n.askSoon()
}

// askSoon sets the timer of the next probe.
func (n *node) askSoon() {
	wait := n.store.set.breakFor + time.Millisecond
	if n.probe == nil {
		n.probe = time.AfterFunc(wait, n.ask)
	} else {
		n.probe.Reset(wait)
	}
}

// ask has one of those that lost the node ask whether it is back. It is another one
// each time, for what fails may be the lane's: maps are ranged over in random order.
func (n *node) ask() {
	n.mu.Lock()
	var asks asker
	for c := range n.askers {
		asks = c
		break
	}
	if asks != nil && n.lost {
		n.askSoon() // unless an answer comes before
	}
	n.mu.Unlock()
	if asks != nil {
		asks.probe()
	}
}

// await has an asker that lost the node wait for it to be back, and reports whether it
// is lost at all.
func (n *node) await(c asker) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.lost {
		if len(n.askers) == 0 {
			n.askSoon()
		}
		n.askers[c] = struct{}{}
	}
	return n.lost
}

// left is told that the keys of an asker have moved to another node: those of others that
// wait for this one may have, too.
func (n *node) left(c asker) {
	n.forget(c)
	n.release()
}

// forget has an asker wait no more.
func (n *node) forget(c asker) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.askers, c)
}

// release tells those that wait for the node that they need not any more.
func (n *node) release() {
	n.mu.Lock()
	askers := n.askers
	n.askers = make(map[asker]struct{})
	if n.probe != nil {
		n.probe.Stop()
	}
	n.mu.Unlock()
	if len(askers) == 0 {
		return
	}
	n.store.calling.Go(func() {
		var debts []asker
		for c := range askers {
			if debt := c.restore(); debt != nil {
				debts = append(debts, debt)
			}
		}
		n.owe(debts)
	})
}

// close ends the probes.
func (n *node) close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.probe != nil {
		n.probe.Stop()
	}
}
