package lane

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// idle is how long an unused lane stays in the table.
const idle = 10 * time.Minute

// examined is how many lanes are looked at each time that one is made. So each
// new key costs the same in a table of any size, and there is no sweep, which a
// million lanes would make long. It is a prime, so that it does not divide the
// size of most tables and different lanes are looked at together each time.
const examined = 17

// asked is how many of those are asked whether they may go. That costs more
// than a look.
const asked = 4

// A table is a bounded set of lanes. Lanes are found without a lock. Everything
// else is done under the lock of the lanes that the table belongs to.
type table struct {
	keep  time.Duration // how long an unused lane stays
	index sync.Map      // lane.name -> *Lane
	all   []*Lane       // in any order
	hand  int           // index in all of the lane that is looked at next
}

// find returns the lane of that name, or nil. The lane may be on its way out.
func (t *table) find(name string) *Lane {
	if v, ok := t.index.Load(name); ok {
		return v.(*Lane)
	}
	return nil
}

// add adds a lane.
func (t *table) add(l *Lane) {
	l.place = len(t.all)
	t.all = append(t.all, l)
	t.index.Store(l.name(), l)
}

// room reports whether there is room for one more lane within the bound. It
// returns the lanes that it has removed, which the caller closes. Among the
// next few lanes it removes those that were unused for long and, if the table
// is full, the one that was used least recently and may go.
func (t *table) room(bound int) (ok bool, gone []*Lane) {
	full := len(t.all) >= bound
	for i, c := range t.unused() {
		if i == asked || c.age <= t.keep && !full {
			break
		}
		if c.lane.retire(c.age > idle) {
			gone = append(gone, c.lane)
			full = len(t.all)-len(gone) >= bound
		}
	}
	for _, l := range gone {
		t.remove(l)
	}
	return !full, gone
}

// A candidate is a lane with nobody in it.
type candidate struct {
	lane *Lane
	age  time.Duration // since it was used
}

// unused returns those of the next few lanes that have nobody in them. The
// least recently used comes first.
func (t *table) unused() []candidate {
	candidates := make([]candidate, 0, examined)
	for range min(examined, len(t.all)) {
		t.hand = (t.hand + 1) % len(t.all)
		if l := t.all[t.hand]; l.users.Load() == 0 {
			candidates = append(candidates, candidate{l, l.age()})
		}
	}
	slices.SortStableFunc(candidates, func(a, b candidate) int { return cmp.Compare(b.age, a.age) })
	return candidates
}

// remove removes a lane.
func (t *table) remove(l *Lane) {
	t.index.Delete(l.name())
	last := len(t.all) - 1
	moved := t.all[last]
	t.all[l.place], moved.place = moved, l.place
	t.all[last] = nil
	t.all = t.all[:last]
}
