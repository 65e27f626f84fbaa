package learn

import (
	"math"

	"github.com/weirgo/weir/throttle"
)

// An owner who configures a limit usually knows the vendor's, more or less. So
// nothing holds a configured lane back before its first refusal, whatever quotas
// are told: a gateway that says "0 remaining" on every answer must not slow a lane
// that is right. At the first refusal the vendor's limit is taken to be a little
// below the configured one, and measured from there. What is learned never exceeds
// what is configured.

// near is the share of a configured rate at which the vendor's rate is looked
// for first. Limits are set too high by a burst, or by a quarter, more often
// than by half.
const near = 0.85

// believes reports whether the configured limits are taken for the vendor's.
func (s *State) believes() bool { return s.Setting.Configured > 0 && s.Mode == Start && s.Cut == 0 }

// ceiling returns the rate that the configured limits allow.
func (s *State) ceiling() float64 {
	if s.Setting.Configured > 0 {
		return s.Setting.Configured
	}
	return math.Inf(1)
}

// nearConfigured handles the first refusal of a configured lane.
func (s *State) nearConfigured(f *Fact, now throttle.Instant) {
	rate := s.ceiling()
	if math.IsInf(rate, 1) {
		rate = s.leaving(f)
	}
	s.toRate()
	s.W, s.U = near*rate, 1-near
	s.R = s.W
	s.begin(f, now, s.leaving(f))
}

// firstNear ends the first episode of a lane that is configured, or that goes
// on with a [Memory]. Calls that left long ago, at another rate or while the
// vendor's bucket was full, tell nothing of the limit. The burst is that of the
// configured limits.
func (s *State) firstNear(f *Fact) {
	s.Silence = max(1e-9, f.Departed.Sub(s.Ref.At).Seconds())
	s.B, s.Burst = s.Setting.Burst, s.Setting.Burst
	s.restart(Mark{f.Ordinal, f.Departed})
	s.R = s.W * (1 - s.U)
}
