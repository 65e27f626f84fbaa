package call

import "time"

// Settings are a store's settings with their defaults filled in.
type Settings struct {
	Policy        string // for a loss, as logs have it
	FailOpen      bool   // a loss leaves each replica the whole limits
	FailClosed    bool   // a loss rejects all calls; neither: each replica has a share
	Share         float64
	Replicas      int
	Horizon       time.Duration
	Prefetch      time.Duration
	Deadline      time.Duration
	MaxDeadline   time.Duration
	FirstDeadline time.Duration
	BreakAfter    uint32
	BreakFor      time.Duration
	Lease         time.Duration
}

// DefaultReplicas is what a lane for which Redis never answered divides by.
const DefaultReplicas = 100

// Local reports whether a loss leaves each replica a share of the limits.
func (s *Settings) Local() bool { return !s.FailOpen && !s.FailClosed }
