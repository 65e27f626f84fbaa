package distributed

import (
	"context"
	"time"
)

// A deadline is the context of a call. It ends then, and no sooner. Most are not reached:
// so that one costs no more than to set a timer, the calls to a node share them.
type deadline struct {
	at    time.Time
	over  chan struct{}
	timer *time.Timer
}

var _ context.Context = (*deadline)(nil)

// deadline returns the context of a call that has so much time left of its deadline.
func (n *node) deadline(at time.Time, left time.Duration) *deadline {
	d, ok := n.deadlines.Get().(*deadline)
	if !ok {
		d = &deadline{at: at, over: make(chan struct{})}
		d.timer = time.AfterFunc(left, func() { close(d.over) })
		return d
	}
	d.at = at
	d.timer.Reset(left)
	return d
}

// done ends a call's use of its context. One that was not answered may have left
// something behind that still looks at it.
func (n *node) done(d *deadline, err error) {
	if d.timer.Stop() && err == nil {
		n.deadlines.Put(d)
	}
}

// Deadline implements [context.Context].
func (d *deadline) Deadline() (at time.Time, ok bool) { return d.at, true }

// Done implements [context.Context].
func (d *deadline) Done() <-chan struct{} { return d.over }

// Err implements [context.Context].
func (d *deadline) Err() error {
	select {
	case <-d.over:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// Value implements [context.Context].
func (*deadline) Value(any) any { return nil }
