package learn

import (
	"math"

	"github.com/weirgo/weir/throttle"
)

// reserve returns how many permits are kept for calls of others and for
// readings that come late.
func (t *Track) reserve(rtt float64) float64 {
	size := t.size()
	keep := max(3, 0.1*size)
	if t.Slope > 0 {
		keep = max(keep, min(size/3, 0.1*t.Slope), t.Slope*rtt)
	}
	if size < 16 { // it would be too large a share of what a log gives back
		return min(keep, max(0.5, size/10))
	}
	return min(keep, size/2)
}

// pace returns the rate that the track allows, zero for any, and the instant
// before which nothing may leave. If asks is true, that instant is put off
// until a call on its way is answered.
func (t *Track) pace(s *State, now throttle.Instant, granted int64) (rate float64, hold throttle.Instant, asks bool) {
	left, keep := t.left(now, granted), t.reserve(s.RTT)
	if t.Slope > 0 {
		rate = max(t.Slope/2, t.Slope+(left-keep)/s.spell(left > keep))
		if left < 1 {
			hold = now.Add(seconds(min((1-left)/t.Slope, 60)))
		}
		return rate, hold, false
	}
	ahead := t.Reset.Sub(now).Seconds()
	switch {
	case s.Setting.Spread && left >= keep && ahead > 0:
		return left / ahead, 0, false
	case s.Setting.Shared && left >= keep: // others spend before they hear of it
		return max((left-keep)/max(0.05, 4*s.RTT), 1/max(8*s.RTT, 1e-6)), 0, false
	case t.Reset == 0 || left >= keep || t.Held && !s.Setting.Shared: // others do not know yet that the lane waits
		return 0, 0, false
	case ahead <= 0 && left < 1: // an answer will tell
		return 0, now.Add(seconds(2 * s.RTT)), true
	case ahead <= 0:
		return 0, 0, false
	case left < 1 && !t.Whole && granted > t.Base: // one is asking
		return 0, now.Add(seconds(max(0.1, 8*s.RTT))), true
	case left < 1 && !t.Whole && ahead > t.patience(s.RTT): // perhaps it is no window
		return 0, t.At.Add(seconds(t.patience(s.RTT))), false
	case left < 1:
		return 0, min(t.Reset.Add(seconds(max(0.020, s.RTT/2))), now.Add(seconds(3600))), false
	case !t.Whole: // perhaps it is no window: each of the last tells more
		gap := 8 * s.RTT * math.Pow(4, keep-left)
		return 1 / min(gap, ahead/left), 0, false
	}
	return left / ahead, 0, false
}

// spell returns in how many seconds a level is brought to its reserve. Processes that
// share a lane spend what is above it slowly, because they act on what each of them
// heard last.
func (s *State) spell(above bool) float64 {
	if above && s.Setting.Shared {
		return max(0.2, 4*s.RTT)
	}
	return max(0.05, 4*s.RTT)
}

// patience returns the seconds after which a told end is doubted: eight round
// trips, and four times as long after each refusal that proved the end right.
func (t *Track) patience(rtt float64) float64 { return 8 * rtt * math.Pow(4, float64(t.Asked)) }

// blames reports whether a track explains the refusal of f. Tracks that said
// enough was left lose trust, unless the refusal tells of others alone.
func (s *State) blames(f *Fact, now throttle.Instant) bool {
	blamed := false
	for i := range s.Tracks {
		t := &s.Tracks[i]
		if !t.binds(s) || t.rough(s) || t.Slope == 0 && t.Reset == 0 {
			continue
		}
		switch left := t.left(now, f.Ordinal); {
		case left <= max(2, float64(f.Flying)/4):
			blamed, t.Strikes = true, 0
			if t.Full > coarse || f.Flying <= 1 {
				t.Asked = min(t.Asked+1, 10)
			}
			// If calls left faster all the while, it is the level that is wrong.
			t.Slope = min(t.Slope, max(0.9*t.Slope, s.pace(f)/4))
		case left > max(3, float64(f.Flying), t.Limit/4) && (len(f.Quotas) == 0 || t.Last.Ordinal == f.Ordinal):
			t.Strikes++
		}
	}
	return blamed
}

// plenty returns by how much the logarithm of the rate in force may rise at once: not at
// all unless all trusted tracks say that at least half is left, and that at this rate it
// lasts as long as the window does. If it lasts twice as long by all of them, the estimate
// is far too low. Tracks that said so when a call was refused are not asked.
func (s *State) plenty(f *Fact) float64 {
	step := 0.0
	for i := range s.Tracks {
		t := &s.Tracks[i]
		if t.Key == 0 || t.Liar || t.Last.Ordinal != f.Ordinal {
			continue
		}
		if !t.binds(s) || t.flying() || t.rough(s) || !t.ample(s, f, 1) {
			return 0
		}
		if !t.ample(s, f, 2) {
			step = 0.05
		} else if step == 0 {
			step = mostRise
		}
	}
	return step
}

// ample reports whether at least half is left, and so much that the rate in force may be
// so many times as high. A window of which no end is told lasts as long as the vendor's
// period.
func (t *Track) ample(s *State, f *Fact, times float64) bool {
	left, rest := t.left(f.Departed, f.Ordinal), max(t.Reset.Sub(f.Departed).Seconds(), s.P)
	if left < max(3, t.Limit/2) {
		return false
	}
	if t.Slope > 0 {
		return times <= 1 || t.Slope >= times*s.R
	}
	return left >= times*s.R*rest && (times <= 1 || rest > 0)
}
