package weirtest

import (
	"time"

	"github.com/weirgo/weir/internal/testserver"
)

// A Limit is one rule that a [Vendor] enforces. Make one with [TokenBucket],
// [FixedWindow], [SlidingLog] or [InFlight]. The zero Limit is not valid.
type Limit struct{ rule testserver.Limit }

// TokenBucket returns a bucket that begins full with burst permits and gains
// permits evenly in each per. It panics unless all three are positive, and burst
// times per is less than 292 years.
func TokenBucket(permits int, per time.Duration, burst int) Limit {
	return Limit{testserver.TokenBucket(permits, per, burst)}
}

// FixedWindow returns a bound on the permits in each window. Windows are aligned
// to the clock: one of an hour begins at the full hour, UTC. It panics unless both
// are positive.
func FixedWindow(permits int, per time.Duration) Limit {
	return Limit{testserver.FixedWindow(permits, per)}
}

// SlidingLog returns a bound on the permits in every window of length per,
// wherever it begins. It panics unless both are positive.
func SlidingLog(permits int, per time.Duration) Limit {
	return Limit{testserver.SlidingLog(permits, per)}
}

// InFlight returns a bound on the requests that are being answered at one time.
// Let [Vendor.Handler] take time. Its refusals give no time to wait for. It
// panics unless n is positive.
func InFlight(n int) Limit { return Limit{testserver.Concurrency(n)} }

// String returns the limit's numbers, such as "token-bucket 50/1s burst 10".
func (l Limit) String() string { return l.rule.String() }
