package learn

import "fmt"

// A Memory is what lasts of a State: what is known of the vendor, without what
// goes on at the moment. It tells no instant and no ordinal, so another process
// may go on with it at any time.
type Memory struct {
	Version  int     `json:"version"`
	Rate     float64 `json:"rate,omitempty"`      // permits per second; zero: not known
	Width    float64 `json:"width,omitempty"`     // of the rate, a share of it
	Period   float64 `json:"period,omitempty"`    // seconds of the vendor's windows; zero: none showed
	InFlight float64 `json:"in_flight,omitempty"` // calls in flight; zero: not known
}

// memoryVersion is that of a Memory made here.
const memoryVersion = 1

const (
	// remembered is the least width of a rate that goes on: the vendor's may be
	// another by now, and a search takes 2.2 calls over the width. With 0.03 a rate
	// that is a tenth of the vendor's 50/s is left behind within 30 s, and a right
	// one costs four or five refusals in 500 calls; with 0.05 it costs nine.
	remembered = 0.03
	longest    = 31 * 24 * 3600.0 // seconds of a window
)

// Export returns what lasts; false if nothing is sure.
func (s *State) Export() (m Memory, ok bool) {
	m.Version = memoryVersion
	switch {
	case s.sure():
		m.Rate, m.Width, m.Period = s.W, s.U, s.P
	case s.Mode == Flight:
		m.InFlight = s.Ceil
	default:
		return Memory{}, false
	}
	return m, true
}

// Validate returns an error if the memory is of another version, or is garbage.
func (m *Memory) Validate() error {
	if m.Version != memoryVersion {
		return fmt.Errorf("version %d, want %d", m.Version, memoryVersion)
	}
	for _, v := range [...]struct {
		name        string
		value, most float64
	}{
		{"rate", m.Rate, 1e9}, {"width", m.Width, mostWidth},
		{"period", m.Period, longest}, {"in_flight", m.InFlight, 1 << 20},
	} {
		if !(v.value >= 0 && v.value <= v.most) { // not a number is neither
			return fmt.Errorf("%s %v is not between 0 and %v", v.name, v.value, v.most)
		}
	}
	if (m.Rate >= 1e-6) == (m.InFlight >= 1) {
		return fmt.Errorf("rate %v and in_flight %v, want one of them", m.Rate, m.InFlight)
	}
	return nil
}

// Import makes a new state one that goes on with a valid memory. A rate begins in
// force, with half of its search done: it is left soon if it is not the vendor's
// any more. A memory that does not restrain the configured limits is left out.
func (s *State) Import(m Memory) {
	switch {
	case m.InFlight >= 1:
		if s.Setting.Configured == 0 {
			s.Mode, s.Ceil, s.Cap = Flight, m.InFlight, m.InFlight
		}
	case m.Rate < s.ceiling():
		s.Mode = Rate
		s.W, s.R, s.U, s.X, s.P = m.Rate, m.Rate, max(m.Width, remembered), 1, m.Period
	}
}
