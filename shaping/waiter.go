package shaping

import (
	"context"
	"sync/atomic"

	"github.com/weirgo/weir/throttle"
)

// A waiter is a caller in line. It has 192 bytes at most, a size of the
// allocator: with its goroutine, a caller takes about 3 KB.
type waiter struct {
	place
	ctx      context.Context  // ends when the caller gives up
	deadline throttle.Instant // Never: none

	n     int              // permits of every limit beyond each
	each  *each            // permits of each limit; nil: only n counts
	since throttle.Instant // its arrival, as counted
	id    uint64           // of its call

	// Under the queue's lock, until the caller is woken.
	tenant  *tenant
	cost    float64       // its departure's cost in its tenant's share
	bytes   int64         // that its caller holds while it waits
	index   int32         // 1 + index among its tenant's; 0: not in line
	expiry  int32         // 1 + index among the expiring; 0: not among them
	waits   bool          // it was put in line to wait
	watched bool          // it was granted, and its permits may be taken back until it runs
	urgent  bool          // it may spend what limits reserve
	late    bool          // it comes back into the line because its permits were void
	leaves  atomic.Bool   // its caller has given up, and others remove it
	out     outcome       // how it came out of the line
	nextOut *waiter       // next one to come out, under the same lock; of the goroutine that wakes both
	ready   chan struct{} // receives a value once it came out; not closed, so that the next caller can use it
}

// An outcome is how a caller came out of the line: granted or rejected. The zero value is
// that of a caller that waits or gave up.
type outcome struct {
	grant   throttle.Grant
	all     *grants          // of each roster; nil: there is one limiter
	granted throttle.Instant // zero: it was not
	due     throttle.Instant // instant of its grant if nothing had been late
	err     error            // why it was rejected; nil: it was granted
}

// outgoing are waiters that came out of the line, in that order. They are woken once the lock is
// free, because they may need it next.
type outgoing struct{ first, last *waiter }

// add records how w came out.
func (o *outgoing) add(w *waiter, out outcome) {
	w.out = out
	if o.last == nil {
		o.first = w
	} else {
		o.last.nextOut = w
	}
	o.last = w
}

// wake wakes them, and returns their number.
func (o outgoing) wake() (n int) {
	for w := o.first; w != nil; n++ {
		next := w.nextOut
		w.nextOut = nil
		w.ready <- struct{}{} // from here on w is its caller's
		w = next
	}
	return n
}

// each are the permits of each limit that a caller asks for.
type each []int

func (e *each) get() []int {
	if e == nil {
		return nil
	}
	return *e
}

// request returns the request of w.
func (w *waiter) request() throttle.Request {
	return throttle.Request{N: w.n, Each: w.each.get(), Since: w.since, ID: w.id, Urgent: w.urgent}
}

// dated returns the request of w, with its deadline.
func (w *waiter) dated() throttle.Request {
	r := w.request()
	if w.deadline != throttle.Never {
		r.Until = w.deadline
	}
	return r
}

// pop removes the last of a list, and returns it.
func pop[T any](l *[]*T) *T {
	old := *l
	last := old[len(old)-1]
	old[len(old)-1] = nil
	*l = old[:len(old)-1]
	return last
}
