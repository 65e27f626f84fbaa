package learn

import "slices"

// A Mechanism is a part of the learner that can be switched off, so that what it is worth
// can be measured. Several are a bit set.
type Mechanism uint64

// The mechanisms.
const (
	Covered  Mechanism = 1 << iota // time in which the vendor refused bounds an estimate from above
	Windows                        // a vendor may count in windows
	Trials                         // a vendor may count calls in flight
	Slowly                         // the first call after an episode goes an interval later
	Mute                           // a window that was used up at once measures nothing
	Others                         // a rate from before is tried again: others have gone
	Round                          // probes go at round instants
	Block                          // a refusal may block the lane for a while
	Reported                       // what answers report to be left bounds what leaves
	Room                           // places that are reported to be free are used
	Near                           // the vendor's limit is a little below the configured one
)

var mechanisms = [...]string{
	"covered", "windows", "trial", "slowly", "mute", "before", "round", "block",
	"reported", "room", "near",
}

// Mechanisms returns the names of all mechanisms.
func Mechanisms() []string { return slices.Clone(mechanisms[:]) }

// MechanismNamed returns the mechanism of a name, and zero if there is none.
func MechanismNamed(name string) Mechanism {
	i := slices.Index(mechanisms[:], name)
	if i < 0 {
		return 0
	}
	return 1 << i
}

// off reports whether a mechanism is switched off.
func (s *State) off(m Mechanism) bool { return s.Setting.Without&m != 0 }
