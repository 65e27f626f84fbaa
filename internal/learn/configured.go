package learn

import "cmp"

// An owner who configures a limit usually knows the vendor's, more or less. So nothing slows a configured lane
// before its first refusal, whatever quotas are reported: a gateway that reports "0 remaining" on every answer
// must not slow a correct lane. At the first refusal that no quota explains, the vendor's limit is assumed a little below the
// configured one, and measured from there. A learned limit never exceeds the configured one.

const (
	near  = 0.85 // of a configured rate: limits are set too high by a burst, or by a quarter, more often than by half
	above = 1.05 // times a configured rate: the rate in force rises no further, because the limiter caps it. Test "ConfiguredRateIsInForceAgain"
)

// AnyRate is the rate of a [Setting] whose limits name no rate, such as one in tokens or of a day: the vendor's is as unknown
// as without them. It is finite, because a State is sent as JSON, and more than a lane can send.
const AnyRate = 1e12

// believes reports whether the configured limits are assumed to be the vendor's.
func (s *State) believes() bool { return s.configured() && s.Mode == Start && s.Cut == 0 }

// configured reports whether configured limits name a rate.
func (s *State) configured() bool { return s.Setting.Configured > 0 && s.Setting.Configured < AnyRate }

// configuredRate returns the rate that the configured limits allow.
func (s *State) configuredRate() float64 { return cmp.Or(s.Setting.Configured, AnyRate) }
