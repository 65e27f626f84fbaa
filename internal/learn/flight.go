package learn

import (
	"time"

	"github.com/weirgo/weir/throttle"
)

// growFlight lets one more call, or half a one, be in flight. A call was served
// while as many were in flight as may be.
func (s *State) growFlight(f *Fact) {
	if float64(f.Flying)*2 < s.Cap {
		return
	}
	step := 0.5
	if s.Cap < 8 {
		step = 1
	}
	if s.Mode == Start {
		s.Cap = min(s.Cap+step, 1<<20)
		return
	}
	if s.Cap < s.Ceil {
		s.Cap = min(s.Cap+step, s.Ceil)
		return
	}
	s.Run++
	switch {
	case s.Mode == Trial && s.Run >= 50:
		s.Mode, s.Run, s.Step = Flight, 0, 0
		s.Before.Rate = 0
	case s.Mode == Flight && (s.Step == 0 && s.Run >= 200 || s.Step > 0 && s.Run >= 50):
		s.Step = max(1, 2*s.Step)
		s.Ceil += s.Step
		s.Cap = s.Ceil
		s.Run = 0
	}
}

// firstRefusal chooses what to take the vendor to count.
func (s *State) firstRefusal(f *Fact, now throttle.Instant) {
	if s.Setting.Configured > 0 {
		s.nearConfigured(f, now)
		return
	}
	if f.Until > 0 || f.Flying < 5 || now < s.Banned || s.Setting.Shared {
		s.toRate()
		s.begin(f, now, s.leaving(f))
		return
	}
	s.Mode, s.Ceil, s.Run, s.Lowered = Trial, float64(f.Flying-1), 0, 0
	s.begin(f, now, s.leaving(f))
	s.Probing = true
}

// toRate begins to look for a rate, of which nothing is known yet.
func (s *State) toRate() {
	s.Mode = Rate
	s.W, s.U, s.X = 0, 0.5, 0
}

// flightRefused handles a refusal while calls in flight are bounded.
func (s *State) flightRefused(f *Fact, now throttle.Instant) {
	if s.Mode == Trial && !f.alone() && s.Lowered < 4 &&
		(s.Lowered < 0 || float64(f.Flying) >= s.Ceil-1 && float64(f.Ordinal-s.End.Ordinal) >= s.Ceil) {
		s.Lowered++
		s.Ceil = max(1, min(s.Ceil-1, float64(f.Flying-1)))
		s.Cap = min(s.Cap, max(1, 0.8*s.Ceil))
		s.Run = 0
		return
	}
	if s.Mode == Trial {
		s.Banned = now.Add(time.Minute)
		s.toRate()
		s.begin(f, now, s.leaving(f))
		return
	}
	if s.Step > 0 && float64(f.Flying) > s.Ceil-s.Step-2 {
		s.Ceil = max(1, s.Ceil-s.Step)
		s.Cap, s.Step, s.Run = s.Ceil, 0, 0
		return
	}
	if f.Flying > 1 && now >= s.Banned {
		s.Mode, s.Ceil, s.Run, s.Step, s.Lowered = Trial, float64(f.Flying-1), 0, 0, -2
		s.begin(f, now, s.leaving(f))
		s.Probing = true
		return
	}
	s.Banned = now.Add(time.Minute)
	s.toRate()
	s.begin(f, now, s.leaving(f))
}

// crammed returns the bound of calls in flight because of which the vendor says that it
// refused f. Zero: it says no such thing, or fewer in flight of this process may not
// help, because a time was told, or processes share the lane.
func (s *State) crammed(f *Fact) (limit float64) {
	if s.Setting.Shared || f.Until > 0 {
		return 0
	}
	for i := range f.Quotas {
		if q := &f.Quotas[i]; q.inFlight() && q.sane() && q.Remaining < 1 && (q.Limit > 1 || !f.alone()) {
			return q.Limit
		}
	}
	return 0
}

// thin lets fewer calls be in flight, because too many were for what the vendor says it
// counts: others use it, too. The first refusal after fifty calls lowers nothing: calls
// overtake each other on the way. If f was alone, the others have all places: one call at
// a time asks whether that is still so, and no rate is learned from it.
func (s *State) thin(f *Fact, limit float64, now throttle.Instant) {
	if s.Mode == Flight && (s.Run >= 50 || s.Step > 0) {
		s.Ceil = min(s.Ceil, limit)
	} else {
		s.Ceil = max(1, float64(f.Flying-1))
	}
	asked := s.Mode == Flight && s.Episode
	s.Mode, s.Run, s.Step = Flight, 0, 0
	switch {
	case !f.alone():
		s.Episode, s.Probing = false, false
	case asked:
		s.probeRefused(f, now)
	default:
		s.begin(f, now, s.leaving(f))
		s.Ceil, s.Probing = 1, true
	}
	s.Cap, s.Before.Rate = s.Ceil, 0
}

// room raises the bound again while the vendor tells that places are left. If half of all
// places are, the others have gone, and half of what is left is used at once. Otherwise
// the bound rises by one in four times as many answers.
func (s *State) room(f *Fact) {
	if s.Mode != Flight || s.Setting.Shared {
		return
	}
	for i := range f.Quotas {
		q := &f.Quotas[i]
		if !q.inFlight() || !q.sane() || q.Remaining < 1 || s.Ceil >= q.Limit {
			continue
		}
		more := s.Ceil + 0.25/s.Ceil
		if q.Remaining >= q.Limit/2 {
			more = max(more, float64(f.Flying)+q.Remaining/2)
		}
		s.Ceil = min(more, q.Limit)
	}
}

// crowded reports whether, for the fourth time in a row, the refused call left
// with as many calls in flight as the one refused before, and with more than
// three of four calls served in between. Then perhaps calls in flight are what
// the vendor counts.
func (s *State) crowded(f *Fact, now throttle.Instant) bool {
	n := int(f.Ordinal - s.End.Ordinal)
	thick := !s.Setting.Shared && f.Until == 0 && f.Flying > 1 && f.Flying >= s.Thick && 4*s.Crowd < n && n >= 8 && now >= s.Banned
	s.Thick = f.Flying
	if !thick {
		s.Crowds = 0
		return false
	}
	s.Crowds++
	return s.Crowds >= 4
}
