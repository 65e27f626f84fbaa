package distributed_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// Priorities order the line of one replica only. A replica with only urgent callers and one with
// only low ones each get half of the rate, as documented.
func TestPrioritiesHoldInsideOneReplica(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const rate = 20
		whole := orShort(30*time.Second, 10*time.Second)
		f := newBubbleFleet(t, 2, time.Millisecond, throttle.LeakyBucket(rate, time.Second))
		f.meet()
		for i, p := range []shaping.Priority{shaping.PriorityHigh, shaping.PriorityLow} {
			for range 8 {
				f.wg.Go(func() {
					ctx := shaping.WithPriority(t.Context(), p)
					for time.Since(f.start) < whole {
						if err := f.queues[i].Wait(ctx); err != nil {
							t.Error(err)
							return
						}
						f.mu.Lock()
						f.left[i] = append(f.left[i], time.Since(f.start))
						f.mu.Unlock()
					}
				})
			}
		}
		f.wg.Wait()
		high, low := len(f.left[0]), len(f.left[1])
		if share := float64(low) / float64(high+low); share < 0.45 || share > 0.55 {
			t.Errorf("%d departures of the urgent replica and %d of the other, want equal counts", high, low)
		}
	})
}
