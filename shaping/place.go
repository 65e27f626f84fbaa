package shaping

import (
	"cmp"
	"container/heap"
	"math/bits"
	"slices"

	"github.com/weirgo/weir/throttle"
)

// A place orders a tenant's callers: by first arrival, and then by number.
type place struct {
	arrived throttle.Instant
	number  int64
}

// compare orders places.
func (p place) compare(o place) int {
	return cmp.Or(cmp.Compare(p.arrived, o.arrived), cmp.Compare(p.number, o.number))
}

// before reports whether p comes before o. It is a faster compare, for the heaps.
func (p place) before(o place) bool {
	if p.arrived != o.arrived {
		return p.arrived < o.arrived
	}
	return p.number < o.number
}

// byPlace holds waiters, with the first one at its front. While newcomers join at the end and leave
// at the front they are in order, and each costs a few steps. Once one joins or leaves elsewhere,
// such as a turn that comes back, they are a heap until the list is empty. A list that is in order
// is a heap already.
//
// A linked list would have a turn that comes back walk to its place. Among 100,000
// that came back this took 1.1 ms under the queue's lock; the heap takes 2 µs.
type byPlace struct {
	all   []*waiter // nil before head
	head  int32
	mixed bool // they are a heap, and not in order
}

// first returns the one before all others.
func (l *byPlace) first() *waiter { return l.all[l.head] }

// list returns the waiters, the first one at its front.
func (l *byPlace) list() []*waiter { return l.all[l.head:] }

// add adds w.
func (l *byPlace) add(w *waiter) {
	n := len(l.all)
	if n == cap(l.all) && int(l.head) > n/2 {
		l.hold(append(l.all[:0], l.list()...))
		clear(l.all[len(l.all):n])
		n = len(l.all)
	}
	l.mixed = l.mixed || n > int(l.head) && w.before(l.all[n-1].place)
	if l.mixed {
		heap.Push(l, w)
	} else {
		l.Push(w)
	}
}

// remove removes w.
func (l *byPlace) remove(w *waiter) {
	i := int(w.index) - 1
	if i == int(l.head) && !l.mixed {
		l.all[i], w.index = nil, 0
		l.head++
	} else {
		l.mixed = l.mixed || i < len(l.all)-1
		heap.Remove(l, i-int(l.head))
	}
	if l.Len() == 0 {
		l.hold(l.all[:0])
	}
}

// removeLeavers removes cancelled waiters, and notifies each.
func (l *byPlace) removeLeavers(notify func(*waiter)) {
	l.hold(slices.DeleteFunc(l.list(), func(w *waiter) bool {
		if w.leaves.Load() {
			w.index = 0
			notify(w)
		}
		return w.leaves.Load()
	}))
	heap.Init(l)
}

// hold replaces all waiters, keeping their order.
func (l *byPlace) hold(all []*waiter) {
	l.all, l.head = all, 0
	l.mixed = l.mixed && len(all) > 0
	for i, w := range all {
		w.index = int32(i) + 1
	}
}

func (l *byPlace) Len() int           { return len(l.all) - int(l.head) }
func (l *byPlace) Less(i, j int) bool { line := l.list(); return line[i].before(line[j].place) }
func (l *byPlace) Swap(i, j int) {
	line := l.list()
	line[i], line[j] = line[j], line[i]
	line[i].index, line[j].index = line[j].index, line[i].index
}
func (l *byPlace) Push(x any) {
	w := x.(*waiter)
	l.all = append(l.all, w)
	w.index = int32(len(l.all))
}
func (l *byPlace) Pop() any {
	w := pop(&l.all)
	w.index = 0
	return w
}

// candidates is a heap of indexes into a heap of waiters. It holds the children
// of those that went before, and so the next one. In a line that is in order it holds
// the next one alone.
type candidates struct {
	line  []*waiter
	mixed bool // it is not in order
	at    []int
}

func (c *candidates) done() bool    { return len(c.at) == 0 }
func (c *candidates) peek() *waiter { return c.line[c.at[0]] }

// next returns the next waiter in order, whose children take its place. They are moved
// here, not by container/heap, because a call of a remote limiter looks at the whole
// line.
func (c *candidates) next() *waiter {
	i, last := c.at[0], len(c.at)-1
	if !c.mixed && i+1 < len(c.line) {
		c.at[0]++
		return c.line[i]
	}
	if left := 2*i + 1; left < len(c.line) {
		c.at[0] = left
	} else {
		c.at[0] = c.at[last]
		c.at = c.at[:last]
	}
	c.down()
	if right := 2*i + 2; right < len(c.line) {
		c.at = append(c.at, right)
		c.up()
	}
	return c.line[i]
}

// down moves the root to its place.
func (c *candidates) down() {
	for i := 0; 2*i+1 < len(c.at); {
		least := 2*i + 1
		if right := least + 1; right < len(c.at) && c.before(right, least) {
			least = right
		}
		if !c.before(least, i) {
			return
		}
		c.at[i], c.at[least] = c.at[least], c.at[i]
		i = least
	}
}

// up moves the last to its place.
func (c *candidates) up() {
	for i := len(c.at) - 1; i > 0; {
		parent := (i - 1) / 2
		if !c.before(i, parent) {
			return
		}
		c.at[i], c.at[parent] = c.at[parent], c.at[i]
		i = parent
	}
}

func (c *candidates) before(i, j int) bool { return c.line[c.at[i]].before(c.line[c.at[j]].place) }

// deadlines holds the waiters that have a deadline. A waiter behind the one with the next deadline
// may ask for more, can then only go later, and may miss its deadline first. So callers with
// similar costs form a group, and only the first of each group is checked.
type deadlines []deadlineGroup

type deadlineGroup struct {
	size int
	byDeadline
}

// sizeOf returns the group of w by its highest cost at any limit. The groups are 0, 1, 2, 3, 4 to
// 5, 6 to 7, 8 to 11, 12 to 15 and so on.
func sizeOf(w *waiter) int {
	n := w.n
	for _, e := range w.each.get() {
		n = max(n, e)
	}
	if n < 2 {
		return n
	}
	octave := bits.Len(uint(n))
	return 2*octave + n>>(octave-2)&1
}

// group returns the group of w, and makes it if it does not exist.
func (d *deadlines) group(w *waiter) *byDeadline {
	size := sizeOf(w)
	for i := range *d {
		if (*d)[i].size == size {
			return &(*d)[i].byDeadline
		}
	}
	*d = append(*d, deadlineGroup{size: size})
	return &(*d)[len(*d)-1].byDeadline
}

// add adds w, if it has a deadline.
func (d *deadlines) add(w *waiter) {
	if w.deadline != throttle.Never {
		heap.Push(d.group(w), w)
	}
}

// remove takes w out, if it is in.
func (d *deadlines) remove(w *waiter) {
	if w.expiry > 0 {
		heap.Remove(d.group(w), int(w.expiry)-1)
	}
}

// removeLeavers removes cancelled waiters.
func (d deadlines) removeLeavers() {
	for i := range d {
		g := &d[i].byDeadline
		*g = slices.DeleteFunc(*g, func(w *waiter) bool {
			if w.leaves.Load() {
				w.expiry = 0
			}
			return w.leaves.Load()
		})
		for i, w := range *g {
			w.expiry = int32(i) + 1
		}
		heap.Init(g)
	}
}

// next returns the next deadline; Never without waiters.
func (d deadlines) next() throttle.Instant {
	next := throttle.Never
	for _, g := range d {
		if len(g.byDeadline) > 0 {
			next = min(next, g.byDeadline[0].deadline)
		}
	}
	return next
}

// byDeadline is a heap of the waiters that have a deadline. The next one to
// expire is at its root.
type byDeadline []*waiter

func (l byDeadline) Len() int           { return len(l) }
func (l byDeadline) Less(i, j int) bool { return l[i].deadline < l[j].deadline }
func (l byDeadline) Swap(i, j int) {
	l[i], l[j] = l[j], l[i]
	l[i].expiry, l[j].expiry = int32(i)+1, int32(j)+1
}
func (l *byDeadline) Push(x any) {
	w := x.(*waiter)
	*l = append(*l, w)
	w.expiry = int32(len(*l))
}
func (l *byDeadline) Pop() any {
	w := pop((*[]*waiter)(l))
	w.expiry = 0
	return w
}
