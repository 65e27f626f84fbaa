package distributed_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

func TestFleetKeepsTheBoundAndTheRate(t *testing.T) {
	for _, c := range []struct {
		limit    throttle.Limit
		rate     int
		burst    int
		replicas []int // workers of each
		trip     time.Duration
	}{
		{throttle.LeakyBucket(500, time.Second), 500, 1, []int{8, 8, 8, 8}, time.Millisecond},
		{throttle.TokenBucket(200, time.Second, 20), 200, 20, []int{16, 16, 16, 16}, 2 * time.Millisecond},
		{throttle.TokenBucket(200, time.Second, 20), 200, 20, []int{64, 4, 4}, 2 * time.Millisecond},
		{throttle.LeakyBucket(100, time.Second), 100, 1, []int{10}, 0},
	} {
		if testing.Short() && len(c.replicas) == 4 {
			continue // many departures of equals: TestFleetSharesByTurn has them
		}
		synctest.Test(t, func(t *testing.T) {
			f := newBubbleFleet(t, len(c.replicas), c.trip, c.limit)
			for i, workers := range c.replicas {
				f.work(i, workers, 5*time.Second)
			}
			f.wg.Wait()
			f.bounded(c.rate, c.burst)
			if n, least := len(f.all()), 5*c.rate*99/100; n < least {
				t.Errorf("%v: %d departures in 5s, want at least %d", c.limit, n, least)
			}
			if runs := f.server.Calls(); float64(runs) > 0.6*float64(len(f.all())) {
				t.Errorf("%v: %d runs for %d departures", c.limit, runs, len(f.all()))
			}
		})
	}
}

func TestFleetSharesByTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newBubbleFleet(t, 4, 2*time.Millisecond, throttle.LeakyBucket(400, time.Second))
		for i := range f.queues {
			f.work(i, 16, 5*time.Second)
		}
		f.wg.Wait()
		for i, left := range f.left {
			if n := len(left); n < 475 || n > 525 {
				t.Errorf("replica %d got %d departures of 2000, want a quarter within 5 %%", i, n)
			}
		}
	})
}

// A caller that gives up while a run is under way returns at once, and the run serves the others.
func TestCancelDuringAFetchReturnsAtOnceAndKeepsTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newBubbleFleet(t, 1, 40*time.Millisecond, throttle.LeakyBucket(1, time.Second))
		f.meet()
		ctx, cancel := context.WithCancel(t.Context())
		gone := make(chan time.Duration, 1)
		f.wg.Go(func() {
			if err := f.queues[0].Wait(ctx); err != context.Canceled {
				t.Errorf("Wait() = %v, want context.Canceled", err)
			}
			gone <- time.Since(f.start)
		})
		synctest.Wait()
		other := make(chan time.Duration, 1)
		f.wg.Go(func() {
			if err := f.queues[0].Wait(t.Context()); err != nil {
				t.Errorf("Wait() = %v", err)
			}
			other <- time.Since(f.start)
		})
		time.Sleep(20 * time.Millisecond)
		cancel()
		f.wg.Wait()
		if at := <-gone; at != 20*time.Millisecond {
			t.Errorf("the cancelled caller returned at %v, want 20ms", at)
		}
		if at := <-other; at != 40*time.Millisecond {
			t.Errorf("the other left at %v, want 40ms, with the run", at)
		}
	})
}

func TestStoreRefusesOversizeAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newBubbleFleet(t, 1, 2*time.Millisecond, throttle.TokenBucket(1, time.Second, 5))
		f.work(0, 2, 0) // a caller waits in line
		synctest.Wait()
		if err := f.queues[0].WaitN(t.Context(), 6); !errors.Is(err, throttle.ErrExceedsBurst) || time.Since(f.start) != 0 {
			t.Errorf("WaitN(6) = %v after %v, want ErrExceedsBurst at once", err, time.Since(f.start))
		}
		f.wg.Wait()
	})
}

func TestStoreServesMixedCosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newBubbleFleet(t, 1, 2*time.Millisecond, throttle.TokenBucket(10, time.Second, 5))
		var left []time.Duration
		costs := []int{5, 3, 1, 5, 1}
		for _, n := range costs {
			f.wg.Go(func() {
				if err := f.queues[0].WaitN(t.Context(), n); err != nil {
					t.Errorf("WaitN(%d) = %v", n, err)
				}
				f.mu.Lock()
				defer f.mu.Unlock()
				left = append(left, time.Since(f.start))
			})
			synctest.Wait()
		}
		f.wg.Wait()
		for i, sum := 0, 0; i < len(costs); i++ {
			sum += costs[i]
			ideal := time.Duration(max(0, sum-5)) * 100 * time.Millisecond
			if left[i] < ideal || left[i] > ideal+8*time.Millisecond {
				t.Errorf("cost %d left at %v, want %v and two round trips at most", costs[i], left[i], ideal)
			}
		}
	})
}

func TestStoreVoidsStalePermits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newBubbleFleet(t, 1, 0, throttle.LeakyBucket(100, time.Second))
		for range 10 {
			f.wg.Go(func() {
				f.queues[0].WaitTurn(t.Context(), &shaping.Turn{N: 1, MaxWait: 15 * time.Millisecond})
			})
			synctest.Wait()
		}
		f.wg.Wait()
		time.Sleep(time.Second)
		start := time.Now()
		for range 5 {
			if err := f.queues[0].Wait(t.Context()); err != nil {
				t.Error(err)
			}
		}
		if took := time.Since(start); took != 40*time.Millisecond {
			t.Errorf("5 departures took %v, want 40ms: nothing was saved up", took)
		}
	})
}

// The permit of a cancelled caller is given back, so only the departure before it delays the next
// caller.
func TestStoreTakesBackPermitsOfCancelledCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newBubbleFleet(t, 1, 0, throttle.LeakyBucket(100, time.Second)) // tolerance 20ms
		ctx, cancel := context.WithCancel(t.Context())
		for range 2 { // the second would depart at 10ms
			f.wg.Go(func() { f.queues[0].Wait(ctx) })
			synctest.Wait()
		}
		time.Sleep(5 * time.Millisecond)
		cancel()
		f.wg.Wait()
		time.Sleep(10 * time.Millisecond)
		if err := f.queues[0].Wait(t.Context()); err != nil || time.Since(f.start) != 15*time.Millisecond {
			t.Errorf("Wait() = %v at %v, want 15ms: the last left at 0, and 10ms are enough", err, time.Since(f.start))
		}
	})
}
