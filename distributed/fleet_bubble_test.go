package distributed_test

import (
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/weirgo/weir/distributed"
	"github.com/weirgo/weir/internal/redispipe"
	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// A bubbleFleet is replicas in a synctest bubble over one Redis inside the process, each with its
// own client, store and queue. Instants are exact. Tests of Redis itself, or of time that passes by
// itself, use real processes.
type bubbleFleet struct {
	t        *testing.T
	server   *redispipe.Server
	stores   []*distributed.Store
	limiters []throttle.Limiter
	queues   []*shaping.Queue
	start    time.Time
	wg       sync.WaitGroup

	mu   sync.Mutex
	left [][]time.Duration // departures of each replica
}

func newBubbleFleet(t *testing.T, replicas int, roundTrip time.Duration, limits ...throttle.Limit) *bubbleFleet {
	t.Helper()
	return newBubbleFleetOf(t, replicas, roundTrip, func(*distributed.Store) {}, limits...)
}

// newBubbleFleetOf returns replicas whose stores are configured by set.
func newBubbleFleetOf(t *testing.T, replicas int, roundTrip time.Duration, set func(*distributed.Store), limits ...throttle.Limit) *bubbleFleet {
	t.Helper()
	f := &bubbleFleet{t: t, server: redispipe.Start(t, roundTrip), start: time.Now(), left: make([][]time.Duration, replicas)}
	for range replicas {
		store := distributed.New(f.server.Client(t), "fleet")
		store.Logger = slog.New(slog.DiscardHandler)
		set(store)
		limiter, err := store.Limiter("vendor", limits...)
		if err != nil {
			t.Fatal(err)
		}
		f.stores = append(f.stores, store)
		f.limiters = append(f.limiters, limiter)
		f.queues = append(f.queues, shaping.NewQueue(limiter))
		t.Cleanup(func() { store.Close() })
	}
	return f
}

// meet makes every replica known to the server: it connects them and loads the script. A minute
// later buckets are full again, and instants are counted from there.
func (f *bubbleFleet) meet() {
	f.t.Helper()
	for _, q := range f.queues {
		if err := q.Wait(f.t.Context()); err != nil {
			f.t.Fatal(err)
		}
	}
	time.Sleep(time.Minute) // of the bubble
	f.start = time.Now()
}

// work runs workers that wait in a loop at a replica until a time.
func (f *bubbleFleet) work(replica, workers int, until time.Duration) {
	f.workAt(f.queues[replica], replica, workers, until)
}

// workAt runs workers that wait in a replica's queue until a time.
func (f *bubbleFleet) workAt(q *shaping.Queue, replica, workers int, until time.Duration) {
	for range workers {
		f.wg.Go(func() {
			for {
				turn := shaping.Turn{N: 1, MaxWait: time.Hour}
				if err := q.WaitTurn(f.t.Context(), &turn); err != nil {
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

func (f *bubbleFleet) all() []time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Sorted(slices.Values(slices.Concat(f.left...)))
}

// bounded tests that departures stay within rate and burst in every window.
func (f *bubbleFleet) bounded(rate, burst int) {
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
