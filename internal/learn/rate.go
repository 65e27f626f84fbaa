package learn

import "math"

const (
	leastWidth = 0.015 // of the estimate: with less, searches would take minutes; with more, calls are lost
	mostWidth  = 0.5   // of the estimate: half is all that is known of a rate at first
	mostRise   = 0.22  // of the logarithm of the rate in a round trip: what is in flight when a limit is met is a fifth of it
	marks      = 8     // departures of a search that are kept
)

// search returns how many calls a search for the limit takes.
func (s *State) search() float64 {
	g := min(s.G*min(1, 0.25/s.U), s.U*max(20, 3*s.P, 10*s.Block))
	if s.told() && s.windows() {
		g = max(g, s.U*min(12, 20*s.P*s.U*s.U))
	}
	return s.W / s.U * max(2.35/s.W, 0.045, 0.4*s.RTT, g, s.P*s.U/1.5) * (1 + 2*s.Early) * (1 + max(0, s.Wide-2))
}

// grow raises the rate for a call that was served while somebody waited.
func (s *State) grow(f *Fact) {
	n := s.search()
	s.X = min(s.X+1/n, 40)
	if k := int(s.X * 4); k >= s.Marked {
		s.Marks[k%marks], s.Rates[k%marks] = Mark{f.Ordinal, f.Departed}, s.R
		s.Marked = k + 1
	}
	faster := 5.0
	if s.P*s.W > n/5 {
		faster = 1
	}
	step := s.U * math.Ln2 * math.Exp2(s.X+faster*max(0, s.X-2)) / n
	if s.X > 1.5 && s.P > 0 && s.told() { // for more than a period it served more than it did: the limit rose
		step = max(step, 0.4/(s.R*s.P))
	}
	step = max(step, s.Before.raise(s, f))
	calls := max(1, float64(f.Flying))
	s.Rise = min(step, mostRise/calls)
	s.R *= math.Exp(s.Rise)
	s.R = min(s.R, 1e9, 1.05*s.ceiling())
}
