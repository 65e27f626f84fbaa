package throttle

import "math"

// A slack remembers, for a bucket, how far the tat was ahead of the clock at
// each charge. When a charge turns out too high, the tat may move back by no
// more than the least of these since. Moved back further, the tat would have
// fallen behind the clock at that charge. The bucket would have been whole
// then, and cannot have saved the difference.
//
//	burst 10 at 1/s, 8 taken at 0 s: the tat is 8 s ahead
//	1 taken at 6 s: the tat is 2 s ahead just before
//	settled, the first 8 were 1: 7 too many, but the tat moves back by 2 s only
type slack struct {
	from Instant // nothing is known of charges up to this instant
	lows [8]low  // a ring
	head int     // index of the oldest, modulo the length
	n    int
}

// A low is the least that the tat was ahead, in nanoseconds, at the charges
// from the low before up to an instant.
type low struct {
	at    Instant
	ahead int64
}

// at returns the i-th low. The oldest is the first.
func (s *slack) at(i int) *low { return &s.lows[uint(s.head+i)%uint(len(s.lows))] }

// note adds a charge. A low is dropped when a lower one follows, because only
// the least counts. If there are too many, the two oldest become one, which
// keeps the lower value.
func (s *slack) note(at Instant, ahead int64) {
	for s.n > 0 && s.at(s.n-1).ahead >= ahead {
		s.n--
		at = max(at, s.at(s.n).at)
	}
	if s.n > 0 {
		at = max(at, s.at(s.n-1).at)
	}
	if s.n == len(s.lows) {
		s.at(1).ahead = min(s.at(0).ahead, s.at(1).ahead)
		s.head++
		s.n--
	}
	*s.at(s.n) = low{at, ahead}
	s.n++
}

// after returns the least that the tat was ahead at the charges after an
// instant.
func (s *slack) after(at Instant) int64 {
	if at <= s.from {
		return 0
	}
	least := int64(math.MaxInt64)
	for i := range s.n {
		if l := s.at(i); l.at > at {
			least = min(least, l.ahead)
		}
	}
	return max(least, 0)
}

// lower says that the tat would have been less ahead, by that much, at the
// charges after an instant.
func (s *slack) lower(at Instant, by int64) {
	for i := range s.n {
		if l := s.at(i); l.at > at {
			l.ahead -= by
		}
	}
}
