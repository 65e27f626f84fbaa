package vendors

import (
	"fmt"
	"math"
	"time"

	"github.com/weirgo/weir/throttle"
)

// A Number is one limit as its vendor states it.
type Number struct {
	Counts string        // what is counted, and of whom
	Most   int           // zero: the vendor states no number that could be read
	In     time.Duration // any span with at most this many; zero: at a time
	Burst  int           // size of the vendor's bucket, refilled by Most in each In; zero: it counts in windows
	Unit   string        // what is counted, if not requests
	Route  string        // last word of the keys of the lanes that it is for, unless it is at a time; zero: all lanes

	Source string // address of the page that was read
	Read   string // day on which it was last read, "2006-01-02"
	Method string // "documented", "measured", "reported" by each answer, "learned" from refusals, or "unverified"
	Note   string // what else matters: plans, scopes, exceptions; zero: nothing does
}

// The parts of a number that [Number.Limit] leaves unused.
const (
	leastLate = 2           // permits that may leave late; at more than 200/s those of 10 ms, see docs/limits.md
	spread    = time.Second // most between the slowest and the fastest way there, in windows of 5 s or longer
	logUpTo   = 1000        // permits that a log remembers; beyond, a bucket is cheaper
	inBursts  = 10          // a tenth of such a number may leave at once
)

// Limit returns the limit that keeps the number in every span of length In, or the zero
// Limit if there is nothing to keep. Calls may differ on their way by D, a fifth
// of In and one second at most:
//
//	Most 100 In 10 s           log of 100 in 11 s
//	Most 5000 In 1 h           bucket of 4498 in 1 h 1 s, burst 500: 4498 + 500 + 2 late ones
//	Most 2 In 1 s, Burst 40    bucket of 2 in 1 s, burst 37: one is refilled within D, 2 are late
//
// A Burst of those few alone leaves a burst of 1, and the vendor may refuse a call that is late.
func (n Number) Limit() throttle.Limit {
	if n.Most <= 0 || n.In <= 0 {
		return throttle.Limit{}
	}
	d := min(n.In/5, spread, math.MaxInt64-n.In)
	tenth := n.Most / inBursts
	late := max(int(min(math.Ceil(float64(n.Most)*float64(10*time.Millisecond)/float64(n.In)), float64(tenth))), leastLate)
	switch {
	case n.Burst > 0:
		refilled := int(math.Ceil(float64(n.Most) * float64(d) / float64(n.In)))
		return throttle.TokenBucket(n.Most, n.In, max(n.Burst-refilled-late, 1)).Of(n.Unit)
	case n.Most > logUpTo:
		return throttle.TokenBucket(n.Most-tenth-late, n.In+d, tenth).Of(n.Unit)
	default:
		return throttle.SlidingLog(n.Most, n.In+d).Of(n.Unit)
	}
}

// String returns the number as throttle.ParseLimit reads rates, "5000/h of points" or "2/s
// burst 40", or as "100 at a time".
func (n Number) String() string {
	switch {
	case n.Most == 0:
		return "no number"
	case n.In == 0:
		return fmt.Sprintf("%d at a time", n.Most)
	}
	return throttle.TokenBucket(n.Most, n.In, n.Burst).Of(n.Unit).String()
}
