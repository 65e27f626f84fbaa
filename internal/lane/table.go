package lane

import (
	"cmp"
	"container/heap"
	"slices"
	"sync"
	"time"

	"github.com/weirgo/weir/throttle"
)

// idle is how long an unused lane stays in the table.
const idle = 10 * time.Minute

// examined is how many idle lanes are compared for each new lane. The least recently used of them
// is removed.
const examined = 17

// asked is how many of them are checked for removal while there is room.
const asked = 4

// askedMost is how many lanes are checked for one new key in a full table. That takes a few
// milliseconds, once: a lane that cannot be removed is not checked again before it can.
const askedMost = 10_000

// A table is a bounded set of lanes. Lanes are found without a lock. Everything else is done under
// the lock of the table's lanes, except for the list of idle lanes.
//
// Each unused lane is in either idle or resting. A lane joins idle when its last user leaves, and
// stays there when others enter: so a call costs nothing for it. Lanes in use are sorted out when a
// new key needs a place.
type table struct {
	keep  time.Duration // how long an unused lane stays
	index sync.Map      // lane.name -> *Lane
	n     int           // of lanes

	resting resting // lanes that must stay until an instant

	mu   sync.Mutex // the innermost
	idle []*Lane    // in order of arrival
}

// find returns the lane of that name, or nil. The lane may be about to be removed.
func (t *table) find(name string) *Lane {
	if v, ok := t.index.Load(name); ok {
		return v.(*Lane)
	}
	return nil
}

// add adds a lane, which is in use.
func (t *table) add(l *Lane) {
	l.home = t
	if t.n++; l.sub != nil {
		l.sub.lane.sublanes.Add(1)
	}
	t.index.Store(l.name(), l)
}

// remove removes a lane.
func (t *table) remove(l *Lane) {
	if t.n--; l.sub != nil {
		l.sub.lane.sublanes.Add(-1)
	}
	t.index.Delete(l.name())
}

// all calls f with each lane, in any order, until f returns false. It takes no lock, and
// may leave out lanes that are added or removed meanwhile.
func (t *table) all(f func(*Lane) bool) {
	t.index.Range(func(_, l any) bool { return f(l.(*Lane)) })
}

// list puts an empty lane into the list of idle lanes.
func (t *table) list(l *Lane) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if l.listed.CompareAndSwap(false, true) {
		t.idle = append(t.idle, l)
	}
}

// room reports whether there is room for one more lane within the bound. It returns the lanes that
// it has removed, which the caller closes. It removes idle lanes that were unused for long. If the
// table is full, it also removes the least recently used removable one of several.
func (t *table) room(bound int) (ok bool, gone []*Lane) {
	t.wake(throttle.InstantOf(time.Now()))
	full, most := t.n >= bound, asked
	if full {
		most = askedMost
	}
	for n := 0; n < most; {
		candidates := t.unused()
		for i, c := range candidates {
			if n >= most || c.age <= t.keep && !full {
				t.relist(candidates[i:])
				return !full, gone
			}
			n++
			if c.lane.retire(c.age > idle) {
				t.remove(c.lane)
				gone = append(gone, c.lane)
				full = t.n >= bound
				continue
			}
			heap.Push(&t.resting, rest{c.lane, throttle.InstantOf(time.Now()).Add(c.lane.rests(c.age))})
		}
		if !full || len(candidates) == 0 {
			break
		}
	}
	return !full, gone
}

// A candidate is an empty lane.
type candidate struct {
	lane *Lane
	age  time.Duration // since its last use
}

// unused takes the next few empty lanes out of the list of idle lanes. The least recently used
// comes first. Lanes in use come back when they are left.
func (t *table) unused() []candidate {
	t.mu.Lock()
	defer t.mu.Unlock()
	candidates := make([]candidate, 0, examined)
	for len(candidates) < examined && len(t.idle) > 0 {
		l := t.idle[0]
		t.idle[0], t.idle = nil, t.idle[1:]
		if l.users.Load() == 0 {
			candidates = append(candidates, candidate{l, l.age()})
			continue
		}
		l.listed.Store(false)
		if l.users.Load() == 0 && l.listed.CompareAndSwap(false, true) { // it was left meanwhile
			candidates = append(candidates, candidate{l, l.age()})
		}
	}
	slices.SortStableFunc(candidates, func(a, b candidate) int { return cmp.Compare(b.age, a.age) })
	return candidates
}

// relist puts back the lanes that unused has taken.
func (t *table) relist(candidates []candidate) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range candidates {
		t.idle = append(t.idle, c.lane)
	}
}

// wake puts lanes that are removable by now back into the list of idle lanes.
func (t *table) wake(now throttle.Instant) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(t.resting) > 0 && t.resting[0].until <= now {
		t.idle = append(t.idle, heap.Pop(&t.resting).(rest).lane)
	}
}

// A rest is a lane that must stay until an instant.
type rest struct {
	lane  *Lane
	until throttle.Instant
}

// resting is a heap of lanes. The first to become removable is on top.
type resting []rest

func (r resting) Len() int           { return len(r) }
func (r resting) Less(i, j int) bool { return r[i].until < r[j].until }
func (r resting) Swap(i, j int)      { r[i], r[j] = r[j], r[i] }
func (r *resting) Push(x any)        { *r = append(*r, x.(rest)) }
func (r *resting) Pop() any {
	last := len(*r) - 1
	x := (*r)[last]
	(*r)[last] = rest{}
	*r = (*r)[:last]
	return x
}
