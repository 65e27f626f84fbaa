package distributed_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirgo/weir/distributed"
	"github.com/weirgo/weir/internal/redispipe"
	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// Without Redis a replica departs at its share, and calls no more often than the breaker allows. It
// uses the whole rate again once Redis is back.
func TestFailuresAreNeverAHotLoop(t *testing.T) {
	for _, fault := range []redispipe.Fault{redispipe.Loading, redispipe.Silent} {
		synctest.Test(t, func(t *testing.T) {
			f := newBubbleFleet(t, 1, 2*time.Millisecond, throttle.LeakyBucket(100, time.Second))
			f.server.Break(fault)
			f.work(0, 8, 14*time.Second)
			time.Sleep(10 * time.Second)
			// The share of a hundred replicas is one in two seconds.
			if n := len(f.all()); n < 5 || n > 6 {
				t.Errorf("%d departures without a server in ten seconds, want 5 of 100/s / 100 / 2", n)
			}
			// Three until the breaker opens, and then one in each half second.
			if n := f.server.Calls(); n > 3+20 {
				t.Errorf("%d calls in ten seconds, want what the breaker allows", n)
			}
			f.server.Break(redispipe.Healthy)
			f.wg.Wait()
			f.bounded(100, 1)
			// A lost probe takes a second, and the next is sent half a second later.
			if n := len(f.all()); n < 200 {
				t.Errorf("fault %v: %d departures, want the whole rate within two seconds after the server came back", fault, n)
			}
		})
	}
}

func TestStateShowsTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newBubbleFleet(t, 2, 2*time.Millisecond, throttle.LeakyBucket(1, time.Second))
		want := func(when string, want throttle.StoreState) {
			t.Helper()
			if got := f.queues[0].State().Store; *got != want {
				t.Errorf("%s Store = %+v, want %+v", when, *got, want)
			}
		}
		want("at first", throttle.StoreState{})
		f.queues[1].Wait(t.Context())
		f.queues[0].Wait(t.Context())
		want("after a run", throttle.StoreState{Replicas: 2, Calls: 1})
		f.server.Break(redispipe.Silent)
		gone, cancel := context.WithCancel(t.Context())
		for range 2 { // the first departs at the share of two replicas
			f.wg.Go(func() { f.queues[0].Wait(gone) })
			synctest.Wait()
		}
		time.Sleep(60 * time.Millisecond)
		want("without an answer", throttle.StoreState{Lost: true, Cause: "timeout", Replicas: 2, Calls: 2, Failures: 1, Unknown: 1, Local: 1})
		f.server.Break(redispipe.Loading)
		time.Sleep(1100 * time.Millisecond) // the probe under way has a second
		got := *f.queues[0].State().Store
		want("after an error", throttle.StoreState{Lost: true, Cause: "loading", Replicas: 2, Calls: got.Calls, Failures: got.Calls - 1, Unknown: 1, Local: 1})
		f.server.Break(redispipe.Healthy)
		time.Sleep(time.Second)
		got = *f.queues[0].State().Store
		want("with an answer", throttle.StoreState{Replicas: 2, Calls: got.Calls, Failures: got.Failures, Unknown: 1, Local: 1})
		if got.Failures < 3 || got.Calls < got.Failures+2 {
			t.Errorf("Store = %+v, want failures of both kinds, and answers", got)
		}
		cancel()
		f.wg.Wait()
	})
}

func TestDeadlinesHoldWithoutAServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newBubbleFleet(t, 1, 2*time.Millisecond, throttle.LeakyBucket(100, time.Second))
		f.server.Break(redispipe.Silent)
		for i, want := range []time.Duration{50 * time.Millisecond, 120 * time.Millisecond} {
			err := f.queues[0].WaitTurn(t.Context(), &shaping.Turn{N: 1, MaxWait: 70 * time.Millisecond})
			if first := i == 0; errors.Is(err, shaping.ErrDeadline) == first || time.Since(f.start) != want {
				t.Errorf("WaitTurn() = %v after %v, want the first to go by its share after 50ms, and ErrDeadline 70ms later", err, time.Since(f.start))
			}
		}
	})
}

// Closing the queue ends a caller's wait at once, with a call under way. Closing the store waits for
// that call until its deadline at most.
func TestCloseEndsCallsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newBubbleFleet(t, 1, time.Hour, throttle.LeakyBucket(1, time.Second))
		q, store := f.queues[0], f.stores[0]
		gone := make(chan time.Duration, 1)
		f.wg.Go(func() {
			if err := q.Wait(t.Context()); !errors.Is(err, shaping.ErrClosed) {
				t.Errorf("Wait() = %v, want ErrClosed", err)
			}
			gone <- time.Since(f.start)
		})
		synctest.Wait()
		q.Close()
		for range 2 {
			if err := store.Close(); err != nil {
				t.Errorf("Close() = %v", err)
			}
		}
		if at := <-gone; at != 0 || time.Since(f.start) != distributed.DefaultFirstDeadline {
			t.Errorf("Wait() ended at %v, Close() at %v, want at once and at the deadline of the first call", at, time.Since(f.start))
		}
		f.wg.Wait()
	})
}

// A Redis that restarts empty while replicas call costs the vendor nothing: the state is restored
// from what replicas have seen.
func TestFleetRestoresForgottenState(t *testing.T) {
	for _, limit := range []throttle.Limit{throttle.TokenBucket(200, time.Second, 20), throttle.LeakyBucket(200, time.Second)} {
		if testing.Short() && limit.Burst == 0 {
			continue // two seconds under the race detector
		}
		synctest.Test(t, func(t *testing.T) {
			f := newBubbleFleet(t, 4, 2*time.Millisecond, limit)
			for i := range f.queues {
				f.work(i, 16, 5*time.Second)
			}
			for range 8 {
				time.Sleep(500 * time.Millisecond)
				f.server.Forget()
			}
			f.wg.Wait()
			burst := max(limit.Burst, 1)
			f.bounded(200, burst)
			if n := len(f.all()); n < 900 {
				t.Errorf("%v: %d departures in 5s, want nearly 1,000", limit, n)
			}
		})
	}
}

// A Cluster does not answer where a key is. Callers follow the policy for a loss as soon as with
// any other failure, because the lookup is part of the call.
func TestACallHasOneDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStoreOfNowhere(t)
		l, err := store.Limiter("vendor", throttle.TokenBucket(100, time.Second, 10))
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if err := shaping.NewQueue(l).Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took != distributed.DefaultDeadline {
			t.Errorf("Wait() took %v, want %v", took, distributed.DefaultDeadline)
		}
	})
}

// The same for callers that wait for a slot. The call itself ends at its own deadline.
func TestACallForSlotsHasOneDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStoreOfNowhere(t)
		f, err := store.Flights("vendor", 10)
		if err != nil {
			t.Fatal(err)
		}
		woken := make(chan time.Time, 10)
		f.Notify(func() { woken <- time.Now() })
		began := time.Now()
		f.Await(1)
		for i, want := range []time.Duration{distributed.DefaultDeadline, distributed.DefaultFirstDeadline} {
			if took := (<-woken).Sub(began); took != want {
				t.Errorf("woken %d. after %v, want %v", i+1, took, want)
			}
			if n, err := f.Room(); n != 1 || err != nil {
				t.Errorf("Room() = %d, %v, want one slot by the policy for a loss", n, err)
			}
		}
		f.Await(0)
	})
}

// newStoreOfNowhere returns a store of a Cluster that never answers where a key is.
func newStoreOfNowhere(t *testing.T) *distributed.Store {
	cluster := redis.NewClusterClient(&redis.ClusterOptions{
		ClusterSlots: func(ctx context.Context) ([]redis.ClusterSlot, error) {
			select {
			case <-ctx.Done():
			case <-time.After(time.Minute):
			}
			return nil, context.DeadlineExceeded
		},
	})
	store := distributed.New(cluster, "cluster")
	store.Logger = slog.New(slog.DiscardHandler)
	t.Cleanup(func() {
		store.Close()
		cluster.Close()
		time.Sleep(2 * time.Minute) // the client also asks by itself
	})
	return store
}
