package distributed

import "github.com/weirgo/weir/throttle"

// Promised tells the tests of fleets when a permit was due, by the clock of
// Redis, that the limiter charged at an instant of the queue's; and whether it
// was granted here instead, under the policy for a loss.
func Promised(of throttle.Limiter, charged throttle.Instant) (at throttle.Instant, local bool) {
	l := of.(*limiter)
	l.mu.Lock()
	defer l.mu.Unlock()
	if isLocal(charged) {
		return charged, true
	}
	micros, _ := l.clock.there(charged)
	return instantOf(micros), false
}
