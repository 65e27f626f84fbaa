package shaping

import (
	"container/heap"
	"iter"
)

// idleTenants is the most tenants without waiting callers of which a class
// remembers what they had. A tenant that is forgotten is as good as new: it
// departs earlier than its share by one caller.
const idleTenants = 1000

// A class holds the callers of one priority. Its tenants share by start-time
// fair queueing (Goyal, Vin and Cheng, SIGCOMM 1996). Each departure has a
// start. That is the end of the tenant's last departure or, if the tenant was
// idle, the start of the class's last one. The departure ends cost/weight
// later. The least start departs next. So while two tenants wait, what they get
// differs from their shares by no more than one departure of each. Of
//
//	a, a, a, a (weight 1), b, b (weight 2), all of cost 1
//
// the starts are 0 1 2 3 for a and 0 0.5 for b, and they depart as a b b a a a.
//
// A caller has its start when it becomes its tenant's first, not when it comes.
// So a caller that gives up costs its tenant nothing.
type class struct {
	priority Priority
	tenants  byStart            // those of whom somebody waits
	named    map[string]*tenant // tenants by name; nil: there are none
	nameless tenant             // the tenant of callers that name none
	now      float64            // start of the last departure
	owed     float64            // cost that this class and those below may spend before a more urgent one
	saver    *waiter            // the costliest caller for whom that is saved; nil: nobody
}

// A tenant is one of those who share a class.
type tenant struct {
	class   *class
	weight  float64
	waiting byPlace
	index   int     // 1 + index in class.tenants; 0: nobody waits
	start   float64 // of its first caller's departure
	end     float64 // of its last departure
	cost    float64 // of all its callers in line
	last    place   // the last place that any of them had
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
	if t.waiting.first() == w {
		c.order(t)
	}
}

// order puts t where its first caller belongs now. A turn that comes back keeps
// its place, because it has paid for it.
func (c *class) order(t *tenant) {
	if t.waiting.Len() == 0 {
		heap.Remove(&c.tenants, t.index-1)
		return
	}
	if t.start = c.now; !t.waiting.first().back {
		t.start = max(c.now, t.end)
	}
	if t.index == 0 {
		heap.Push(&c.tenants, t)
		return
	}
	heap.Fix(&c.tenants, t.index-1)
}

// charge counts the departure of w. If w overtakes the caller who is next, its
// tenant pays for it, but no other caller's start moves.
func (c *class) charge(w *waiter) {
	t := w.tenant
	if c.first() == w {
		c.now = max(c.now, t.start)
	}
	t.end = max(t.end, t.start) + w.cost/t.weight
}

// save makes next, whom c and those below let go next, the caller for whom c saves,
// unless c saves for a costlier one. If that one has left the line without paying, c
// loses what it saved for it beyond what next needs. That is looked at when somebody
// departs. So it is the same whether callers have left together or one by one, and
// cheap callers who go first take nothing from a costly one who still waits.
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

// pay takes what the departure of w costs from what c is owed.
func (c *class) pay(w *waiter, share float64) {
	c.owed = max(0, c.owed-w.cost*(1-share))
	if c.saver == w {
		c.saver = nil
	}
}

// leave takes w out of its tenant's line.
func (c *class) leave(w *waiter) {
	t, first := w.tenant, w.tenant.waiting.first()
	t.waiting.remove(w)
	t.cost -= w.cost
	c.left(t, first)
}

// removeLeavers takes out of a tenant's line who leaves, and tells each.
func (c *class) removeLeavers(t *tenant, tell func(*waiter)) {
	first := t.waiting.first()
	t.waiting.removeLeavers(func(w *waiter) {
		t.cost -= w.cost
		tell(w)
	})
	c.left(t, first)
}

// left puts t where it belongs after callers have left it, of whom one may have
// been its first.
func (c *class) left(t *tenant, first *waiter) {
	if t.waiting.Len() == 0 {
		t.cost = 0 // the sums are rounded
	}
	if t.waiting.Len() == 0 || t.waiting.first() != first {
		c.order(t)
	}
}

// reset forgets what tenants had, because nobody waits.
func (c *class) reset() {
	c.named, c.now, c.owed, c.saver = nil, 0, 0, nil
	c.nameless.start, c.nameless.end = 0, 0
}

// tenant returns the tenant of a caller, with the weight that was named last.
func (c *class) tenant(u urgency) *tenant {
	t := &c.nameless
	if u.tenant != "" {
		if t = c.named[u.tenant]; t == nil {
			t = c.open(u.tenant)
		}
	}
	t.class, t.weight = c, u.weightOrOne()
	return t
}

// open makes a tenant of that name.
func (c *class) open(name string) *tenant {
	if c.named == nil {
		c.named = make(map[string]*tenant)
	}
	if len(c.named) >= len(c.tenants)+idleTenants {
		c.forget()
	}
	t := new(tenant)
	c.named[name] = t
	return t
}

// forget drops the idle tenants whose past no longer counts. If too many others
// are idle, it drops these too.
func (c *class) forget() {
	idle := 0
	for name, t := range c.named {
		switch {
		case t.index > 0:
		case t.end <= c.now:
			delete(c.named, name)
		default:
			idle++
		}
	}
	if idle > idleTenants/2 {
		for name, t := range c.named {
			if t.index == 0 {
				delete(c.named, name)
			}
		}
	}
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
	l[i].index, l[j].index = i+1, j+1
}
func (l *byStart) Push(x any) {
	t := x.(*tenant)
	*l = append(*l, t)
	t.index = len(*l)
}
func (l *byStart) Pop() any {
	old := *l
	t := old[len(old)-1]
	old[len(old)-1] = nil
	*l = old[:len(old)-1]
	t.index = 0
	return t
}

// inOrder yields the class's callers in the order in which they depart if
// nobody else comes. It sorts only what is looked at: the next caller is always
// the least of a small heap. That heap holds the tenants looked at so far, and
// their children in the heap of tenants.
func (c *class) inOrder() iter.Seq[*waiter] {
	return func(yield func(*waiter) bool) {
		tenants := cursors{c.cursor(0)}
		for len(tenants) > 0 {
			t := tenants[0]
			w := t.next()
			if !yield(w) {
				return
			}
			t.start = max(t.start, t.tenant.end) + w.cost/t.tenant.weight
			if t.done() {
				heap.Pop(&tenants)
			} else {
				heap.Fix(&tenants, 0)
			}
			if t.index < 0 {
				continue
			}
			for _, child := range [...]int{2*t.index + 1, 2*t.index + 2} {
				if child < len(c.tenants) {
					heap.Push(&tenants, c.cursor(child))
				}
			}
			t.index = -1
		}
	}
}

// A cursor looks at one tenant's callers in the order of their places.
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
func (l *cursors) Pop() any {
	old := *l
	c := old[len(old)-1]
	*l = old[:len(old)-1]
	return c
}
