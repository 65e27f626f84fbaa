package lane

import (
	"cmp"
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
// milliseconds.
const askedMost = 10_000

// restsEach is how long a lane that may not be removed is not checked again, for each lane of the
// table: in one of 10,000 lanes for a second. So at most 10,000 lanes are checked a second.
const restsEach = 100 * time.Microsecond

// A rest is a lane that is not checked until an instant.
type rest struct {
	lane  *Lane
	until throttle.Instant
}

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

	resting []rest // lanes that had to stay, in order of their instants

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
	now := throttle.InstantOf(time.Now())
	t.mu.Lock()
	for len(t.resting) > 0 && t.resting[0].until <= now { // they have rested
		t.idle, t.resting = append(t.idle, t.resting[0].lane), t.resting[1:]
	}
	t.mu.Unlock()
	full, most := t.n >= bound, asked
	if full {
		most = askedMost
	}
	for n := 0; n < most; {
		lanes := t.unused()
		for i, l := range lanes {
			age := l.age()
			if n >= most || age <= t.keep && !full {
				t.mu.Lock()
				t.idle = append(t.idle, lanes[i:]...)
				t.mu.Unlock()
				return !full, gone
			}
			n++
			if l.retire(age > idle) {
				t.remove(l)
				gone = append(gone, l)
				full = t.n >= bound
				continue
			}
			t.resting = append(t.resting, rest{l, now.Add(time.Duration(t.n) * restsEach)})
		}
		if !full || len(lanes) == 0 {
			break
		}
	}
	return !full, gone
}

// unused takes the next few empty lanes out of the list of idle lanes. The least recently used
// comes first. Lanes in use come back when they are left.
func (t *table) unused() []*Lane {
	t.mu.Lock()
	defer t.mu.Unlock()
	lanes := make([]*Lane, 0, examined)
	for len(lanes) < examined && len(t.idle) > 0 {
		l := t.idle[0]
		t.idle[0], t.idle = nil, t.idle[1:]
		if l.users.Load() > 0 {
			l.listed.Store(false)
			if l.users.Load() > 0 || !l.listed.CompareAndSwap(false, true) {
				continue
			}
			// It was left meanwhile.
		}
		lanes = append(lanes, l)
	}
	slices.SortStableFunc(lanes, func(a, b *Lane) int { return cmp.Compare(a.used.Load(), b.used.Load()) })
	return lanes
}
