package learn

import (
	"time"

	"github.com/weirgo/weir/throttle"
)

// A vendor's reports may be garbage, old, or mean something else. They are believed while readings agree.

const (
	mostDoubt = 16  // of State.Doubt, at which nothing is believed: a contradiction counts for five, an agreement for one. Style "odd" of the random vendors
	oddly     = 3   // odd readings in a row, of which the last counts: if one in ten is old, two in a row are common
	slower    = 0.7 // factor of a slope that led to a refusal, once in a round trip. TestSlowBucketWithoutResetIsUsed
)

// binds reports whether the ceiling is believed. A vendor that always reports zero says nothing. A lane that
// takes a share also believes readings that contradict each other: others spend as well.
func (t *Ceiling) binds(s *State) bool {
	return t.Key != 0 && !s.off(Reported) && (t.Top >= 1 || t.Flight) && (s.Doubt < mostDoubt || s.Setting.part() < 1) &&
		s.Last.Ordinal-t.Last.Ordinal <= forgotten
}

// blames reports whether a ceiling explains the refusal of f: hardly anything is left. It also corrects a bucket's slope.
func (s *State) blames(f *Fact, now throttle.Instant) (blamed bool) {
	for i := range s.Ceilings {
		t := &s.Ceilings[i]
		left := t.left(now, f.Ordinal)
		if !t.binds(s) || t.flying() || left > max(2, float64(f.Flying)/4) {
			continue
		}
		blamed = true
		switch wait := f.Until.Sub(f.Landed) - time.Second; { // it may be rounded up
		case !t.fills():
		case f.Until.Sub(t.Reset).Abs() <= time.Second && t.Slope*wait.Seconds() >= standing: // a bucket would have a permit sooner: a window ends then
			t.becomeWindow()
		case left < 1 && f.Landed.Sub(t.Cut).Seconds() > s.RTT: // it rises more slowly than believed, or not at all
			t.Slope, t.Blur, t.From, t.Cut = slower*t.Slope, slower*t.Slope, t.Mid, f.Landed
		}
	}
	return blamed
}

func (s *State) contradict() { s.Doubt = min(s.Doubt+5, 2*mostDoubt) }

// odd reports whether a reading says that more is left than before, though the same window still runs, or a bucket is known
// to fill more slowly. It may be an old one, so it counts only if others say so, too. Rows "one in ten stale".
func (t *Ceiling) odd(f *Fact, q *Quota) bool {
	more := q.Remaining + float64(f.Ordinal-int64(max(1, f.Flying))) - t.V
	switch {
	case t.fills() && t.Blur < t.Slope/4:
		return more > t.Slope*f.Departed.Sub(t.Last.At).Seconds()+max(few, t.size()/8)
	case more <= 1:
		return false
	case t.Stands && t.Call <= 1 && f.Departed.Sub(t.Jump.At).Seconds() < shortest: // calls of many tokens see a bucket leap, too
		return true
	}
	// The same reset, still ahead, so the same window: it cannot have an eighth more.
	return more > t.size()/8 && q.HasReset && t.timed() && t.Moves == 0 && t.Reset > f.Landed.Add(rounding) && f.Landed.Add(q.Reset).Sub(t.Reset).Abs() <= rounding
}
