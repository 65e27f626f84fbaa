package shaping

import (
	"cmp"
	"container/heap"

	"github.com/weirgo/weir/throttle"
)

// A place is where a caller stands among those of its tenant: by first arrival,
// and then by number.
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

// byPlace is a heap of waiters, with the first one at its root.
//
// In a line of 100,000, a newcomer would join a linked list in 0.2 µs instead
// of 0.9. But a turn that comes back would have to walk to its place. Among
// 100,000 that came back this took 1.1 ms under the queue's lock; the heap
// takes 2 µs.
type byPlace []*waiter

func (l byPlace) Len() int           { return len(l) }
func (l byPlace) Less(i, j int) bool { return l[i].before(l[j].place) }
func (l byPlace) Swap(i, j int) {
	l[i], l[j] = l[j], l[i]
	l[i].index, l[j].index = int32(i)+1, int32(j)+1
}
func (l *byPlace) Push(x any) {
	w := x.(*waiter)
	*l = append(*l, w)
	w.index = int32(len(*l))
}
func (l *byPlace) Pop() any {
	w := pop((*[]*waiter)(l))
	w.index = 0
	return w
}

// candidates is a heap of indexes into a heap of waiters. It holds the children
// of those that went before, and so the next one.
type candidates struct {
	line byPlace
	at   []int
}

func (c *candidates) done() bool    { return len(c.at) == 0 }
func (c *candidates) peek() *waiter { return c.line[c.at[0]] }

// next returns the next waiter in order.
func (c *candidates) next() *waiter {
	i := heap.Pop(c).(int)
	for _, child := range [...]int{2*i + 1, 2*i + 2} {
		if child < len(c.line) {
			heap.Push(c, child)
		}
	}
	return c.line[i]
}

func (c *candidates) Len() int           { return len(c.at) }
func (c *candidates) Less(i, j int) bool { return c.line.Less(c.at[i], c.at[j]) }
func (c *candidates) Swap(i, j int)      { c.at[i], c.at[j] = c.at[j], c.at[i] }
func (c *candidates) Push(x any)         { c.at = append(c.at, x.(int)) }
func (c *candidates) Pop() any {
	i := c.at[len(c.at)-1]
	c.at = c.at[:len(c.at)-1]
	return i
}
