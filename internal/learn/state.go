package learn

import (
	"fmt"

	"github.com/weirgo/weir/throttle"
)

// A Mode is what the learner takes the vendor to count.
type Mode uint8

// The modes.
const (
	Start  Mode = iota // nothing was refused yet: calls in flight grow
	Trial              // perhaps calls in flight: what was refused is tried again with fewer
	Flight             // calls in flight
	Rate               // calls in time
)

// A Mark is a departure: its ordinal and its instant.
type Mark struct {
	Ordinal int64
	At      throttle.Instant
}

// A State is all that is known of one lane. It is a value without pointers,
// bounded, and marshals to JSON. The zero State of a Setting is a lane of which
// nothing is known; New makes it.
type State struct {
	Setting Setting
	Mode    Mode
	RTT     float64          // seconds from a departure until its fact is heard, smoothed
	Cut     int64            // refusals of departures up to it were heard
	Until   throttle.Instant // the vendor wants nothing before it
	Told    throttle.Instant // until then it would have refused: Until, less what may be its rounding
	Last    Mark             // the newest departure heard of
	Pace    [2]Mark          // two older departures: the rate at which calls really left

	// Calls in flight.
	Cap     float64          // most calls in flight
	Ceil    float64          // what Cap may grow to, in Trial and Flight
	Thick   int              // calls in flight when the last episode began
	Crowd   int              // calls served since End that left with as many in flight
	Crowds  int              // episodes in a row that began with more in flight than most served calls
	Lowered int              // how often order on the way lowered Ceil in this trial
	Run     int              // answers at the ceiling
	Step    float64          // how far the ceiling was raised last
	Banned  throttle.Instant // until then refusals are no matter of calls in flight

	// Rate.
	R    float64 // permits per second in force
	W    float64 // the estimate of the vendor's rate
	U    float64 // the estimate's width, a share of it
	X    float64 // how far the search is: 0 at W(1-U), 1 at W
	Rise float64 // by how much the last call served raised the logarithm of R
	G    float64 // seconds that the last silence lasted beyond what probes covered
	P    float64 // seconds of the vendor's period, as far as it shows; zero: none
	B    float64 // calls served before the first refusal: the burst, and what came due with it

	Wide   float64        // measures in a row that left the estimate wide
	Marks  [marks]Mark    // the ramp: a departure for each quarter of the search
	Rates  [marks]float64 // the rate in force at each
	Marked int            // how many

	Turn  float64 // seconds between the ends of the last two long silences; zero: the last was none
	Cycle float64 // seconds of the vendor's windows, as two silences agreed; zero: unknown
	Pause float64 // seconds that the last silence lasted
	Early float64 // share of refusals that came early in their search, smoothed
	Mute  bool    // the last episode told nothing
	Whole bool    // it began a window, and the one before told nothing
	Burst float64 // B as it was at first

	End     Mark // the call whose service ended the last episode; at first, the first departure
	Refused int  // calls refused since End

	// The episode: from a refusal to the first call served that left after it was heard.
	Episode bool
	Ref     Mark    // the first refused departure
	RefR    float64 // the rate in force at it
	Probing bool    // one call at a time
	Asked   Mark    // the newest refused probe; its Ordinal is zero if there was none
	Gap     float64 // seconds between the last probe and the next
	Next    throttle.Instant
	Silence float64 // seconds that the first silence lasted

	Tracks [maxTracks]Track
	Blamed int // refusals in a row that tracks explained
}

// New returns the state of a lane of which nothing is known.
func New(set Setting) State {
	return State{Setting: set, Cap: 1, U: 0.5}
}

// Quiet tells whether the fact can be left out: it was served while nobody
// waited, it tells no quota, and nothing was learned that it could change.
func (s *State) Quiet(f *Fact) bool {
	return s.Mode == Start && !f.Refused && !f.Waited && len(f.Quotas) == 0 && s.RTT > 0
}

// String tells in a line what was learned.
func (s *State) String() string {
	text := [...]string{"start", "trial", "flight", "rate"}[s.Mode]
	if s.Episode {
		text += " refused"
	}
	text += fmt.Sprintf(" cap %.1f/%.0f R %.4g W %.4g U %.3f X %.2f G %.2f P %.1f", s.Cap, s.Ceil, s.R, s.W, s.U, s.X, s.G, s.P)
	for i := range s.Tracks {
		if t := &s.Tracks[i]; t.binds(s) {
			text += fmt.Sprintf(" [%.0f left %.1f slope %.3g]", t.Limit, t.left(s.Last.At, s.Last.Ordinal), t.Slope)
		}
	}
	return text
}
