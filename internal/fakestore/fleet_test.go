package fakestore_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/internal/fakestore"
	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// A fleet is replicas that share a server, each with a queue, in a bubble.
type fleet struct {
	t      *testing.T
	server *fakestore.Server
	queues []*shaping.Queue
	start  time.Time
	wg     sync.WaitGroup

	mu   sync.Mutex
	left [][]time.Duration // departures of each replica
}

func newFleet(t *testing.T, replicas int, roundTrip time.Duration, limits ...throttle.Limit) *fleet {
	t.Helper()
	f := &fleet{t: t, server: fakestore.NewServer(roundTrip), start: time.Now(), left: make([][]time.Duration, replicas)}
	for range replicas {
		store := f.server.Store()
		limiter, err := store.Limiter("vendor", limits...)
		if err != nil {
			t.Fatal(err)
		}
		f.queues = append(f.queues, shaping.NewQueue(limiter))
		t.Cleanup(func() { store.Close() })
	}
	return f
}

// work has workers at a replica wait in a loop until a time.
func (f *fleet) work(replica, workers int, until time.Duration) {
	for range workers {
		f.wg.Go(func() {
			for {
				turn := shaping.Turn{N: 1, MaxWait: time.Hour}
				if err := f.queues[replica].WaitTurn(f.t.Context(), &turn); err != nil {
					f.t.Errorf("WaitTurn() = %v", err)
					return
				}
				at := time.Since(f.start)
				if at > until {
					return
				}
				f.mu.Lock()
				f.left[replica] = append(f.left[replica], at)
				f.mu.Unlock()
			}
		})
	}
}

func (f *fleet) all() []time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Sorted(slices.Values(slices.Concat(f.left...)))
}

// bounded tests that in any window the departures stay within the rate.
func (f *fleet) bounded(rate, burst int) {
	f.t.Helper()
	all := f.all()
	for i := range all {
		for j := i; j < len(all); j++ {
			if most := float64(burst) + float64(rate)*(all[j]-all[i]).Seconds() + 1e-6; float64(j-i+1) > most {
				f.t.Fatalf("%d departures from %v to %v, at most %.1f", j-i+1, all[i], all[j], most)
			}
		}
	}
}

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
		synctest.Test(t, func(t *testing.T) {
			f := newFleet(t, len(c.replicas), c.trip, c.limit)
			for i, workers := range c.replicas {
				f.work(i, workers, 5*time.Second)
			}
			f.wg.Wait()
			f.bounded(c.rate, c.burst)
			if n, least := len(f.all()), 5*c.rate*99/100; n < least {
				t.Errorf("%v: %d departures in 5s, want at least %d", c.limit, n, least)
			}
			if runs := f.server.Runs(); float64(runs) > 0.6*float64(len(f.all())) {
				t.Errorf("%v: %d runs for %d departures", c.limit, runs, len(f.all()))
			}
		})
	}
}

func TestFleetSharesByTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 4, 2*time.Millisecond, throttle.LeakyBucket(400, time.Second))
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

func TestPauseReachesTheFleetWithinTwoRoundTrips(t *testing.T) {
	// The runs in hand reach beyond the end of the shorter one.
	for _, length := range []time.Duration{2 * time.Second, 50 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			const trip = 4 * time.Millisecond
			f := newFleet(t, 4, trip, throttle.TokenBucket(200, time.Second, 10))
			for i := range f.queues {
				f.work(i, 16, 4*time.Second)
			}
			time.Sleep(time.Second + 100*time.Microsecond)
			f.queues[2].Pause(length)
			paused := time.Since(f.start)
			f.wg.Wait()
			f.bounded(200, 10)
			var after []time.Duration
			for i, left := range f.left {
				for _, at := range left {
					switch {
					case at > paused && at < paused+length && (i == 2 || at > paused+2*trip):
						t.Errorf("replica %d let one go %v after the pause was told", i, at-paused)
					case at >= paused+length:
						after = append(after, at-paused-length)
					}
				}
			}
			slices.Sort(after)
			if first := after[0]; first > 2*trip {
				t.Errorf("the first left %v after the pause, want it within two round trips", first)
			}
			for i := range after[:20] {
				if i > 0 && after[i]-after[i-1] < 5*time.Millisecond-time.Microsecond {
					t.Errorf("departures %v and %v after the pause are not spaced", after[i-1], after[i])
				}
			}
		})
	}
}

// A run that was under way when a pause was told is void, also where the pause
// is over when it comes.
func TestPauseVoidsTheRunUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 1, 100*time.Millisecond, throttle.LeakyBucket(100, time.Second))
		left := make(chan time.Duration, 1)
		f.wg.Go(func() {
			if err := f.queues[0].Wait(t.Context()); err != nil {
				t.Errorf("Wait() = %v", err)
			}
			left <- time.Since(f.start)
		})
		time.Sleep(60 * time.Millisecond)
		f.queues[0].Pause(10 * time.Millisecond)
		f.wg.Wait()
		if at := <-left; at != 200*time.Millisecond {
			t.Errorf("left at %v, want 200ms, with the next run", at)
		}
	})
}

// A caller who gives up while a run is under way is out at once, and the run is
// for the others.
func TestCancelDuringAFetchReturnsAtOnceAndKeepsTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 1, 100*time.Millisecond, throttle.LeakyBucket(1, time.Second))
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
		time.Sleep(50 * time.Millisecond)
		cancel()
		f.wg.Wait()
		if at := <-gone; at != 50*time.Millisecond {
			t.Errorf("the cancelled came out at %v, want 50ms", at)
		}
		if at := <-other; at != 100*time.Millisecond {
			t.Errorf("the other left at %v, want 100ms, with the run", at)
		}
	})
}
