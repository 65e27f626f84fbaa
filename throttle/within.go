package throttle

import (
	"fmt"
	"math"
	"time"
)

// leastBucket is the least number of permits for which [Within] returns a bucket. For
// fewer, what the permit tolerance takes of a burst is more than the burst.
const leastBucket = 30

// Within returns a limit with which at most this many permits depart in any span as long as window.
// Use it for a vendor that allows "100 calls per minute".
//
//	Within(100, time.Minute) is "90/m burst 8"
//
// Nine tenths of the permits are the rate. The burst is what is left, less what the permit
// tolerance may add: here two permits, because that many callers may leave late and so in
// the next span. 90 + 8 + 2 = 100. For fewer than 30 permits it is a sliding log of all of
// them. Its span is longer than window by a tenth, by 100 ms at least and a second at most:
//
//	Within(5, time.Minute) is "log 5/1m1s"
//
// The vendor counts arrivals, and ways there differ. If the slowest way takes D longer than
// the fastest, use a window longer by D. It panics if permits or window are not positive.
func Within(permits int, window time.Duration) Limit {
	if permits <= 0 || window <= 0 {
		panic(fmt.Sprintf("throttle: Within(%d, %v): want more than no permits, and a window", permits, window))
	}
	bucket := TokenBucket(permits-(permits+9)/10, window, 0)
	bucket.Burst = permits - bucket.Permits - lateOf(bucket)
	if permits < leastBucket || bucket.Burst < 1 {
		return SlidingLog(permits, window+min(max(window/10, maxTolerance), time.Second))
	}
	return bucket
}

// lateOf returns how many permits more than its burst a bucket lets out at once, because
// their callers left late by the permit tolerance: one for each interval in it, and two at
// least.
func lateOf(bucket Limit) int {
	return max(2, int(math.Ceil(bucket.PerSecond()*Tolerance(bucket).Seconds())))
}
