package lane

import (
	"time"

	"github.com/weirgo/weir/throttle"
)

// Unheard are calls that have departed and were not answered yet. A call that hangs
// is counted for the time of a lease, and no longer. The zero value has none.
type unheard struct {
	at    map[uint64]throttle.Instant // when they departed, by ID; those that hang, too
	n     int                         // without those that hang
	line  []departure                 // first to last; some are answered
	past  throttle.Instant            // who departed up to here, and is not answered, hangs
	last  throttle.Instant            // when the last one departed
	usual time.Duration               // that an answer takes; zero: none came
}

// A departure is when a call left.
type departure struct {
	id uint64
	at throttle.Instant
}

// lease returns for how long a call that is not answered is counted: four times what
// answers take.
func (u *unheard) lease() time.Duration {
	return min(max(unanswered, 4*u.usual), 10*unanswered)
}

// add counts a call that departs now.
func (u *unheard) add(now throttle.Instant, id uint64) {
	if u.at == nil {
		u.at = make(map[uint64]throttle.Instant)
	}
	u.last = max(u.last, now) // who departs at once may have read the clock in another order
	u.at[id] = u.last
	u.line = append(u.line, departure{id, u.last})
	u.n++
}

// remove counts a call no longer, and reports when it departed; zero: it did not.
func (u *unheard) remove(id uint64) (at throttle.Instant) {
	at = u.at[id]
	delete(u.at, id)
	if at > u.past {
		u.n--
	}
	return at
}

// land takes in that a call was answered.
func (u *unheard) land(now throttle.Instant, id uint64) {
	at := u.remove(id)
	if at == 0 {
		return
	}
	took := now.Sub(at)
	if u.usual == 0 {
		u.usual = took
	}
	u.usual += (took - u.usual) / 8
}

// count returns how many there are, and when there will be one fewer though no answer
// comes; Never: there is none.
func (u *unheard) count(now throttle.Instant) (n int, fewer throttle.Instant) {
	lease := u.lease()
	for ; len(u.line) > 0; u.line = u.line[1:] {
		first := u.line[0]
		switch over := first.at.Add(lease); {
		case u.at[first.id] != first.at: // it was answered
		case over > now:
			return u.n, over
		default:
			u.n--
			u.past = first.at
			u.at[first.id]-- // once, if it was taken back and left again at the same instant
		}
	}
	return 0, throttle.Never
}
