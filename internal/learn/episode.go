package learn

import (
	"time"

	"github.com/weirgo/weir/throttle"
)

// begin begins an episode with the refusal of f. The rate given is the one in
// force when f left.
func (s *State) begin(f *Fact, now throttle.Instant, rate float64) {
	s.Before.refused(s, f)
	if s.Mode == Rate && !s.Setting.Shared && s.crowded(f, f.Ordinal-s.End.Ordinal, now) {
		s.Mode = Trial
		s.try(f)
	}
	if !s.slack() {
		rate = min(rate, 1.1*s.leaving(f))
	}
	rate = max(min(rate, s.ceiling()), 1e-6)
	s.Episode, s.Ref, s.RefR = true, Mark{f.Ordinal, f.Departed}, rate
	s.Asked, s.Gap = Mark{}, 0
	s.Probing = s.W == 0 || s.U > 0.25 || s.Mode == Trial
	if s.W > 0 {
		s.R = min(s.R, s.W*(1-s.U))
		if s.X < 0.25 {
			s.R *= 0.7
		}
	}
	s.probeAfter(now)
}

// probeRefused handles the refusal of a call that left after the episode began.
func (s *State) probeRefused(f *Fact, now throttle.Instant) {
	if s.Mode == Trial && f.alone() && !s.Proven {
		s.ban(now)
		s.toRate()
	}
	s.Probing = true
	if at := (Mark{f.Ordinal, f.Departed}); s.gone(f) {
		s.restart(at)
		s.Ref, s.Asked, s.Gap = at, Mark{}, 0
	} else {
		s.Asked = at
	}
	s.probeAfter(now)
}

// probeAfter sets the instant of the next probe. The first one is quick. If it is
// refused, the next goes when a window ends or a block, as far as that is known.
func (s *State) probeAfter(now throttle.Instant) {
	if s.Gap == 0 {
		s.Gap = max(s.RTT, 1/s.RefR)
	} else {
		s.Gap *= 1.5
	}
	if s.Gap = min(s.Gap, 3600); s.Mode == Flight { // a place is free again when a call ends, and not at the end of a window
		s.Gap = min(s.Gap, max(1, 8*s.RTT))
	}
	s.Next = s.round(now, s.Gap, s.End.At)
	if s.Asked.Ordinal == 0 || s.Mode == Flight {
		return
	}
	if end := s.Ref.At.Add(seconds(0.95 * s.Block)); end > s.Next {
		s.Next, s.Gap = end, max(s.Gap, 0.05*s.Block)
	}
}

// rounds are the lengths that windows have, in seconds.
var rounds = [...]time.Duration{3600, 1800, 900, 600, 300, 120, 60, 30, 15, 10, 5, 2, 1}

// round returns the roundest instant in the last two thirds of the gap. Windows
// end at multiples of their length, by the wall clock or since their first
// call.
func (s *State) round(now throttle.Instant, gap float64, began throttle.Instant) throttle.Instant {
	end := now.Add(seconds(gap))
	if gap < 0.5 || s.off(Round) {
		return end
	}
	begin := now.Add(seconds(gap / 3))
	late := seconds(0.030 + s.RTT/2)
	for _, unit := range rounds {
		unit *= time.Second
		if first := began.Add(unit + late); first >= begin && first <= end {
			return first
		}
		wall := end.Add(-late)
		wall -= wall % throttle.Instant(unit)
		if wall = wall.Add(late); wall >= begin {
			return wall
		}
	}
	return end
}

// end ends the episode, because f was served.
func (s *State) end(f *Fact) {
	s.Episode, s.Probing = false, false
	s.Pace = [2]Mark{{f.Ordinal, f.Departed}, {f.Ordinal, f.Departed}}
	if s.Mode != Rate {
		s.Cap, s.Next, s.Usual = 1, 0, 0
		s.restart(Mark{f.Ordinal, f.Departed})
		s.B = float64(s.Ref.Ordinal)
		return
	}
	s.noteEarly()
	s.conclude(f)
	s.X, s.Marked, s.Rise = 0, 0, 0
	s.Before.over(s, f)
	s.slowly(f)
}

// conclude makes a new estimate of what was counted until f, if it was enough.
func (s *State) conclude(f *Fact) {
	if s.presumed() && !s.gone(f) {
		s.firstNear(f)
		return
	}
	switch {
	case s.gone(f):
		s.restart(Mark{f.Ordinal, f.Departed})
		s.doubt()
	case s.small(f) || s.mute(f):
		s.doubt()
	default:
		s.measure(f)
		s.restart(Mark{f.Ordinal, f.Departed})
	}
	s.R = s.W * (1 - s.U)
}

// gone reports whether nobody called for minutes after the refused could have gone
// again. Then the silence is the callers' own and no measure of the vendor. A caller who
// rests for seconds after each refusal is measured: it has no other measure.
func (s *State) gone(f *Fact) bool {
	if s.off(Gone) {
		return false
	}
	since := f.Departed.Sub(max(s.Ref.At.Add(seconds(s.RTT)), s.Until, s.Next))
	return since > time.Minute && idle(since, s.RefR)
}

// doubt lowers and widens the estimate after a refusal that measured nothing.
func (s *State) doubt() {
	if s.W == 0 {
		s.W = s.RefR
	}
	s.W, s.U = 0.9*s.W, min(max(2*s.U, 0.1), mostWidth)
}

// slowly delays the next call by an interval of the rate, an hour at most, after
// the call that ended the episode: the limiter, which paced probes, would let one
// go at once. A vendor that has one permit then, because it has a burst of one or
// goes on counting its last window, would refuse it.
func (s *State) slowly(f *Fact) {
	if s.off(Slowly) {
		return
	}
	s.Next = f.Departed.Add(seconds(min(1/s.R, 3600)))
}

// presumed reports whether the estimate that was just refused was not measured
// here, and may still be right. It may be if it comes from configured limits.
// It also may be if it comes from a memory, unless calls left much faster than
// it says when one was refused.
func (s *State) presumed() bool {
	return s.W > 0 && s.Silence == 0 && (s.Setting.Configured > 0 || s.RefR < 1.5*s.W)
}

// noteEarly notes whether the refusal came early in its search. If that is
// usual, as it is when strangers share the quota, searches take longer.
func (s *State) noteEarly() {
	early := 0.0
	if s.X < 0.5 {
		early = 1
	}
	if s.W > 0 && s.U < 0.25 {
		s.Early += (early - s.Early) / 8
	}
}

// mute reports whether a window was used up when it had hardly begun, which
// tells nothing of its size. Some vendors go on counting the last window, and
// tell the end of this one. It reports so only once in a row, because the limit
// may have fallen.
func (s *State) mute(f *Fact) bool {
	if s.off(Mute) {
		return false
	}
	n, t := s.count(f), f.Departed.Sub(s.End.At).Seconds()
	told := min(s.Told, f.Departed).Sub(s.Ref.At).Seconds()
	s.Whole = s.Mute
	s.Mute = s.W > 0 && !s.Mute && told > 2 && n < s.W*t/4
	if s.Mute {
		s.P, s.G = max(s.P, told), told
		s.restart(Mark{f.Ordinal, f.Departed})
	}
	return s.Mute
}

// small reports whether too few calls were served since the last measurement to
// tell more than is known already. A count is exact only to one call.
func (s *State) small(f *Fact) bool {
	n := s.count(f)
	silence := f.Departed.Sub(s.Ref.At)
	if s.told() && s.windows() && s.X < 0.25 && s.U < 0.25 && min(s.Told, f.Departed).Sub(s.Ref.At) < silence/2 {
		return true // the silence may be the told time's rounding for the most part
	}
	return s.W > 0 && n < min(16, 0.5/s.U) && silence.Seconds() < max(8/s.W, 4*s.RTT)
}
