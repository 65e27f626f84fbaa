package throttle_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weirgo/weir/throttle"
)

// Poisson arrivals that are refused go away. The counter and the log admit the
// same number within 2 %.
func TestSlidingWindowAdmitsAsTheLogOnPoissonTraffic(t *testing.T) {
	for _, permits := range []int{100, 1000} {
		for _, load := range []float64{0.5, 0.8, 0.95, 1, 1.05, 1.2, 1.5, 2} {
			if testing.Short() && (permits > 100 || load != 1.2) {
				continue // one goroutine computes them, in which there is no race
			}
			t.Run(fmt.Sprintf("%d at load %v", permits, load), func(t *testing.T) {
				random := rand.New(rand.NewPCG(uint64(permits), math.Float64bits(load)))
				counter := throttle.NewAt(throttle.SlidingWindow(permits, time.Second))
				log := throttle.NewAt(throttle.SlidingLog(permits, time.Second))
				arrivals := 100_000
				if permits > 100 {
					arrivals = 50_000 // nearer to the log, so that fewer show the difference
				}
				mean := float64(time.Second) / (load * float64(permits))
				admitted := [2]int{}
				now := epoch
				for range arrivals {
					now += throttle.Instant(random.ExpFloat64() * mean)
					for i, l := range []throttle.Limiter{counter, log} {
						if granted, _ := l.Take(now, throttle.Request{N: 1}); granted.At <= now {
							admitted[i]++
						}
					}
				}
				off := float64(admitted[0])/float64(admitted[1]) - 1
				t.Logf("counter %d, log %d: %+.2f %%", admitted[0], admitted[1], 100*off)
				if math.Abs(off) > 0.02 {
					t.Fatalf("the counter admitted %d, the log %d", admitted[0], admitted[1])
				}
			})
		}
	}
}

// The products are exact where they do not fit 64 bits.
func TestSlidingWindowIsExactForLongWindows(t *testing.T) {
	const per = 31 * 24 * time.Hour
	start := epoch / throttle.Instant(per) * throttle.Instant(per)
	l := throttle.NewAt(throttle.SlidingWindow(1_000_000_000, per))
	_, _ = l.Take(start, throttle.Request{N: 1_000_000_000})
	next := start.Add(per)
	for _, n := range []int{1, 333_333_333, 1_000_000_000} {
		// 10^9 x (per-e) / per, rounded down, is at most 10^9 - n from here on:
		// per is a multiple of 10^9, so one nanosecond after n x per / 10^9 less one.
		want := next.Add(per/1_000_000_000*time.Duration(n-1) + 1)
		if granted, err := l.Take(next, throttle.Request{N: n}); granted.At != want || err != nil {
			t.Fatalf("Take(%d) = %v, %v, want %v", n, granted.At.Sub(next), err, want.Sub(next))
		}
	}
}
