package shaping

import (
	"context"
	"iter"
	"slices"
	"sync/atomic"

	"github.com/weirgo/weir/throttle"
)

// A waiter is a caller in line. It has 176 bytes at most, a size of which the allocator
// wastes nothing: with its goroutine, a caller takes about 3 KB.
type waiter struct {
	place
	ctx      context.Context  // tells callers who have gone
	deadline throttle.Instant // Never: none

	n     int              // permits of every limit beyond each
	each  *each            // permits of each limit; nil: only n counts
	since throttle.Instant // when it counts as having come
	id    uint64           // of its call

	// Under the queue's lock, until the caller is woken.
	tenant *tenant
	cost   float64       // what its departure counts in its tenant's share
	bytes  int64         // that its caller holds while it waits
	index  int32         // 1 + index among its tenant's; 0: not in line
	expiry int32         // 1 + index among the expiring; 0: not among them
	waits  bool          // it was put in line to wait
	leaves atomic.Bool   // its caller has given up, and others take it out of line
	out    outcome       // how it came out of the line
	ready  chan struct{} // has a word once it came out; it is not closed, so that the next caller can use it
}

// An outcome is how a caller came out of the line: granted or rejected. The zero value is
// that of one who waits, or gave up.
type outcome struct {
	charged throttle.Instant
	granted throttle.Instant // zero: it was not
	due     throttle.Instant // when it would have been granted if nothing had been late
	err     error            // why it was rejected; nil: it was granted
	next    *waiter          // who came out next, under the same lock
}

// outgoing are waiters who came out of the line, in that order. They are woken once the
// lock is free, because what they do next may need it.
type outgoing struct{ first, last *waiter }

// add notes how w came out.
func (o *outgoing) add(w *waiter, out outcome) {
	w.out = out
	if o.last == nil {
		o.first = w
	} else {
		o.last.out.next = w
	}
	o.last = w
}

// wake wakes them, and returns how many they are.
func (o outgoing) wake() (n int) {
	for w := o.first; w != nil; n++ {
		next := w.out.next
		w.out.next = nil
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

// request returns what w asks for.
func (w *waiter) request() throttle.Request {
	return throttle.Request{N: w.n, Each: w.each.get(), Since: w.since, ID: w.id}
}

// dated returns what w asks for, with its deadline.
func (w *waiter) dated() throttle.Request {
	r := w.request()
	if w.deadline != throttle.Never {
		r.Until = w.deadline
	}
	return r
}

// A line holds the callers who wait, in the order in which they depart. The
// most urgent class goes first, except for the share that the other classes are
// guaranteed together. Inside a class the tenants share by their weights.
// Inside a tenant the callers go by place.
type line struct {
	share   float64  // of all departures, guaranteed to the classes below the most urgent
	classes []*class // those in which somebody waits, the most urgent first
	normal  class    // class of PriorityNormal; most lines have no other
	count   int      // callers in line
	bytes   int64    // that the callers in line hold
}

// first returns the caller who departs next, and nil if nobody waits.
func (l *line) first() *waiter {
	if len(l.classes) == 0 {
		return nil
	}
	if len(l.classes) > 1 {
		if w := l.longest(); w.cost*(1-l.share) <= l.classes[1].owed*(1+1e-9) { // the sums are rounded
			return w
		}
	}
	return l.classes[0].first()
}

// longest returns, among the first callers of the classes below the most
// urgent, the one that came first.
func (l *line) longest() *waiter {
	longest := l.classes[1].first()
	for _, c := range l.classes[2:] {
		if w := c.first(); w.before(longest.place) {
			longest = w
		}
	}
	return longest
}

// enter puts w in line, in its class and behind its tenant's earlier callers.
func (l *line) enter(w *waiter, u urgency) {
	i, found := slices.BinarySearchFunc(l.classes, u.priority, func(c *class, p Priority) int { return int(p) - int(c.priority) })
	if !found {
		c := &l.normal
		if u.priority != PriorityNormal {
			c = &class{priority: u.priority}
		}
		if i < len(l.classes) {
			c.owed, c.saver = l.classes[i].owed, l.classes[i].saver
		}
		l.classes = slices.Insert(l.classes, i, c)
	}
	l.classes[i].enter(w, u)
	l.count++
	l.bytes += w.bytes
}

// depart takes w out of the line because it departs, and counts its departure.
// If it goes before the head, because its permits came first, it counts in its tenant's
// share, but not in what the classes owe each other.
func (l *line) depart(w *waiter) {
	if w == l.first() {
		l.owe(w)
	}
	w.tenant.class.charge(w)
	l.leave(w)
}

// owe counts the departure of w in what the classes owe each other. The classes
// above that of w, and its own, had it. Those below wait, and are owed their share
// of it, also if the more urgent class is empty for a moment afterwards. No class
// is owed more than what its next departure needs, and the share of one departure. What
// was saved for a caller who has left without a departure is owed to nobody.
func (l *line) owe(w *waiter) {
	var longest *waiter
	for _, c := range slices.Backward(l.classes) {
		if next := c.first(); longest == nil || next.before(longest.place) {
			longest = next
		}
		c.save(longest, l.share)
		switch {
		case c.priority >= w.tenant.class.priority:
			c.pay(w, l.share)
		case c.owed < longest.cost*(1-l.share):
			c.owed += w.cost * l.share
		}
	}
}

// leave takes w out of line.
func (l *line) leave(w *waiter) {
	w.tenant.class.leave(w)
	l.left(w)
	l.forget(w.tenant.class)
}

// removeLeavers takes out of line which of a tenant's callers leave.
func (l *line) removeLeavers(t *tenant) {
	t.class.removeLeavers(t, l.left)
	l.forget(t.class)
}

// left counts that w is no longer in line.
func (l *line) left(w *waiter) {
	l.count--
	l.bytes -= w.bytes
}

// forget removes a class in which nobody waits.
func (l *line) forget(c *class) {
	if len(c.tenants) > 0 {
		return
	}
	c.reset()
	l.classes = slices.DeleteFunc(l.classes, func(o *class) bool { return o == c })
}

// all yields everybody in line, in any order.
func (l *line) all() iter.Seq[*waiter] {
	return func(yield func(*waiter) bool) {
		for _, c := range l.classes {
			for _, t := range c.tenants {
				for _, w := range t.waiting.list() {
					if !yield(w) {
						return
					}
				}
			}
		}
	}
}

// inOrder yields the callers in line in the order in which they depart if nobody else
// comes, the share of the less urgent classes included.
func (l *line) inOrder() iter.Seq[*waiter] {
	return func(yield func(*waiter) bool) {
		if len(l.classes) > 1 {
			l.lookAhead(yield)
			return
		}
		for _, c := range l.classes {
			o := c.inOrder()
			for yield(o.first()) && o.skip() {
			}
		}
	}
}

// lookAhead yields the callers in line while more than one class is in it.
func (l *line) lookAhead(yield func(*waiter) bool) {
	then, classes := line{share: l.share}, make([]ahead, len(l.classes))
	for i, c := range l.classes {
		classes[i].look(c)
		then.classes = append(then.classes, &classes[i].class)
	}
	for len(then.classes) > 0 {
		w := then.first()
		if !yield(w) {
			return
		}
		then.owe(w)
		i := slices.Index(l.classes, w.tenant.class)
		if !classes[i].skip() {
			then.classes = slices.DeleteFunc(then.classes, func(c *class) bool { return c == &classes[i].class })
		}
	}
}

// requests yields what they ask for, in that order.
func (l *line) requests() iter.Seq[throttle.Request] {
	return func(yield func(throttle.Request) bool) {
		if l.count == 1 { // no order to find
			yield(l.first().dated())
			return
		}
		for w := range l.inOrder() {
			if !yield(w.dated()) {
				return
			}
		}
	}
}

// pop removes the last waiter of a list, and returns it.
func pop(l *[]*waiter) *waiter {
	old := *l
	w := old[len(old)-1]
	old[len(old)-1] = nil
	*l = old[:len(old)-1]
	return w
}
