package learn

import (
	"time"

	"github.com/weirgo/weir/throttle"
)

// Hurry doubles the bound of calls in flight before the first refusal, because the calls in flight
// are slow. Slowness is neither good nor bad: a vendor that refuses does so at once.
func (s *State) Hurry() {
	if s.Mode == Start {
		s.Cap = min(s.Cap*2, 1<<20)
	}
}

// Resume ends the wait that the vendor asked for: calls may depart from now on. If a quota holds
// them all, often until its reset, one departs, and its answer says what is left.
func (s *State) Resume(now throttle.Instant, granted int64) {
	s.Until, s.Next = min(s.Until, now), min(s.Next, now)
	for i := range s.Ceilings {
		t := &s.Ceilings[i]
		if _, hold, asks := t.pace(s, now, granted); hold > now && !asks && !t.flying() && !t.fills() {
			t.C = float64(granted) + t.readers(s) + 1
		}
	}
}

// Met gives a new state the notes from before it was needed: how long an answer takes, the first
// departure, and two later ones.
func (s *State) Met(took time.Duration, first Mark, pace [2]Mark) {
	s.RTT = max(took.Seconds(), 1e-9)
	s.End, s.Pace, s.Last = first, pace, pace[0]
}

// A Known is the certain knowledge of a state. The zero value is empty.
type Known struct {
	Rate     float64 // the vendor's permits per second; zero: unknown
	InFlight int     // the vendor's calls in flight; zero: unknown
	Reported bool    // from the vendor's reported quotas
	Probing  bool    // one probe at a time is sent
}

const (
	sureWidth = 0.2  // greatest width of an estimate that people are shown
	risen     = 1.5  // times the estimate: with such a rate in force, the limit has surely risen. Test "KnownIsWhatIsSure"
	settled   = 0.05 // of a slope: its error when it has settled
)

// Known returns the certain knowledge of the state under its plan.
func (s *State) Known(p Plan) Known {
	for i := range s.Ceilings {
		t := &s.Ceilings[i]
		switch {
		case !p.Bounded || !t.binds(s):
		case t.Slope > 0:
			return Known{Rate: t.Slope, Reported: true, Probing: p.Probe}
		case t.Window > 0 && t.Limit > 0:
			return Known{Rate: t.Limit / t.Window, Reported: true, Probing: p.Probe}
		}
	}
	k := Known{Probing: p.Probe}
	switch {
	case s.Mode == Flight && !s.Episode:
		k.InFlight = int(s.Ceil)
	case s.sure():
		k.Rate = max(s.W, s.Whole)
	}
	return k
}

// Settled reports whether a further served answer changes little: the configured limits are
// believed, or reported quotas set the plan's pace and have been read often.
func (s *State) Settled(p Plan) bool {
	if s.believes() {
		return true
	}
	for i := range s.Ceilings {
		if t := &s.Ceilings[i]; t.binds(s) && t.Slope > 0 && t.Blur > settled*t.Slope {
			return false
		}
	}
	return p.Bounded
}

// sure reports whether the estimate of the rate is narrow, and was measured. After a first refusal
// below configured limits it was not. A risen limit is unknown until the next refusal, or forever
// if the configured limits now delay the calls.
func (s *State) sure() bool {
	free := s.R > risen*s.W || s.R >= s.ceiling() && s.X > 3
	return s.Mode == Rate && s.W > 0 && s.U <= sureWidth && !free && (!s.Episode || s.Measured)
}
