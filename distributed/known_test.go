package distributed_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/throttle"
)

// A snapshot shows next to no headroom for a saturated bucket, however old the last reply is.
// Without callers the bucket fills up.
func TestKnownHeadroomOfASaturatedBucket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const whole, samples, burst = 5 * time.Second, 100, 18
		f := newBubbleFleet(t, 2, time.Millisecond, throttle.TokenBucket(100, time.Second, burst))
		for i := range f.queues {
			f.work(i, 6, whole)
		}
		time.Sleep(whole / 5)
		high := 0
		for range samples {
			time.Sleep(31 * time.Millisecond)
			for _, q := range f.queues {
				if s := q.State().Limits[0]; s.Headroom > burst/3 || s.Utilization < 2.0/3 {
					high++
				}
			}
		}
		if high > 0 {
			t.Errorf("%d of %d snapshots show much headroom in a saturated bucket", high, 2*samples)
		}
		f.wg.Wait()
		time.Sleep(time.Second)
		for i, q := range f.queues {
			if got := q.State().Limits[0].Headroom; got != burst {
				t.Errorf("replica %d: headroom %v without callers, want %d", i, got, burst)
			}
		}
	})
}
