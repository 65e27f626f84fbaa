package learn

import (
	"fmt"

	"github.com/weirgo/weir/throttle"
)

// A Mode says what the learner takes the vendor to count.
type Mode uint8

// The modes.
const (
	Start  Mode = iota // nothing was refused yet: calls in flight grow
	Trial              // perhaps calls in flight: refused calls are tried again with fewer in flight
	Flight             // calls in flight
	Rate               // calls in a time
)

// A Mark is a departure: its ordinal and its instant.
type Mark struct {
	Ordinal int64
	At      throttle.Instant
}

// A State is everything that is known of one lane. It is a bounded value
// without pointers, and marshals to JSON. New makes the state of a lane of
// which nothing is known. It is not safe for concurrent use.
type State struct {
	Setting Setting
	Mode    Mode
	Mute    bool             // the last episode told nothing
	Whole   bool             // this episode began a window, and the one before told nothing
	RTT     float64          // seconds from a departure until its fact is heard, smoothed
	Cut     int64            // refusals of departures up to this ordinal were heard
	Until   throttle.Instant // before which the vendor wants no calls
	Told    throttle.Instant // until then the vendor would have refused: Until, less what may be its rounding
	Last    Mark             // the newest departure heard of
	Pace    [2]Mark          // two older departures, which show the rate at which calls really left

	Places
	Slack float64 // share of the calls that nobody waited for, smoothed

	// Rate.
	R    float64 // permits per second in force
	W    float64 // estimate of the vendor's rate
	U    float64 // width of the estimate, as a share of it
	X    float64 // how far the search is: 0 at W(1-U), 1 at W
	Rise float64 // by how much the last served call raised the logarithm of R
	G    float64 // seconds of the last silence that probes did not cover
	P    float64 // seconds of the vendor's period, as far as it was seen; zero: none was
	B    float64 // calls served before the first refusal: the burst, and what fell due meanwhile

	Wide   float64        // measurements in a row that left the estimate wide
	Marks  [marks]Mark    // a departure for each quarter of the search
	Rates  [marks]float64 // rate in force at each of Marks
	Marked int            // number of Marks

	Pause float64 // seconds of the last silence
	Block float64 // seconds for which a refusal blocks the lane; zero: it does not, as far as is known
	Early float64 // share of refusals that came early in their search, smoothed
	Burst float64 // B at first

	End     Mark // the call whose service ended the last episode; at first, the first departure
	Refused int  // calls refused since End

	// The episode: from a refusal to the first call served that left after it was heard.
	Episode bool
	Probing bool             // one call goes at a time
	Ref     Mark             // the first refused departure
	RefR    float64          // rate in force at it
	Asked   Mark             // the newest refused probe; its Ordinal is zero if there was none
	Gap     float64          // seconds from the last probe to the next
	Next    throttle.Instant // when the next probe goes
	Silence float64          // seconds of the first silence

	Before   Before // others came
	Ceilings [maxCeilings]Ceiling
	Doubt    int     // readings that contradict the ones before, less those that agree
	Blamed   int     // refusals in a row that ceilings explained
	Ahead    int64   // numbers beyond one that the next call takes: see [State.PlanFor]
	Cost     float64 // numbers that a call usually takes; zero: one
}

// New returns the state of a lane of which nothing is known.
func New(set Setting) State {
	return State{Setting: set, Places: Places{Cap: 1}, U: 0.5}
}

// Quiet reports whether the fact can be left out: its call was served while
// nobody waited, it tells no quota, and nothing was learned that it could
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
