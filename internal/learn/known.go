package learn

import (
	"fmt"
	"time"

	"github.com/weirgo/weir/throttle"
)

// Hurry doubles the bound of calls in flight before the first refusal, because the calls in flight
// are slow. A vendor that refuses does so at once, so slow calls show no limit.
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

// Met starts a new state with earlier notes: how long an answer takes, the first departure, and two later ones.
func (s *State) Met(took time.Duration, first Mark, pace [2]Mark) {
	s.RTT = max(took.Seconds(), 1e-9)
	s.End, s.Pace, s.Last = first, pace, pace[0]
}

// A Known is what a state knows for certain. The zero value knows nothing.
type Known struct {
	Rate     float64 // the vendor's permits per second; zero: unknown
	InFlight int     // the vendor's calls in flight; zero: unknown
	Reported bool    // from the vendor's reported quotas
	Probing  bool    // one probe at a time is sent
}

const (
	sureWidth   = 0.2  // greatest width of an estimate that people are shown
	surelyRisen = 1.5  // times the estimate: with such a rate in force, the limit has surely risen. Test "KnownIsWhatIsSure"
	settled     = 0.05 // of a slope: its error when it has settled
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

// Settled reports whether one more answer changes little: configured limits are believed, or well-read quotas set the pace.
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

// sure reports whether the estimate of the rate is narrow, and was measured: after a first refusal below configured limits it
// was not. A risen limit is unknown until the next refusal, or forever if the configured limits delay the calls.
func (s *State) sure() bool {
	free := s.R > surelyRisen*s.W || s.R >= s.configuredRate() && s.X > shown
	return s.Mode == Rate && s.W > 0 && s.U <= sureWidth && !free && (!s.Episode || s.Measured)
}

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

// Import makes a new state continue with a valid memory. A rate is in force at once, as when a search has reached its
// estimate, so it soon changes if the vendor's has. A memory whose rate is above the configured limits is ignored.
func (s *State) Import(m Memory) {
	switch {
	case m.InFlight >= 1:
		if !s.configured() {
			s.Mode, s.Ceil, s.Cap = Flight, m.InFlight, m.InFlight
		}
	case m.Rate < s.configuredRate():
		s.Mode = Rate
		s.W, s.R, s.U, s.X, s.P = m.Rate, m.Rate, max(m.Width, remembered), 1, m.Period
		s.found(s.W)
	}
}
