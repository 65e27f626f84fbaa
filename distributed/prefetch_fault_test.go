package distributed_test

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/distributed"
	"github.com/weirgo/weir/throttle"
)

// The clock of Redis is set back and forward while replicas hold permits ahead of callers. A step
// forward may cost a burst and the permits in hand, one back nothing. Once the line is empty,
// callers find permits in hand again.
func TestPrefetchUnderASteppedClock(t *testing.T) {
	seed := seeded(t)
	for _, step := range []time.Duration{-time.Hour, -time.Second, time.Hour} {
		if testing.Short() && step != -time.Hour {
			continue // each takes five seconds under the race detector
		}
		t.Run(fmt.Sprint(step), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const rate, burst, replicas = 1000, 100, 3
				limit := throttle.TokenBucket(rate, time.Second, burst)
				f := newPrefetchFleet(t, replicas, prefetchAhead, limit)
				var skew atomic.Int64
				for _, s := range f.stores {
					distributed.Skew(s, &skew)
				}
				crowds := make([]*comers, replicas)
				for i := range replicas {
					crowds[i] = &comers{replica: i, rate: 0.6 * rate / replicas, random: rand.New(rand.NewPCG(seed, uint64(i))), to: orShort(6*time.Second, 4*time.Second)}
					f.wg.Go(func() { f.come(crowds[i]) })
				}
				b := bound{rate: limit.PerSecond(), burst: burst, x: throttle.Tolerance(limit) + prefetchTrip}
				for _, by := range []time.Duration{step, 0} {
					time.Sleep(1500 * time.Millisecond)
					from, held := throttle.Instant(time.Since(f.start)), 0
					for _, l := range f.limiters {
						held += distributed.InHand(l)
					}
					forward := by.Microseconds() > skew.Load()
					skew.Store(by.Microseconds())
					flood := &comers{rate: 1e9, from: time.Since(f.start), to: time.Since(f.start) + burst}
					f.come(flood)
					if forward {
						b.spells = append(b.spells, spell{from: from, to: from.Add(time.Second), more: float64(burst + held)})
					}
				}
				f.wg.Wait()
				b.judge(t, fmt.Sprint(step), f.instants())
				for i, c := range crowds {
					last, waited := c.waits[len(c.waits)-100:], 0
					for _, w := range last {
						if w > 0 {
							waited++
						}
					}
					if waited > 80 {
						t.Errorf("replica %d: of the last %d callers %d waited, want half of them to find a permit at hand", i, len(last), waited)
					}
				}
			})
		})
	}
}

// Permits that a quiet replica did not use are available to another at once: the whole burst.
func TestAQuietReplicaGivesBackWhatItHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const burst = 200
		f := newPrefetchFleet(t, 2, prefetchAhead, throttle.TokenBucket(1000, time.Second, burst))
		f.come(&comers{rate: 700, to: 515 * time.Millisecond})
		if n := distributed.InHand(f.limiters[0]); n < 5 { // 9 were seen, rarely
			t.Fatalf("%d permits in hand, want those of a run", n)
		}
		time.Sleep(15 * time.Millisecond) // 8 gaps since the last caller are 11.4 ms
		from := time.Since(f.start)
		flood := &comers{replica: 1, rate: 1e9, from: from, to: from + burst}
		f.come(flood)
		f.wg.Wait()
		late := 0
		for _, w := range flood.waits {
			if w > 2*prefetchTrip {
				late++
			}
		}
		if late > 0 {
			t.Errorf("%d of %d callers at another replica waited for permits, want none", late, burst)
		}
	})
}
