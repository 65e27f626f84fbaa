package throttle

// A spacing lets departures out one by one where a window would let many go at
// once: after a pause, and after a change that left more at hand. The zero
// spacing holds nothing.
type spacing struct {
	line  *bucket // nil: nothing
	until Instant
}

// spaced returns the spacing of so many permits evenly over a span of time.
func spaced(from, until Instant, permits int64) spacing {
	if permits < 1 || until <= from {
		return spacing{}
	}
	unit, den := reduce(int64(until.Sub(from)), permits)
	line := bucketOf(Limit{Algorithm: AlgorithmLeakyBucket}, pace{unit, den})
	line.tat = point{at: from}
	return spacing{line, until}
}

// spacedChange returns the spacing of the permits at hand where the rule before
// left fewer: nothing is granted for a change. Where it left none, the first
// goes no later than that rule would have let it, so that changing often never
// holds a line back.
func spacedChange(now, until Instant, hand int64, old rule) spacing {
	before := old.state(now)
	if float64(hand) <= before.Headroom {
		return spacing{}
	}
	s := spaced(now, until, hand)
	if before.Headroom < 1 && s.line != nil {
		s.line.charge(now, 1)
		if before.Next < s.line.tat.at {
			s.line.tat = point{at: before.Next}
		}
	}
	return s
}

func (s *spacing) over(now Instant) bool { return s.line == nil || now >= s.until }

func (s *spacing) earliest(a asking, n int64) Instant {
	if s.line == nil {
		return minInstant
	}
	return min(s.line.earliest(a, n), s.until)
}

func (s *spacing) spend(now, charged Instant, n int64) {
	if !s.over(now) {
		s.line.charge(charged, n)
	}
}

// hand returns how many of the permits at hand may go at once.
func (s *spacing) hand(now Instant, permits int64) int64 {
	switch {
	case s.over(now):
		return permits
	case s.line.whole(now):
		return min(permits, 1)
	default:
		return min(permits, 0)
	}
}
