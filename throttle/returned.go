package throttle

import (
	"cmp"
	"slices"
)

// returned are permits of a bucket that were spent, never left, and can no
// longer shorten the line. Each keeps the instant at which it fell due, and may
// go to who stood in line then, within the tolerance; later it is lost.
// Counted at the instant it is spent again, a permit could be carried forward
// for ever and many leave at once.
type returned []dated

type dated struct {
	at Instant
	n  int64
}

// maxReturned bounds the memory; what comes back beyond it is lost.
const maxReturned = 64

func (r *returned) add(at Instant, n int64) {
	if len(*r) == maxReturned {
		return
	}
	i, _ := slices.BinarySearchFunc(*r, at, func(d dated, at Instant) int { return cmp.Compare(d.at, at) })
	*r = slices.Insert(*r, i, dated{at, n})
}

// first returns the first instant, not before the one in line since, at which
// a cost of n came back; Never where none did. Parts of a cost are not given
// away: a leaky bucket's leave one by one.
func (r returned) first(line Instant, n int64) Instant {
	for _, d := range r {
		if d.at >= line && d.n == n {
			return d.at
		}
	}
	return Never
}

func (r *returned) remove(at Instant, n int64) {
	if i := slices.Index(*r, dated{at, n}); i >= 0 {
		*r = slices.Delete(*r, i, i+1)
	}
}

// expire forgets what is older than the tolerance allows.
func (r *returned) expire(before Instant) {
	stale := 0
	for stale < len(*r) && (*r)[stale].at < before {
		stale++
	}
	*r = slices.Delete(*r, 0, stale)
}
