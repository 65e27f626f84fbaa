package fakestore_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/internal/fakestore"
	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

func TestFailuresAreNeverAHotLoop(t *testing.T) {
	for _, fault := range []fakestore.Fault{fakestore.Failing, fakestore.Silent} {
		synctest.Test(t, func(t *testing.T) {
			f := newFleet(t, 1, 2*time.Millisecond, throttle.LeakyBucket(100, time.Second))
			f.server.Break(fault)
			f.work(0, 8, 12*time.Second)
			time.Sleep(10 * time.Second)
			if n := len(f.all()); n != 0 {
				t.Errorf("%d departures without a server", n)
			}
			// 50 ms, doubled up to a second: 14 calls in ten seconds at most.
			if n := f.server.Calls(); n < 5 || n > 15 {
				t.Errorf("%d calls in ten seconds, want a backoff", n)
			}
			f.server.Break(fakestore.Healthy)
			f.wg.Wait()
			f.bounded(100, 1)
			if n := len(f.all()); n < 80 {
				t.Errorf("%d departures in the two seconds after the server came back", n)
			}
		})
	}
}

func TestStateTellsOfTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 2, 2*time.Millisecond, throttle.LeakyBucket(100, time.Second))
		want := func(when string, want throttle.StoreState) {
			t.Helper()
			if got := f.queues[0].State().Store; *got != want {
				t.Errorf("%s Store = %+v, want %+v", when, *got, want)
			}
		}
		want("at first", throttle.StoreState{})
		f.queues[0].Wait(t.Context())
		want("after a run", throttle.StoreState{Replicas: 2, Calls: 1})
		f.server.Break(fakestore.Silent)
		f.wg.Go(func() { f.queues[0].Wait(t.Context()) })
		time.Sleep(60 * time.Millisecond)
		want("without an answer", throttle.StoreState{Lost: true, Cause: "timeout", Replicas: 2, Calls: 2, Failures: 1, Unknown: 1})
		f.server.Break(fakestore.Failing)
		time.Sleep(100 * time.Millisecond)
		want("after an error", throttle.StoreState{Lost: true, Cause: "error", Replicas: 2, Calls: 3, Failures: 2, Unknown: 1})
		f.server.Break(fakestore.Healthy)
		f.wg.Wait()
		want("with an answer", throttle.StoreState{Replicas: 2, Calls: 4, Failures: 2, Unknown: 1})
	})
}

func TestDeadlinesHoldWithoutAServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 1, 2*time.Millisecond, throttle.LeakyBucket(100, time.Second))
		f.server.Break(fakestore.Silent)
		err := f.queues[0].WaitTurn(t.Context(), &shaping.Turn{N: 1, MaxWait: 70 * time.Millisecond})
		if !errors.Is(err, shaping.ErrDeadline) || time.Since(f.start) != 70*time.Millisecond {
			t.Errorf("WaitTurn() = %v after %v, want ErrDeadline after 70ms", err, time.Since(f.start))
		}
	})
}

func TestStoreRefusesOversizeAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 1, 2*time.Millisecond, throttle.TokenBucket(1, time.Second, 5))
		f.work(0, 2, 0) // somebody stands in line
		synctest.Wait()
		if err := f.queues[0].WaitN(t.Context(), 6); !errors.Is(err, throttle.ErrExceedsBurst) || time.Since(f.start) != 0 {
			t.Errorf("WaitN(6) = %v after %v, want ErrExceedsBurst at once", err, time.Since(f.start))
		}
		f.wg.Wait()
	})
}

func TestStoreServesMixedCosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 1, 2*time.Millisecond, throttle.TokenBucket(10, time.Second, 5))
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
		f := newFleet(t, 1, 0, throttle.LeakyBucket(100, time.Second))
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

// A permit that nobody took is for those who stood in line at its instant.
func TestStoreKeepsPermitsFromWhoCameAfterThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 1, 0, throttle.LeakyBucket(100, time.Second)) // tolerance 20ms
		ctx, cancel := context.WithCancel(t.Context())
		for range 2 { // the second is to go at 10ms
			f.wg.Go(func() { f.queues[0].Wait(ctx) })
			synctest.Wait()
		}
		time.Sleep(5 * time.Millisecond)
		cancel()
		f.wg.Wait()
		time.Sleep(10 * time.Millisecond)
		if err := f.queues[0].Wait(t.Context()); err != nil || time.Since(f.start) != 20*time.Millisecond {
			t.Errorf("Wait() = %v at %v, want 20ms, not 15ms with the permit of 10ms", err, time.Since(f.start))
		}
	})
}

func TestTuneReachesTheFleet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 2, 2*time.Millisecond, throttle.LeakyBucket(1, time.Second))
		f.work(0, 4, 4*time.Second)
		f.work(1, 4, 4*time.Second)
		time.Sleep(2 * time.Second)
		if err := f.queues[0].Tune(throttle.LeakyBucket(100, time.Second)); err != nil {
			t.Error(err)
		}
		if err := f.queues[0].Tune(throttle.Limit{}); err == nil {
			t.Error("Tune() of a limit that does not validate = nil")
		}
		f.wg.Wait()
		f.bounded(100, 1)
		if n := len(f.all()); n < 190 || n > 203 {
			t.Errorf("%d departures, want about 3 in two seconds and 200 in two more", n)
		}
	})
}

func TestSettleDelaysTheFleet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 2, 2*time.Millisecond, throttle.LeakyBucket(10, time.Second))
		turn := shaping.Turn{N: 1}
		if err := f.queues[0].WaitTurn(t.Context(), &turn); err != nil {
			t.Fatal(err)
		}
		departure := turn.Departure()
		departure.Request.N = 10
		f.queues[0].Charge(departure)
		time.Sleep(10 * time.Millisecond)
		if err := f.queues[1].Wait(t.Context()); err != nil {
			t.Error(err)
		}
		if at := time.Since(f.start); at < 1100*time.Millisecond || at > 1104*time.Millisecond {
			t.Errorf("the next left at %v, want 1.1s and two round trips at most", at)
		}
	})
}

func TestCloseEndsCallsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := fakestore.NewServer(time.Hour)
		store := server.Store()
		limiter, err := store.Limiter("vendor", throttle.LeakyBucket(1, time.Second))
		if err != nil {
			t.Fatal(err)
		}
		q := shaping.NewQueue(limiter)
		done := make(chan error)
		go func() { done <- q.Wait(t.Context()) }()
		synctest.Wait()
		start := time.Now()
		q.Close()
		limiter.(io.Closer).Close()
		for range 2 {
			if err := store.Close(); err != nil {
				t.Errorf("Close() = %v", err)
			}
		}
		if err := <-done; !errors.Is(err, shaping.ErrClosed) || time.Since(start) != 0 {
			t.Errorf("Wait() = %v, %v after Close, want ErrClosed at once", err, time.Since(start))
		}
	})
}

func TestStoreRefusesLimitsThatDoNotValidate(t *testing.T) {
	if l, err := fakestore.NewServer(0).Store().Limiter("vendor", throttle.Limit{}); err == nil {
		t.Errorf("Limiter() = %v, nil", l)
	}
}
