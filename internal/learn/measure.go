package learn

import "math"

// A sample is what was counted from the end of one episode to the end of the
// next.
type sample struct {
	n       float64 // calls served
	t       float64 // seconds
	silence float64 // seconds from the first refused departure to the first served one
	probed  float64 // seconds of it in which probes were refused
	first   bool    // no episode came before
	long    bool    // the silence is too long for a bucket
	again   bool    // and as long after the last one as that was after the one before: windows
	block   bool    // and as long as the last one: a block
}

// sample counts up to f, which ended the episode.
func (s *State) sample(f *Fact) sample {
	m := sample{
		n:       max(1, float64(f.Ordinal-s.End.Ordinal)-float64(s.Refused)),
		t:       max(f.Departed.Sub(s.End.At).Seconds(), 1e-6),
		silence: f.Departed.Sub(s.Ref.At).Seconds(),
		first:   s.Silence == 0,
	}
	if s.Asked.Ordinal > 0 {
		m.probed = max(0, s.Asked.At.Sub(s.Ref.At).Seconds())
	}
	before := max(0, float64(s.Ref.Ordinal-s.End.Ordinal-2))
	if m.first {
		s.B, s.Burst, s.Silence = before, before, max(m.silence, 1e-9)
	} else if m.silence > s.Silence/2 && before < s.B {
		s.B = max(0, before-1)
	}
	m.long = s.W > 0 && m.silence > max(8/s.W, 4*s.RTT)
	m.again = s.cycle(m.t, m.long)
	m.block = m.long && !m.again && math.Abs(m.silence-s.Pause) < 0.05*m.silence
	s.Pause = m.silence
	return m
}

// measure makes a new estimate of the sample.
func (s *State) measure(f *Fact) {
	m := s.sample(f)
	lo, hi := s.bracket(m)
	if m.again && m.n >= 16 && lo > 1.5*m.n/m.t { // another, longer limit refused
		return
	}
	if m.probed > 0 {
		most := 1 / m.probed
		if m.long || m.silence > m.t/4 {
			most = m.n / max(1e-6, s.Asked.At.Sub(s.End.At).Seconds())
		}
		hi = max(lo, min(hi, most))
	}
	old, width := s.W, s.U
	s.W = math.Sqrt(lo * hi)
	if old > 0 && width <= 0.25 {
		s.W = max(s.W, old/2)
	}
	u := max((hi-lo)/(hi+lo), leastWidth, 1/(m.n+1))
	if m.first {
		u = max(u, 8/m.n)
	}
	s.U = min(u, mostWidth)
	if !m.first || m.silence > m.t/2 {
		s.period(m)
	}
	s.G = max(0, m.silence-m.probed)
	switch {
	case m.block:
		s.G = m.silence
	case s.Until < s.Ref.At:
		s.G = min(s.G, 0.8)
	}
}

// bracket returns the bounds between which the vendor's rate lies, before the
// probes are considered.
func (s *State) bracket(m sample) (lo, hi float64) {
	lo, hi = max(m.n/m.t, (m.n-s.B)/max(1e-6, m.t-m.silence+m.probed)), s.RefR
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
	if s.Burst >= 8 {
		hi = min(hi, most)
	}
	return min(lo, hi), hi
}

// cycle notes how long it is from the end of one long silence to the next, and
// tells whether it is the same as before: then windows of that length end there.
func (s *State) cycle(t float64, long bool) bool {
	if !long {
		s.Turn = 0
		return false
	}
	again := math.Abs(t-s.Turn) < 0.05*t
	if s.Turn = t; again {
		if math.Abs(t-s.Cycle) > 0.05*t {
			s.Cycle = t
		}
		s.Cycle = min(s.Cycle, t)
	}
	return again
}

// period notes a silence that is too long for a bucket.
func (s *State) period(m sample) {
	switch {
	case m.silence > max(8/s.W, 4*s.RTT):
		if s.P == 0 {
			s.P = min(m.t, 4*m.silence)
		}
		s.P = min(s.P, m.t)
	case m.silence < 2/s.W:
		s.P *= 0.97
	}
}
