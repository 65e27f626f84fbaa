package distributed

import (
	"errors"
	"sync"
	"time"

	"github.com/sony/gobreaker/v2"
)

// A node is a server of Redis as the lanes of a store meet it. While it does not answer
// a breaker stops the calls to it, and one lane at a time asks whether it is back. No
// other lane has a timer or a goroutine then, so that an outage costs the same however
// many lanes there are. Of the calls to it as many run at once as there are connections:
// the others wait in line, for their time begins when they leave.
type node struct {
	store   *Store
	breaker *gobreaker.TwoStepCircuitBreaker[struct{}]

	mu      sync.Mutex // the innermost: nothing else is locked while it is held
	room    int        // calls that may begin
	line    []*limiter // whose calls wait for room
	owing   []*limiter // that have to tell what they spent while the node was lost
	telling bool       // one of them does

	lost  bool                  // the breaker was opened, and not closed since
	lanes map[*limiter]struct{} // that lost it, and wait for it to be back
	probe *time.Timer           // nil: none was needed yet
}

// errStalled ends a call whose deadline fired late because this process stood still.
// It says nothing about the node.
var errStalled = errors.New("this process stood still")

// newNode returns a node to which so many calls may run at once.
func newNode(s *Store, room int) *node {
	n := &node{store: s, room: room, lanes: make(map[*limiter]struct{})}
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

// enter begins the call of a lane, or puts it in line, and reports which: the calls in
// progress run those in line after their own.
func (n *node) enter(l *limiter) (begun bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.room == 0 {
		n.line = append(n.line, l)
		return false
	}
	n.begin(l, false)
	return true
}

// owe has lanes tell what they have to tell, one after another, and only while no call
// is in line.
func (n *node) owe(lanes []*limiter) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.owing = append(n.owing, lanes...)
	if n.room > 0 && !n.telling && len(n.owing) > 0 {
		n.telling = true
		n.begin(pop(&n.owing), true)
	}
}

func (n *node) begin(l *limiter, tells bool) {
	n.room--
	n.store.calling.Go(func() {
		for l != nil {
			if !tells || l.settleUp() {
				l.call()
			}
			l, tells = n.next(tells)
		}
	})
}

// next returns the lane whose call follows one that has ended, and whether it only
// tells. If there is none the call leaves its room.
func (n *node) next(told bool) (l *limiter, tells bool) {
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

func pop(line *[]*limiter) *limiter {
	l := (*line)[0]
	(*line)[0], *line = nil, (*line)[1:]
	return l
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

// ask has one of the lanes that lost the node ask whether it is back. It is another one
// each time, for what fails may be the lane's: maps are ranged over in random order.
func (n *node) ask() {
	n.mu.Lock()
	var asks *limiter
	for l := range n.lanes {
		asks = l
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

// await has a lane that lost the node wait for it to be back, and reports whether it is
// lost at all.
func (n *node) await(l *limiter) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.lost {
		if len(n.lanes) == 0 {
			n.askSoon()
		}
		n.lanes[l] = struct{}{}
	}
	return n.lost
}

// forget has a lane wait no more.
func (n *node) forget(l *limiter) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.lanes, l)
}

// release tells the lanes that wait for the node that they need not any more.
func (n *node) release() {
	n.mu.Lock()
	lanes := n.lanes
	n.lanes = make(map[*limiter]struct{})
	if n.probe != nil {
		n.probe.Stop()
	}
	n.mu.Unlock()
	if len(lanes) == 0 {
		return
	}
	n.store.calling.Go(func() {
		var owing []*limiter
		for l := range lanes {
			if l.restore() {
				owing = append(owing, l)
			}
		}
		n.owe(owing)
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
