package learn

import "github.com/weirgo/weir/throttle"

// observed returns the state after one more answer. It does not change s.
func observed(s State, f *Fact, now throttle.Instant) State {
	s.Observe(f, now)
	return s
}
