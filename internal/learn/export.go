package learn

import "fmt"

// A Memory is the part of a State that lasts: what is known of the vendor,
// without what goes on at the moment. It holds no instant and no ordinal, so
// another process may go on with it at any time. It marshals to JSON.
type Memory struct {
	Version  int     `json:"version"`
	Rate     float64 `json:"rate,omitempty"`      // permits per second; zero: not known
	Width    float64 `json:"width,omitempty"`     // of the rate, as a share of it
	Period   float64 `json:"period,omitempty"`    // seconds of the vendor's windows; zero: none was seen
	InFlight float64 `json:"in_flight,omitempty"` // calls in flight; zero: not known
}

const (
	memoryVersion = 1                // of the memories that Export makes
	longest       = 31 * 24 * 3600.0 // seconds of the longest window
	// remembered is the least width of a rate that a memory brings. With 0.03, a rate that is a
	// tenth of the vendor's 50/s is left behind within 30 s, and a right one costs four or five
	// refusals in 500 calls. With 0.05 it costs nine.
	remembered = 0.03
)

// Export returns the part that lasts, and false if nothing is sure.
func (s *State) Export() (m Memory, ok bool) {
	m.Version = memoryVersion
	switch {
	case s.sure():
		m.Rate, m.Width, m.Period = max(s.W, s.Whole), s.U, s.P
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

// Import makes a new state go on with a valid memory. A rate is in force at
// once, with half of its search done, so that it is soon left if it is no
// longer the vendor's. A memory that would not hold calls below the configured
// limits is ignored.
func (s *State) Import(m Memory) {
	switch {
	case m.InFlight >= 1:
		if s.Setting.Configured == 0 {
			s.Mode, s.Ceil, s.Cap = Flight, m.InFlight, m.InFlight
		}
	case m.Rate < s.ceiling():
		s.Mode = Rate
		s.W, s.R, s.U, s.X, s.P = m.Rate, m.Rate, max(m.Width, remembered), 1, m.Period
		s.found(s.W)
	}
}
