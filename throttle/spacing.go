package throttle

// A spacing lets departures out one by one when a window would let many go at
// once, because a change left more at hand. The zero spacing holds nothing.
type spacing struct {
	line  *bucket // a leaky bucket, which may let a burst go first; nil: nothing is held
	until Instant // when it holds nothing any more
}

// spaced returns the spacing of permits evenly between two instants.
func spaced(from, until Instant, permits int64) spacing {
	if permits < 1 || until <= from {
		return spacing{}
	}
	unit, den := reduce(int64(until.Sub(from)), permits)
	line := bucketOf(Limit{Algorithm: AlgorithmLeakyBucket}, pace{unit, den})
	line.tat = point{at: from}
	return spacing{line, until}
}

// spacedChange returns the spacing of the permits at hand after a change, if fewer were
// at hand before it. Those that were at hand go at once, because a change slows
// nothing. The others are let out evenly, because nothing is granted for a change; then
// everything is free. If none was at hand, the first one goes no later than under the
// old rule. Otherwise frequent changes would hold a line back.
func spacedChange(evenly spacing, now Instant, hand int64, before LimitState) spacing {
	had := int64(max(before.Headroom, 0))
	if hand <= had || evenly.line == nil {
		return spacing{}
	}
	p := evenly.line.pace
	line := bucketOf(Limit{Algorithm: AlgorithmLeakyBucket, Burst: int(had)}, p)
	line.tat = point{at: now}
	if had == 0 {
		line.charge(now, 1)
		if next := now.Add(before.Next); next < line.tat.at {
			line.tat = point{at: next}
		}
	}
	return spacing{line, point{at: now}.after(p.times(hand-had), p.den).ceil()}
}

// over reports whether the spacing holds nothing any more.
func (s *spacing) over(now Instant) bool { return s.line == nil || now >= s.until }

// earliest returns when the next request may go, whatever it costs.
func (s *spacing) earliest() Instant {
	if s.line == nil {
		return minInstant
	}
	return min(s.line.earliest(asking{}, 1), s.until)
}

// spend charges n permits.
func (s *spacing) spend(now, charged Instant, n int64) {
	if !s.over(now) {
		s.line.charge(charged, n)
	}
}

// relieve takes back n permits.
func (s *spacing) relieve(n int64) {
	if s.line != nil {
		s.line.tat = s.line.tat.before(s.line.intervals(n), s.line.pace.den)
	}
}

// hand returns how many of the permits at hand may go at once.
func (s *spacing) hand(now Instant, permits int64) int64 {
	if s.over(now) {
		return permits
	}
	return min(permits, max(s.line.burst()-s.line.used(now), 0))
}
