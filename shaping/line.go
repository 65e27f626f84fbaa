package shaping

import (
	"iter"
	"slices"

	"github.com/weirgo/weir/throttle"
)

// A line holds the waiting callers, in the order in which they depart. The most urgent class goes
// first, except for the share that the other classes are guaranteed together. Inside a class the
// tenants share by their weights. Inside a tenant callers are ordered by place.
type line struct {
	share   float64  // of all departures, guaranteed to the classes below the most urgent
	classes []*class // those with waiting callers, the most urgent first
	normal  class    // class of PriorityNormal; most lines have no other
	count   int      // callers in line
	bytes   int64    // that the callers in line hold
}

// first returns the caller who departs next, and nil for an empty line.
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

// passed returns the virtual time of a class; zero: no caller waits in it.
func (l *line) passed(p Priority) float64 {
	for _, c := range l.classes {
		if c.priority == p {
			return c.now
		}
	}
	return 0
}

// overtakes reports whether w goes next although a more urgent class waits.
func (l *line) overtakes(w *waiter) bool {
	return len(l.classes) > 1 && w == l.first() && w.tenant.class != l.classes[0]
}

// carry makes w, which is in line, take along what its class was owed for it, if by is -1, or bring
// it back. It reports whether a more urgent class waits, so that a share is owed.
func (l *line) carry(w *waiter, by float64) bool {
	for _, c := range l.classes[1:] {
		if c.priority >= w.tenant.class.priority {
			c.owed = max(0, c.owed+by*w.cost*(1-l.share))
		}
	}
	return w.tenant.class != l.classes[0]
}

// depart takes w out of the line because it departs, and counts its departure. If its permits came
// first and it overtakes the head, it counts only in its tenant's share, not in the debts between
// classes.
func (l *line) depart(w *waiter) {
	if w == l.first() {
		l.owe(w)
	}
	t, c := w.tenant, w.tenant.class
	c.now += w.cost / c.weights
	t.end += w.cost / float64(t.weight) // the start of a caller overtaken by w stays, and the tenant pays with its next
	l.leave(w)
}

// owe counts the departure of w in the debts between classes. The classes above that of w, and its
// own, had it. Those below wait, and are owed their share of it, even if the more urgent class is
// empty for a moment afterwards. No class is owed more than its next departure needs, plus the
// share of one departure. Savings for a caller that left without a departure are no longer owed.
func (l *line) owe(w *waiter) {
	var longest *waiter
	for _, c := range slices.Backward(l.classes) {
		if next := c.first(); longest == nil || next.before(longest.place) {
			longest = next
		}
		c.save(longest, l.share)
		switch {
		case c.priority >= w.tenant.class.priority:
			if c.owed = max(0, c.owed-w.cost*(1-l.share)); c.saver == w {
				c.saver = nil
			}
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

// removeLeavers removes the leavers among a tenant's callers.
func (l *line) removeLeavers(t *tenant) {
	t.class.removeLeavers(t, l.left)
	l.forget(t.class)
}

// left counts that w is no longer in line.
func (l *line) left(w *waiter) {
	l.count--
	l.bytes -= w.bytes
}

// forget removes an empty class, and what its tenants had.
func (l *line) forget(c *class) {
	if len(c.tenants) > 0 {
		return
	}
	c.named, c.kept, c.now, c.owed, c.saver, c.nameless.end = nil, 0, 0, 0, nil, 0
	l.classes = slices.DeleteFunc(l.classes, func(o *class) bool { return o == c })
}

// all yields all callers in line, in any order.
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

// inOrder yields the callers in order of departure if no other caller comes. The share of the less
// urgent classes is included.
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

// requests yields their requests in that order.
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
