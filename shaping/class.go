package shaping

import (
	"container/heap"
	"maps"
	"math"
)

// idleTenants is how many names a class keeps before it checks which of them still count.
const idleTenants = 1024

// A class holds the callers of one priority. Its tenants share by the virtual time of
// weighted fair queueing (Demers, Keshav and Shenker, SIGCOMM 1989). Each departure
// moves that time by its cost, divided by the sum of the weights of the tenants that
// wait. Each departure of a tenant has a start. It is the end of the last departure or,
// if the tenant was idle, the virtual time at which it came. The departure ends
// cost/weight later. The least start departs next. So while two tenants wait, what they
// get differs from their shares by no more than one departure of each. Of
//
//	a, a, a, a (weight 1), b, b (weight 2), all of cost 1
//
// the starts are 0 1 2 3 for a and 0 0.5 for b, and they depart as a b b a a a. A
// caller under a new name begins like a tenant that has had its share, and delays a
// waiting tenant by one departure. A caller that gives up costs its tenant nothing.
type class struct {
	priority Priority
	kept     int32              // number of names from which on it checks which of them still count
	tenants  byStart            // tenants with waiting callers
	weights  float64            // the sum of theirs
	named    map[string]*tenant // tenants by name; nil: none
	nameless tenant             // the tenant of callers without a name
	now      float64            // virtual time
	owed     float64            // cost that this class and those below may spend before a more urgent one
	saver    *waiter            // the costliest caller for which that is saved; nil: none
}

// A tenant is one of the tenants that share a class.
type tenant struct {
	class   *class
	name    *string // nil: callers without a name
	waiting byPlace
	weight  float32
	index   int32   // 1 + index in class.tenants; 0: no waiting callers
	start   float64 // of its first caller's departure
	end     float64 // of its last departure; if others overtook the first, later than start
	cost    float64 // of all its callers in line
	last    place   // the last place of any of them
}

// first returns the caller who departs next.
func (c *class) first() *waiter { return c.tenants[0].waiting.first() }

// enter puts w behind its tenant's earlier callers.
func (c *class) enter(w *waiter, u urgency) {
	t := c.tenant(u)
	w.tenant = t
	t.waiting.add(w)
	t.cost += w.cost
	if t.last.before(w.place) {
		t.last = w.place
	}
	if t.index == 0 { // the tenant was idle
		t.end = max(t.end, c.now-u.credit)
	}
	if t.waiting.first() == w {
		c.order(t)
	}
}

// order puts t in order by its first caller.
func (c *class) order(t *tenant) {
	if t.waiting.Len() == 0 {
		heap.Remove(&c.tenants, int(t.index)-1)
		c.weights -= float64(t.weight)
		return
	}
	if t.start = t.end; t.index == 0 {
		c.weights += float64(t.weight)
		heap.Push(&c.tenants, t)
		return
	}
	heap.Fix(&c.tenants, int(t.index)-1)
}

// save makes next, which c and those below grant next, the caller for which c saves, unless c saves
// for a costlier one. If that one has left the line without paying, c loses its savings beyond what
// next needs. This is checked at each departure, so it makes no difference whether callers have
// left together or one by one. Cheap callers that depart first take nothing from a costly one that
// still waits.
func (c *class) save(next *waiter, share float64) {
	switch {
	case c.saver == nil:
	case c.saver.index == 0:
		need, needed := next.cost*(1-share), c.saver.cost*(1-share)
		c.owed = min(c.owed, max(need, c.owed-(needed-need)))
	case c.saver.cost >= next.cost:
		return
	}
	c.saver = next
}

// leave removes w from its tenant's line.
func (c *class) leave(w *waiter) {
	t, first := w.tenant, w.tenant.waiting.first()
	t.waiting.remove(w)
	t.cost -= w.cost
	c.left(t, first)
}

// removeLeavers removes a tenant's cancelled callers from the line, and notifies each.
func (c *class) removeLeavers(t *tenant, notify func(*waiter)) {
	first := t.waiting.first()
	t.waiting.removeLeavers(func(w *waiter) {
		t.cost -= w.cost
		notify(w)
	})
	c.left(t, first)
}

// left puts t in order after callers have left it, perhaps its first.
func (c *class) left(t *tenant, first *waiter) {
	if t.waiting.Len() == 0 {
		t.cost = 0 // the sums are rounded
	}
	if t.waiting.Len() == 0 || t.waiting.first() != first {
		c.order(t)
	}
}

// tenant returns the tenant of a caller, with the last weight named. Callers without a name have no
// weight.
func (c *class) tenant(u urgency) *tenant {
	t, weight := &c.nameless, float32(1)
	if u.tenant != "" {
		weight = float32(min(max(u.weight, 1), maxWeight))
		if t = c.named[u.tenant]; t == nil {
			t = c.open(u.tenant)
		}
	}
	if t.index > 0 {
		c.weights += float64(weight) - float64(t.weight)
	}
	t.class, t.weight = c, weight
	return t
}

// open makes a tenant of that name. An idle tenant that had no more than its share is as good as
// new. Such tenants are dropped whenever the names have doubled since the last check.
func (c *class) open(name string) *tenant {
	if len(c.named) >= max(int(c.kept), idleTenants) {
		maps.DeleteFunc(c.named, func(_ string, t *tenant) bool { return t.index == 0 && t.end <= c.now })
		c.kept = int32(min(2*len(c.named), math.MaxInt32))
	}
	if c.named == nil {
		c.named = make(map[string]*tenant)
	}
	t := &tenant{name: &name}
	c.named[name] = t
	return t
}

// byStart is a heap of tenants, the next to depart at its root.
type byStart []*tenant

func (l byStart) Len() int { return len(l) }
func (l byStart) Less(i, j int) bool {
	if l[i].start != l[j].start {
		return l[i].start < l[j].start
	}
	return l[i].waiting.first().before(l[j].waiting.first().place)
}
func (l byStart) Swap(i, j int) {
	l[i], l[j] = l[j], l[i]
	l[i].index, l[j].index = int32(i)+1, int32(j)+1
}
func (l *byStart) Push(x any) {
	t := x.(*tenant)
	*l = append(*l, t)
	t.index = int32(len(*l))
}
func (l *byStart) Pop() any {
	t := pop((*[]*tenant)(l))
	t.index = 0
	return t
}

// An order is the callers of a class in order of departure if no other caller comes. It sorts only
// the callers that are read: the next caller is always the least of a small heap. That heap holds
// the tenants looked at so far, and their children in the heap of tenants.
type order struct {
	of   *class
	heap cursors
}

func (c *class) inOrder() order { return order{c, cursors{c.cursor(0)}} }

func (o *order) first() *waiter { return o.heap[0].peek() }

// skip advances to the next caller, and reports whether there is one.
func (o *order) skip() bool {
	t := o.heap[0]
	w := t.next()
	t.start = max(t.start, t.tenant.end) + w.cost/float64(t.tenant.weight)
	if t.done() {
		heap.Pop(&o.heap)
	} else {
		heap.Fix(&o.heap, 0)
	}
	if t.index >= 0 {
		for _, child := range [...]int{2*t.index + 1, 2*t.index + 2} {
			if child < len(o.of.tenants) {
				heap.Push(&o.heap, o.of.cursor(child))
			}
		}
		t.index = -1
	}
	return len(o.heap) > 0
}

// An ahead is a class as it will be if no other caller comes. Only its next caller is
// in it.
type ahead struct {
	class
	order order
	one   tenant
	next  [1]*waiter
}

// look makes a the current class c.
func (a *ahead) look(c *class) {
	a.priority, a.owed, a.saver = c.priority, c.owed, c.saver
	a.order, a.next[0] = c.inOrder(), c.first()
	a.one.waiting.all, a.tenants = a.next[:], byStart{&a.one}
}

// skip advances to the next caller, and reports whether there is one.
func (a *ahead) skip() bool {
	if !a.order.skip() {
		return false
	}
	a.next[0] = a.order.first()
	return true
}

// A cursor reads one tenant's callers in the order of their places.
type cursor struct {
	tenant *tenant
	index  int     // of the tenant in the class; below zero: its children were added
	start  float64 // of the next one's departure
	candidates
}

// cursor returns a cursor of the i-th tenant.
func (c *class) cursor(i int) *cursor {
	t := c.tenants[i]
	return &cursor{tenant: t, index: i, start: t.start, candidates: candidates{line: t.waiting.list(), mixed: t.waiting.mixed, at: []int{0}}}
}

// cursors is a heap of cursors, the next to depart at its root.
type cursors []*cursor

func (l cursors) Len() int { return len(l) }
func (l cursors) Less(i, j int) bool {
	if l[i].start != l[j].start {
		return l[i].start < l[j].start
	}
	return l[i].peek().before(l[j].peek().place)
}
func (l cursors) Swap(i, j int) { l[i], l[j] = l[j], l[i] }
func (l *cursors) Push(x any)   { *l = append(*l, x.(*cursor)) }
func (l *cursors) Pop() any     { return pop((*[]*cursor)(l)) }
