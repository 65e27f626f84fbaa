package throttle

import (
	"slices"
	"time"
)

// Reconcile implements [Limiter].
func (s *set) Reconcile(now Instant, f Fact) {
	if f == (Fact{}) {
		return
	}
	s.lock()
	defer s.unlock(now)
	if f.Resumed {
		s.resume(now)
	} else {
		s.pause(now, f.Until)
	}
}

// longestPause bounds a pause. Beyond it, instants and calendars end.
const longestPause = 50 * 365 * 24 * time.Hour

// pause prevents departures before until, unless a longer pause runs.
func (s *set) pause(now, until Instant) {
	until = min(until, now.Add(longestPause))
	before := Instant(s.pausedTo.Load())
	if until <= before {
		return
	}
	s.pausedTo.Store(int64(until))
	for _, rule := range s.rules {
		if before <= now {
			rule.sooner(0) // that pause is over
		}
		rule.pause(until)
	}
}

// resume ends the pause that runs, as if it had been meant to end now.
func (s *set) resume(now Instant) {
	until := Instant(s.pausedTo.Load())
	if until <= now {
		return
	}
	s.pausedTo.Store(int64(now))
	for _, rule := range s.rules {
		rule.sooner(until.Sub(now))
		rule.pause(now)
	}
}

// takeOver returns the rule of a limit in the place of an old one; nil means
// that there was none.
func (s *set) takeOver(now Instant, l Limit, old rule) rule {
	rule := newRule(l, s.wall)
	paused := Instant(s.pausedTo.Load())
	if old != nil {
		rule.adopt(now, paused, old)
	}
	if paused > now {
		rule.pause(paused)
	}
	return rule
}

// Tune implements [Limiter].
func (s *set) Tune(now Instant, limits ...Limit) error {
	resolved, err := Resolve(limits...)
	if err != nil {
		return err
	}
	s.lock()
	defer s.unlock(now)
	s.replace(now, resolved)
	return nil
}

// replace puts new limits in the place of the old ones. Used permits stay used.
func (s *set) replace(now Instant, limits []Limit) {
	old, oldLimits := s.rules, s.limits
	s.install(now, limits)
	from := Inherit(oldLimits, limits)
	for i, j := range from {
		var was rule
		if j >= 0 {
			was = old[j]
		}
		if slices.Contains(from[i+1:], j) {
			was = apart(was)
		}
		s.rules[i] = s.takeOver(now, s.enforced[i], was)
	}
}

// Inherit returns, for each new limit, the index of the old limit whose use it takes over. It is -1
// for a new unit. Both lists must be resolved.
//
// A name that a user gave decides. Names made of places change when a list changes. So
// limits without a given name take over by length and algorithm, and then by place. Old
// limits that no given name claims come first.
func Inherit(old, limits []Limit) []int {
	claimed := make([]bool, len(old))
	for j, o := range old {
		claimed[j] = named(old, j) && slices.ContainsFunc(limits, func(l Limit) bool { return l.Name == o.Name && l.Unit == o.Unit })
	}
	heirs := make([]int, len(limits))
	for i := range limits {
		heirs[i] = heir(old, claimed, limits, i)
	}
	return heirs
}

// named reports whether limit i of a list has a name that a user gave.
func named(limits []Limit, i int) bool { return limits[i].Name != placeName(limits, i) }

// heir returns the index of the old limit from which limit i takes over, or -1.
func heir(old []Limit, claimed []bool, limits []Limit, i int) int {
	l, given := limits[i], named(limits, i)
	same := func(o Limit) bool { return o.Per == l.Per && o.Algorithm == l.Algorithm }
	for _, like := range []func(j int, o Limit) bool{
		func(_ int, o Limit) bool { return given && o.Name == l.Name },
		func(j int, o Limit) bool { return !claimed[j] && j == i && same(o) },
		func(j int, o Limit) bool { return !claimed[j] && same(o) },
		func(j int, _ Limit) bool { return !claimed[j] && j == i },
		func(j int, _ Limit) bool { return !claimed[j] },
		func(_ int, o Limit) bool { return same(o) },
		func(int, Limit) bool { return true },
	} {
		for j, o := range old {
			if o.Unit == l.Unit && like(j, o) {
				return j
			}
		}
	}
	return -1
}
