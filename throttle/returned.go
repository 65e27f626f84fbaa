package throttle

import (
	"cmp"
	"slices"
)

// A returned holds permits of a bucket that were granted, not used, and given
// back too late to move the state back. Each keeps the instant at which it fell
// due. A caller who was in line at that instant may have it, within the
// tolerance; after that it is lost. If it counted at the instant at which it is
// spent again, it could be carried forward for ever, and many could leave at
// once.
type returned []dated

// A dated is a cost that came back, with the instant at which it fell due.
type dated struct {
	at Instant
	n  int64
}

// maxReturned bounds the memory. Further returned costs are lost.
const maxReturned = 64

// add adds a cost, in the order of instants.
func (r *returned) add(at Instant, n int64) {
	if len(*r) == maxReturned {
		return
	}
	i, _ := slices.BinarySearchFunc(*r, at, func(d dated, at Instant) int { return cmp.Compare(d.at, at) })
	*r = slices.Insert(*r, i, dated{at, n})
}

// first returns the first instant, not before line, at which a cost of exactly
// n came back, or Never if there is none. A part of a cost is not given away,
// because the permits of a leaky bucket leave one by one.
func (r returned) first(line Instant, n int64) Instant {
	for _, d := range r {
		if d.at >= line && d.n == n {
			return d.at
		}
	}
	return Never
}

// remove removes a cost that is spent again.
func (r *returned) remove(at Instant, n int64) {
	if i := slices.Index(*r, dated{at, n}); i >= 0 {
		*r = slices.Delete(*r, i, i+1)
	}
}

// expire drops costs that fell due before an instant.
func (r *returned) expire(before Instant) {
	stale := 0
	for stale < len(*r) && (*r)[stale].at < before {
		stale++
	}
	*r = slices.Delete(*r, 0, stale)
}
