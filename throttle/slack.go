package throttle

import "math"

// A slack remembers, for a bucket, how far the tat was ahead at the charges so
// far. A charge that turned out too high may be taken back only as far as the
// least of these since: where the tat would have fallen behind, the bucket
// would have been whole, and what it could not have saved is not given back.
type slack struct {
	from Instant // nothing is known of charges up to here
	lows [8]low  // a ring
	head int     // the oldest, modulo the length
	n    int
}

// A low is the least nanoseconds that the tat was ahead of charges up to an
// instant, since the low before.
type low struct {
	at    Instant
	ahead int64
}

// at returns the i-th low, the oldest first.
func (s *slack) at(i int) *low { return &s.lows[uint(s.head+i)%uint(len(s.lows))] }

// note adds a charge. Few lows are kept: a higher one before a lower one never
// counts, and where there are too many the oldest two become one, to the
// stricter side.
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

// after returns the least that the tat was ahead at the charges after at.
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

// lower tells that the tat would have been so much less ahead after at.
func (s *slack) lower(at Instant, by int64) {
	for i := range s.n {
		if l := s.at(i); l.at > at {
			l.ahead -= by
		}
	}
}
