package learn

import (
	"fmt"
)

// A State is everything that is known of one lane: the common facts, and a machine for each
// thing that a vendor may limit. It is a bounded value without pointers, and marshals to JSON.
// New makes the state of a lane of which nothing is known. It is not safe for concurrent use.
type State struct {
	Setting Setting
	Mode    Mode
	Traffic
	Refusals

	Search
	Probe
	Places
	Before   Before
	Ceilings [maxCeilings]Ceiling
	Doubt    int     // readings that contradict the ones before, less those that agree
	Ahead    int64   // numbers beyond one that the next call takes: see [State.PlanFor]
	Cost     float64 // numbers that a call usually takes; zero: one
}

// New returns the state of a lane of which nothing is known.
func New(set Setting) State {
	return State{Setting: set, Places: Places{Cap: 1}, Search: Search{U: mostWidth}}
}

// Quiet reports whether the fact can be left out: its call was served while
// no caller waited, it reports no quota, and nothing was learned that it could
// change.
func (s *State) Quiet(f *Fact) bool {
	return s.Mode == Start && !f.Refused && !f.Waited && len(f.Quotas) == 0 && s.RTT > 0
}

// String returns a line that says what was learned.
func (s *State) String() string {
	text := [...]string{"start", "trial", "flight", "rate"}[s.Mode]
	if s.Episode {
		text += " refused"
	}
	text += fmt.Sprintf(" cap %.1f/%.0f R %.4g W %.4g U %.3f X %.2f G %.2f P %.1f", s.Cap, s.Ceil, s.R, s.W, s.U, s.X, s.G, s.P)
	for i := range s.Ceilings {
		if t := &s.Ceilings[i]; t.binds(s) {
			text += fmt.Sprintf(" [%.0f left %.1f slope %.3g±%.3g C %.1f V %.1f gap %.3g", t.Limit, t.left(s.Last.At, s.Last.Ordinal), t.Slope, t.Blur, t.C, t.V, t.Gap)
			if t.Stands {
				text += fmt.Sprintf(" stands P %.3g ends %d moves %d", t.Period, t.Ends, t.Moves)
			}
			if t.Whole {
				text += " whole"
			}
			text += "]"
		}
	}
	return text
}
