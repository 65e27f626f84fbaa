package shaping

import (
	"container/heap"
	"math/bits"
	"slices"

	"github.com/weirgo/weir/throttle"
)

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
