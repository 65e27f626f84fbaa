package distributed

import (
	"fmt"
	"time"

	"github.com/weirgo/weir/distributed/internal/call"
)

// A Loss says what is enforced while the store does not answer.
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
	DefaultReplicas = call.DefaultReplicas
	// DefaultHorizon is how far a run reaches: short, so that a crash loses little and a new
	// replica waits little.
	DefaultHorizon = 100 * time.Millisecond
	// DefaultDeadline is the shortest deadline of a call.
	DefaultDeadline = 50 * time.Millisecond
	// DefaultMaxDeadline is the longest deadline of a call on a connection in
	// use, however long the round trip.
	DefaultMaxDeadline = 500 * time.Millisecond
	// DefaultFirstDeadline is the deadline of the first call and of probes after a
	// loss, which dial. Callers do not wait for it.
	DefaultFirstDeadline = time.Second
	// DefaultBreakAfter is how many calls in a row fail before the breaker opens.
	DefaultBreakAfter = 3
	// DefaultBreakFor is how long the breaker stays open.
	DefaultBreakFor = 500 * time.Millisecond
	// DefaultLease is longer than processes usually stop and Redis fails over, so that few slots of
	// live processes are lost. It is short enough for callers to wait for the slots of a killed
	// process.
	DefaultLease = 10 * time.Second
)
