package learn

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
