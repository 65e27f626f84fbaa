package learn

import (
	"fmt"
	"time"
)

// A Memory is the lasting part of a State: the knowledge of the vendor, without current events. It contains no
// instant and no ordinal, so another process may use it at any time. It marshals to JSON.
type Memory struct {
	Version  int     `json:"version"`
	Rate     float64 `json:"rate,omitempty"`      // permits per second; zero: unknown
	Width    float64 `json:"width,omitempty"`     // of the rate, as a share of it
	Period   float64 `json:"period,omitempty"`    // seconds of the vendor's windows; zero: none seen
	InFlight float64 `json:"in_flight,omitempty"` // calls in flight; zero: not known
}

const (
	memoryVersion = 1 // of the memories that Export makes
	longest       = float64(longestReset / time.Second)
	// remembered is the least width of an imported rate. With 0.03, a rate of a tenth of the vendor's 50/s is
	// corrected within 30 s. A right one costs four or five refusals in 500 calls. With 0.05 it costs nine.
	remembered = 0.03
)

// Export returns the lasting part, and false if nothing is certain.
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

// Validate returns an error for a memory of another version, or an invalid one.
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
		if !(v.value >= 0 && v.value <= v.most) { // also rejects NaN
			return fmt.Errorf("%s %v is not between 0 and %v", v.name, v.value, v.most)
		}
	}
	if (m.Rate >= 1e-6) == (m.InFlight >= 1) {
		return fmt.Errorf("rate %v and in_flight %v, want one of them", m.Rate, m.InFlight)
	}
	return nil
}

// Import makes a new state continue with a valid memory. A rate is in force at once, as at the end of
// a search, so that it soon changes if it is no longer the vendor's. A memory whose rate is
// above the configured limits is ignored.
func (s *State) Import(m Memory) {
	switch {
	case m.InFlight >= 1:
		if !s.configured() {
			s.Mode, s.Ceil, s.Cap = Flight, m.InFlight, m.InFlight
		}
	case m.Rate < s.ceiling():
		s.Mode = Rate
		s.W, s.R, s.U, s.X, s.P = m.Rate, m.Rate, max(m.Width, remembered), 1, m.Period
		s.found(s.W)
	}
}
