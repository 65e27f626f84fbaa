package learn

// A Mechanism is a part of the learner that can be switched off to measure its worth. Several are a bit set.
type Mechanism uint64

// The mechanisms.
const (
	Covered  Mechanism = 1 << iota // time in which the vendor refused bounds an estimate from above
	Windows                        // a vendor may count in windows
	Trials                         // a vendor may count calls in flight
	Slowly                         // the first call after an episode departs an interval later
	Mute                           // a window that was used up at once measures nothing
	Others                         // an earlier rate is tried again: others have stopped
	Block                          // a refusal may block the lane for a while
	Reported                       // reported quotas bound departures
	Room                           // reported free places are used
	Near                           // the vendor's limit is a little below the configured one
)

func (s *State) off(m Mechanism) bool { return s.Setting.Without&m != 0 }
