package lane

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// idle is how long an unused lane stays in the table.
const idle = 10 * time.Minute

// examined is how many lanes are compared at a time. The least recently used of them is removed.
const examined = 17

// asked is how many lanes are checked for removal for one new key while there is room.
const asked = 4

// askedMost is how many lanes are checked for one new key in a full table. That takes a few
// milliseconds.
const askedMost = 10_000

// restsEach is how long a full table is not checked again, for each lane that may not be removed: one
// of 10,000 lanes for a second. So at most 10,000 lanes are checked a second.
const restsEach = 100 * time.Microsecond

// A table is a bounded set of lanes. Lanes are found without a lock. Everything else is done under
// the lock of the table's lanes. A hand moves round the lanes, and those that it passes are checked
// for removal when a new key needs a place. So a call costs nothing for it.
type table struct {
	keep  time.Duration // how long an unused lane stays
	index sync.Map      // lane.name -> *Lane
	lanes []*Lane       // the same lanes
	hand  int           // place of the next lane to check
	rests time.Time     // a full table is not checked before
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
	l.place, t.lanes = len(t.lanes), append(t.lanes, l)
	if l.sub != nil {
		l.sub.lane.sublanes.Add(1)
	}
	t.index.Store(l.name(), l)
}

// remove removes a lane. The last one gets its place.
func (t *table) remove(l *Lane) {
	last := t.lanes[len(t.lanes)-1]
	last.place, t.lanes[l.place] = l.place, last
	t.lanes[len(t.lanes)-1] = nil
	t.lanes = t.lanes[:len(t.lanes)-1]
	if l.sub != nil {
		l.sub.lane.sublanes.Add(-1)
	}
	t.index.Delete(l.name())
}

// all calls f with each lane, in any order, until f returns false. It takes no lock, and
// may leave out lanes that are added or removed meanwhile.
func (t *table) all(f func(*Lane) bool) {
	t.index.Range(func(_, l any) bool { return f(l.(*Lane)) })
}

// room reports whether there is room for one more lane within the bound. It returns the lanes that
// it has removed, which the caller closes. It removes idle lanes that were unused for long. If the
// table is full, it also removes the least recently used removable one of several.
func (t *table) room(bound int) (ok bool, gone []*Lane) {
	full := func() bool { return len(t.lanes) >= bound }
	most, stay := asked, 0
	if full() {
		if most = askedMost; time.Now().Before(t.rests) {
			return false, nil
		}
	}
	for most = min(most, len(t.lanes)); most > 0 && len(gone) == 0; most -= examined {
		for _, l := range t.next(min(most, examined)) {
			age := l.age()
			if age <= t.keep && !full() {
				break // so are those behind it
			}
			switch {
			case l.users.Load() != 0:
			case l.retire(age > idle):
				t.remove(l)
				gone = append(gone, l)
			default:
				stay++
			}
		}
	}
	if full() {
		t.rests = time.Now().Add(time.Duration(stay) * restsEach)
	}
	return !full(), gone
}

// next moves the hand past n lanes, and returns them. The least recently used comes first.
func (t *table) next(n int) []*Lane {
	lanes := make([]*Lane, n)
	for i := range lanes {
		t.hand = (t.hand + 1) % len(t.lanes)
		lanes[i] = t.lanes[t.hand]
	}
	slices.SortStableFunc(lanes, func(a, b *Lane) int { return cmp.Compare(a.used.Load(), b.used.Load()) })
	return lanes
}
