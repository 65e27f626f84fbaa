package distributed_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/throttle"
)

// A snapshot tells what a saturated bucket has left: next to nothing, however old the
// state is that the store told. Once nobody calls it fills up.
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
			t.Errorf("%d of %d snapshots tell that a saturated bucket has much left", high, 2*samples)
		}
		f.wg.Wait()
		time.Sleep(time.Second)
		for i, q := range f.queues {
			if got := q.State().Limits[0].Headroom; got != burst {
				t.Errorf("replica %d: headroom %v once nobody calls, want %d", i, got, burst)
			}
		}
	})
}
