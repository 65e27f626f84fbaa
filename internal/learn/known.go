package learn

import (
	"time"

	"github.com/weirgo/weir/throttle"
)

// Hurry raises the bound of calls in flight while nothing was refused, because
// those that fly are slow: slow is neither good nor bad, and a vendor that refuses
// does so at once.
func (s *State) Hurry() {
	if s.Mode == Start {
		s.Cap = min(s.Cap*2, 1<<20)
	}
}

// Resume ends what the vendor told: calls may leave from now on.
func (s *State) Resume(now throttle.Instant) {
	s.Until, s.Next = min(s.Until, now), min(s.Next, now)
}

// Met gives a new state what was noted before it was needed: how long an answer
// takes, the first departure and two later ones.
func (s *State) Met(took time.Duration, first Mark, pace [2]Mark) {
	s.RTT = max(took.Seconds(), 1e-9)
	s.End, s.Pace, s.Last = first, pace, pace[1]
}

// A Known is what a state is sure of. The zero value says that it is of nothing.
type Known struct {
	Rate     float64 // the vendor's permits per second; zero: not known
	InFlight int     // its calls in flight; zero: not known
	Told     bool    // its own quotas say so
	Probing  bool    // one call at a time asks whether it serves again
}

// sureWidth is the width of an estimate that is told to people.
const sureWidth = 0.2

// Known returns what the state is sure of under its plan.
func (s *State) Known(p Plan) Known {
	for i := range s.Tracks {
		t := &s.Tracks[i]
		switch {
		case !p.Bounded || !t.binds(s):
		case t.Slope > 0:
			return Known{Rate: t.Slope, Told: true, Probing: p.Probe}
		case t.Window > 0:
			return Known{Rate: t.Limit / t.Window, Told: true, Probing: p.Probe}
		}
	}
	k := Known{Probing: p.Probe}
	switch {
	case s.Mode == Flight && !s.Episode:
		k.InFlight = int(s.Ceil)
	case s.sure():
		k.Rate = s.W
	}
	return k
}

// sure tells whether the estimate of the rate is narrow, and not that of a first
// refusal beside configured limits, which nobody measured.
func (s *State) sure() bool {
	return s.Mode == Rate && s.W > 0 && s.U <= sureWidth && (!s.Episode || s.Silence > 0)
}
