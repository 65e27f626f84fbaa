package conn

import (
	"context"
	"time"
)

// A Deadline is the context of a call. Most calls end before their deadline, and the calls to a
// node share these contexts, so that one costs no more than setting a timer.
type Deadline struct {
	at    time.Time
	over  chan struct{}
	timer *time.Timer
}

var _ context.Context = (*Deadline)(nil)

// Deadline returns the context of a call with this much time left of its deadline.
func (n *Node) Deadline(at time.Time, left time.Duration) *Deadline {
	d, ok := n.deadlines.Get().(*Deadline)
	if !ok {
		d = &Deadline{at: at, over: make(chan struct{})}
		d.timer = time.AfterFunc(left, func() { close(d.over) })
		return d
	}
	d.at = at
	d.timer.Reset(left)
	return d
}

// Done ends a call's use of its context. A call without an answer may have left a goroutine that
// still uses it.
func (n *Node) Done(d *Deadline, err error) {
	if d.timer.Stop() && err == nil {
		n.deadlines.Put(d)
	}
}

// Deadline implements [context.Context].
func (d *Deadline) Deadline() (at time.Time, ok bool) { return d.at, true }

// Done implements [context.Context].
func (d *Deadline) Done() <-chan struct{} { return d.over }

// Err implements [context.Context].
func (d *Deadline) Err() error {
	select {
	case <-d.over:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// Value implements [context.Context].
func (*Deadline) Value(any) any { return nil }
