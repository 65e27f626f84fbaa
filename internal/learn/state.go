package learn

// A State is the knowledge of one lane: the common facts, and a machine for each kind of limit. It
// is a bounded value without pointers, and marshals to JSON. It is not safe for concurrent use.
type State struct {
	Setting Setting
	Mode    Mode
	Traffic
	Refusals

	Search
	Places
	Before   Before
	Ceilings [maxCeilings]Ceiling
	Full     int64   // the newest call whose answer reported a full quota, if processes share the lane
	Doubt    int     // readings that contradict the ones before, less those that agree
	Ahead    int64   // numbers beyond one that the next call takes: set before each [State.Plan]
	Cost     float64 // usual numbers of a call; zero: one
}

// New returns the state of a new lane.
func New(set Setting) State {
	return State{Setting: set, Places: Places{Cap: 1}, Search: Search{U: mostWidth}}
}

// Quiet reports whether the fact can be left out: before any refusal, a call was served without a quota while no caller waited.
func (s *State) Quiet(f *Fact) bool {
	return s.Mode == Start && !f.Refused && !f.Waited && len(f.Quotas) == 0 && s.RTT > 0
}
