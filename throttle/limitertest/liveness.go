package limitertest

import (
	"math/big"
	"testing"
	"time"

	"github.com/weirgo/weir/throttle"
)

// leastLines is the least number of lines, whatever [Suite].Histories is: one for each algorithm on
// average.
const leastLines = 6

// liveness runs histories of an endless line, woken late within the tolerance: the limiter must
// reach its rate.
func (s Suite) liveness(t *testing.T) {
	t.Helper()
	histories, start := max(s.Histories/10, leastLines), s.first(origin)
	for seed := range histories {
		draw := generator(uint64(seed))
		l := draw.limit(algorithms[draw(int64(len(algorithms)))])
		limiter := s.Make(l)
		late := lateness(l, limiter.Tolerance())
		asked, now := draw.between(300, 600), start
		for n := int64(0); n < asked; {
			granted, err := limiter.Take(now, throttle.Request{N: 1, Since: start})
			switch {
			case err != nil || granted.At == throttle.Never:
				t.Fatalf("history %d, limit %v: Take = %d, %v", seed, l, granted.At, err)
			case granted.At <= now:
				n++
			default:
				now = granted.At.Add(draw.upTo(late, s.Tick))
			}
		}
		if !reached(l, asked, now.Sub(start), late) {
			t.Fatalf("history %d: limit %v: %d permits took %v, below 99.9 %% of the rate", seed, l, asked, now.Sub(start))
		}
	}
	t.Logf("%d random histories", histories)
}

// lateness returns how late a timer may be without cost. A window that begins with its first use,
// or slides, counts each departure at its own instant.
func lateness(l throttle.Limit, tolerance time.Duration) time.Duration {
	switch {
	case l.Algorithm == throttle.AlgorithmSlidingLog, l.Align == throttle.AlignFirstUse:
		return 0
	case l.Algorithm == throttle.AlgorithmFixedWindow, l.Algorithm == throttle.AlgorithmSlidingWindow:
		return min(tolerance, l.Per/time.Duration(l.Permits)/2)
	default:
		return tolerance
	}
}

// reached reports whether the permits in a time are at least 99.9 % of the rate. The part under way
// at the ends does not count: a window, or an interval and the last timer.
func reached(l throttle.Limit, permits int64, took, late time.Duration) bool {
	ends := l.Per/time.Duration(l.Permits) + late
	switch l.Algorithm {
	case throttle.AlgorithmFixedWindow, throttle.AlgorithmSlidingLog, throttle.AlgorithmSlidingWindow:
		ends = l.Per + late
	}
	due := new(big.Int).Mul(big.NewInt(permits), big.NewInt(int64(l.Per)))
	due.Quo(due, big.NewInt(int64(l.Permits)))
	return int64(float64(took-ends)*0.999) <= due.Int64()
}
