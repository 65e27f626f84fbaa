package learn

import "math"

// A sample is what was counted from the end of one episode to the end of the
// next.
type sample struct {
	n       float64 // calls served
	t       float64 // seconds
	silence float64 // seconds from the first refused departure to the first served one
	probed  float64 // seconds of the silence in which probes were refused
	covered float64 // seconds of the silence in which calls were refused, or would have been because a time was told
	told    bool    // a time was told, and no probe was refused
	first   bool    // there was no episode before
	long    bool    // the silence is too long for a bucket
}

// count returns how many of the calls from End to f were served.
func (s *State) count(f *Fact) float64 {
	return float64(f.Ordinal-s.End.Ordinal) - float64(s.Refused)
}

// sample counts up to f, which ended the episode.
func (s *State) sample(f *Fact) sample {
	m := sample{
		n:       max(1, s.count(f)),
		t:       max(f.Departed.Sub(s.End.At).Seconds(), 1e-6),
		silence: f.Departed.Sub(s.Ref.At).Seconds(),
		first:   s.Silence == 0,
	}
	if s.Asked.Ordinal > 0 {
		m.probed = max(0, s.Asked.At.Sub(s.Ref.At).Seconds())
	}
	m.told = s.told() && m.probed == 0
	if m.covered = m.probed; m.told {
		m.covered = max(0, min(s.Told, f.Departed).Sub(s.Ref.At).Seconds())
	}
	before := max(0, float64(s.Ref.Ordinal-s.End.Ordinal-2))
	if m.first {
		if s.Setting.Shared && before < m.n/2 { // it left before ordinals were told, so it seems to be an early one
			before = m.n
		}
		s.B, s.Burst, s.Silence = before, before, max(m.silence, 1e-9)
	} else if m.silence > s.Silence/2 && before < s.B {
		s.B = max(0, before-1)
	}
	m.long = s.W > 0 && m.silence > max(8/s.W, 4*s.RTT)
	s.blocks(m)
	s.Pause = m.silence
	return m
}

// measure makes a new estimate.
func (s *State) measure(f *Fact) {
	m := s.sample(f)
	lo, hi := s.bracket(m)
	if m.covered > 0 && s.X < 3 && !s.slack() && !s.off(Covered) { // if it rose, the vendor would have served more
		most := 1 / m.covered
		if m.long || m.silence > m.t/4 {
			most = m.n / max(1e-6, m.t-m.silence+m.covered)
		}
		if n, rate := s.lastPeriod(); n > 0 && m.told && s.windows() {
			if most = n / (s.P + m.covered); most < rate {
				most = hi // the time that was told is longer than what was overspent: nothing shows the rate but the calls
			}
		}
		// A told time may be longer than what was overspent, so it bounds only a
		// rate that was far too high.
		if m.probed > 0 || m.covered > 1 && m.n >= 8 && (hi > 1.5*most || s.Whole) {
			hi = max(lo, min(hi, most))
		}
	}
	old, width := s.W, s.U
	s.W = math.Sqrt(lo * hi)
	if old > 0 && width <= 0.25 && !s.Whole {
		s.W = max(s.W, old/2)
	}
	if m.first && m.silence < m.t/16 { // callers may have been away for most of the time
		s.W = max(s.W, hi/8)
	}
	s.W = max(s.W, old/4) // a block, or a window that others used up, shows no rate at all
	u := max((hi-lo)/(hi+lo), leastWidth, 1/(m.n+1))
	if m.first { // more may have been served than RefR, which is rough then, would have had served
		u = max(u, 8/m.n, (m.n/m.t-hi)/(m.n/m.t+hi))
	}
	s.U = min(u, mostWidth)
	if s.Wide++; s.U <= 0.25 {
		s.Wide = 0
	}
	if !m.first || m.silence > m.t/2 {
		s.period(m)
	}
	s.G = max(0, m.silence-m.probed)
	if m.told { // a window that was spent too fast lost nothing by it
		s.G = max(0, s.G-max(0, s.P*(1-s.W/s.RefR)))
	}
	switch {
	case s.Block > 0: // a longer silence is an outage, until another is as long
		s.G = min(m.silence, s.Block)
	case !s.told():
		s.G = min(s.G, 0.8)
	}
}

// blocks notes whether a refusal blocks the lane: a silence is as long as the one
// before, as far as probes can tell, and too long for a window of what was served at
// once.
func (s *State) blocks(m sample) {
	if s.off(Block) {
		return
	}
	same := m.long && math.Abs(m.silence-s.Pause) < 0.3*m.silence && s.Burst < s.W*m.silence/4
	switch {
	case same:
		s.Block = m.silence
	case m.silence < 0.7*s.Block:
		s.Block = 0
	}
}

// bracket returns the bounds between which the vendor's rate lies, before
// probes are taken into account.
func (s *State) bracket(m sample) (lo, hi float64) {
	lo, hi = max(m.n/m.t, (m.n-s.B)/max(1e-6, m.t-m.silence+m.covered)), s.RefR
	most := math.Inf(1)
	for _, mark := range s.Marks {
		if mark.Ordinal <= s.End.Ordinal || mark.Ordinal >= s.Ref.Ordinal || s.Ref.At <= mark.At {
			continue
		}
		d := s.Ref.At.Sub(mark.At).Seconds()
		if v := (float64(s.Ref.Ordinal-mark.Ordinal) - s.Burst) / d; v > lo {
			lo, most = v, 1.05*(v+s.Burst/d)
		}
	}
	if s.Burst >= 8 && !s.slack() {
		hi = min(hi, most)
	}
	if s.windows() && s.X >= 0.25 { // earlier than that, it is what is thought of the windows that is wrong
		lo = max(lo, s.kept(m))
	}
	if s.slack() && s.X >= 0.25 { // nothing speaks against what was known
		lo = max(lo, s.W*(1-s.U))
	}
	return min(lo, hi), hi
}

// kept returns the least rate of windows that refused after a search: the one that
// was in force a period before, since it was served for all of a period. If a time
// was told, it is also what was served in that period and in the silence after it.
func (s *State) kept(m sample) float64 {
	n, rate := s.lastPeriod()
	if !m.told {
		return 0.98 * rate
	}
	return max(0.98*rate, n/(s.P+m.covered))
}

// lastPeriod returns how many calls left in the period before the refusal, and the
// rate in force when it began; zeros if the search is younger than that.
func (s *State) lastPeriod() (n, rate float64) {
	var began Mark
	for i, mark := range s.Marks {
		if mark.Ordinal > max(s.End.Ordinal, began.Ordinal) && s.Ref.At.Sub(mark.At).Seconds() >= s.P {
			began, rate = mark, s.Rates[i]
		}
	}
	if rate == 0 {
		return 0, 0
	}
	before := s.Ref.At.Sub(began.At).Seconds() - s.P
	return max(0, float64(s.Ref.Ordinal-began.Ordinal)-rate*before), rate
}

// windows reports whether the vendor counts in windows, as far as is known:
// what it served at once is worth half a period or more. If no time was told,
// periods of two seconds and less are as likely to be probes that came late; if
// limits are configured, the burst is theirs, and shows no such period.
func (s *State) windows() bool {
	if s.off(Windows) {
		return false
	}
	short := s.P > 0 && s.told() && s.Setting.Configured == 0
	return (s.P > 2 || short) && s.Burst >= s.W*s.P/2
}

// told reports whether a time was told with the last refusal.
func (s *State) told() bool { return s.Until > s.Ref.At }

// period notes a silence that is too long for a bucket.
func (s *State) period(m sample) {
	switch {
	case m.silence > max(8/s.W, 4*s.RTT):
		if s.P == 0 {
			s.P = min(m.t, 4*m.silence)
		}
		if m.told && s.windows() && m.covered > m.t/8 && m.t < 1.9*s.P {
			s.P = m.t // the first was not a whole one
		}
		s.P = min(s.P, m.t)
		if m.told { // a told end comes within the window
			s.P = max(s.P, m.covered)
		}
	case m.silence < 2/s.W:
		s.P *= 0.97
	}
}
