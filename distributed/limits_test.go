package distributed_test

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/distributed"
	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// Replicas with two algorithms, as in a rolling deploy, share one quota: the stricter of the two
// limits is enforced.
func TestLimitsOfTwoAlgorithmsAreOneQuota(t *testing.T) {
	const rate, burst, whole = 50, 5, 4 * time.Second
	limits := []throttle.Limit{
		throttle.TokenBucket(rate, time.Second, burst), throttle.GCRA(rate, time.Second, burst), throttle.LeakyBucket(rate, time.Second),
		throttle.FixedWindow(rate, time.Second), throttle.SlidingLog(rate, time.Second), throttle.SlidingWindow(rate, time.Second),
	}
	for i, old := range limits {
		next := limits[(i+1)%len(limits)]
		if testing.Short() && i%2 > 0 {
			continue // each algorithm is in one of the others
		}
		t.Run(old.Algorithm.String()+" to "+next.Algorithm.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newBubbleFleet(t, 1, time.Millisecond, old)
				store := distributed.New(f.server.Client(t), "fleet")
				store.Logger = slog.New(slog.DiscardHandler)
				defer store.Close()
				l, err := store.Limiter("vendor", next)
				if err != nil {
					t.Fatal(err)
				}
				f.queues, f.left = append(f.queues, shaping.NewQueue(l)), append(f.left, nil)
				f.work(0, 8, whole)
				f.work(1, 8, whole)
				f.wg.Wait()
				due := int(rate * whole.Seconds())
				if n := len(f.all()); n > due+rate+burst || n < due*9/10 { // a window's permits may leave at once
					t.Errorf("%d departures in %v, want the %d that are due", n, whole, due)
				}
			})
		})
	}
}
