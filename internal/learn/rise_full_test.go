package learn_test

import (
	"testing"
	"time"

	"github.com/weirgo/weir/internal/learn"
)

// Calls are refused, and afterwards each answer reports that a bucket is full. If the refusal
// reported that nothing was left, that bucket refused, and the rate in force rises at once. Otherwise
// another limit refused, which nobody reports, and the search goes on as before.
func TestAFullBucketRaisesTheRateThatItsRefusalsTaught(t *testing.T) {
	raised := func(left float64) float64 {
		s := learn.New(learn.Setting{Shared: true})
		quota := func(left float64) []learn.Quota {
			return []learn.Quota{{Limit: 5, HasLimit: true, Remaining: left, HasRemaining: true}}
		}
		call := func(n int64, ms int, refused bool, left float64) {
			departed := at(0).Add(time.Duration(ms) * time.Millisecond)
			f := learn.Fact{Departed: departed, Landed: departed.Add(5 * time.Millisecond), Ordinal: n, Granted: n, Flying: 1, Waited: true, Refused: refused, Quotas: quota(left)}
			s.Observe(&f, f.Landed)
		}
		call(1, 0, true, left) // of a burst of several processes, so there was no reading before
		call(2, 1500, false, 4)
		before := s.R
		for n := range int64(5) {
			call(n+3, int(1800+300*n), false, 4)
		}
		return s.R / before
	}
	if own, other := raised(0), raised(4); own < 2 || other > 1.5 {
		t.Errorf("the rate rises %.2f times if the bucket refused, and %.2f times if another limit did; want 2 or more, and 1.5 or less", own, other)
	}
}
