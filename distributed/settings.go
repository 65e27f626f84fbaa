package distributed

import (
	"cmp"
	"fmt"
	"time"

	"github.com/weirgo/weir/distributed/internal/script"
)

// A Loss says what holds while the store does not answer.
type Loss uint8

// The policies for a loss.
const (
	// FailLocal paces here at a share of the limits: Store.Share of them,
	// divided by the replicas, see Store.Replicas. Of limits of more than a
	// minute the same share of what was left may go at once. It is the zero policy.
	FailLocal Loss = iota
	// FailOpen enforces the whole limits here: the vendor may see them once
	// for each replica.
	FailOpen
	// FailClosed refuses with ErrUnavailable.
	FailClosed
)

// String returns "local", "open" or "closed".
func (l Loss) String() string {
	switch l {
	case FailLocal:
		return "local"
	case FailOpen:
		return "open"
	case FailClosed:
		return "closed"
	default:
		return fmt.Sprintf("loss(%d)", uint8(l))
	}
}

// The defaults of a Store's settings.
const (
	// DefaultShare leaves half of the limits unused while replicas cannot see
	// each other, for those that still can.
	DefaultShare = 0.5
	// DefaultReplicas is what a lane for which the store never answered divides by:
	// few fleets that share one quota are larger.
	DefaultReplicas = 100
	// DefaultHorizon is how far a run reaches: short enough that what a crash
	// loses, and a newcomer waits for, is little.
	DefaultHorizon = 100 * time.Millisecond
	// DefaultDeadline is the shortest deadline of a call.
	DefaultDeadline = 50 * time.Millisecond
	// DefaultMaxDeadline is the longest deadline of a call on a connection in
	// use, however long the round trip.
	DefaultMaxDeadline = 500 * time.Millisecond
	// DefaultFirstDeadline is the deadline of the first call and of probes after a
	// loss, which dial. Callers do not wait for it.
	DefaultFirstDeadline = time.Second
	// DefaultBreakAfter is how many calls in a row fail before the store is
	// asked no more for a while.
	DefaultBreakAfter = 3
	// DefaultBreakFor is that while.
	DefaultBreakFor = 500 * time.Millisecond
	// DefaultLease is longer than processes stand still and Redis fails over, so that
	// few slots are lost to those that live; and short enough for callers to wait
	// until the slots of a process that was killed come back.
	DefaultLease = 10 * time.Second
)

// settings are a store's settings with their defaults filled in.
type settings struct {
	onLoss        Loss
	share         float64
	replicas      int
	horizon       time.Duration
	prefetch      time.Duration
	deadline      time.Duration
	maxDeadline   time.Duration
	firstDeadline time.Duration
	breakAfter    uint32
	breakFor      time.Duration
	lease         time.Duration
}

// settings returns an error that names the field that makes no sense.
func (s *Store) settings() (settings, error) {
	set := settings{
		onLoss:        s.OnLoss,
		share:         cmp.Or(s.Share, DefaultShare),
		replicas:      s.Replicas,
		horizon:       cmp.Or(s.Horizon, DefaultHorizon),
		prefetch:      s.Prefetch,
		deadline:      cmp.Or(s.Deadline, DefaultDeadline),
		maxDeadline:   cmp.Or(s.MaxDeadline, DefaultMaxDeadline),
		firstDeadline: cmp.Or(s.FirstDeadline, DefaultFirstDeadline),
		breakAfter:    uint32(cmp.Or(s.BreakAfter, DefaultBreakAfter)),
		breakFor:      cmp.Or(s.BreakFor, DefaultBreakFor),
		lease:         cmp.Or(s.Lease, DefaultLease),
	}
	set.maxDeadline = max(set.maxDeadline, set.deadline)
	set.firstDeadline = max(set.firstDeadline, set.deadline)
	switch {
	case s.OnLoss > FailClosed:
		return set, fmt.Errorf("distributed: unknown OnLoss %v", s.OnLoss)
	case s.Replicas < 0:
		return set, fmt.Errorf("distributed: Replicas %d is negative", s.Replicas)
	case !(set.share > 0 && set.share <= 1):
		return set, fmt.Errorf("distributed: Share %v is not above 0 and at most 1", s.Share)
	case s.Lease > script.LongestPause:
		return set, fmt.Errorf("distributed: Lease %v is above %v", s.Lease, script.LongestPause)
	case s.BreakAfter < 0:
		return set, fmt.Errorf("distributed: BreakAfter %d is negative", s.BreakAfter)
	}
	for name, d := range map[string]time.Duration{
		"Horizon": s.Horizon, "Prefetch": s.Prefetch, "Deadline": s.Deadline, "MaxDeadline": s.MaxDeadline,
		"FirstDeadline": s.FirstDeadline, "BreakFor": s.BreakFor, "Lease": s.Lease,
	} {
		if d < 0 {
			return set, fmt.Errorf("distributed: %s %v is negative", name, d)
		}
	}
	return set, nil
}
