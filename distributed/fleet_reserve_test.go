package distributed_test

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirgo/weir/distributed"
	"github.com/weirgo/weir/internal/redistest"
	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// The vendor allows 250 calls in each window of two seconds. 50 are left to others, and 40 of the
// rest are reserved for urgent calls. Bulk calls at one replica would use the whole window at its
// start, and nine in ten urgent calls at the other replica would wait up to nine tenths of it. They
// wait for half of it at most, on any machine.
func TestWindowKeepsAndReserves(t *testing.T) {
	t.Parallel()
	const per, windows = 2 * time.Second, 4
	limit, err := throttle.ParseLimit("fixed 250/2s keep 20% reserve 20%")
	if err != nil {
		t.Fatal(err)
	}
	addr := redistest.Start(t).Addr()
	queues := make([]*shaping.Queue, 2)
	for i := range queues {
		client := redis.NewClient(&redis.Options{Addr: addr})
		t.Cleanup(func() { client.Close() })
		store := distributed.New(client, "kept")
		store.Logger = slog.New(slog.DiscardHandler)
		t.Cleanup(func() { store.Close() })
		limiter, err := store.Limiter("vendor", limit)
		if err != nil {
			t.Fatal(err)
		}
		queues[i] = shaping.NewQueue(limiter)
	}
	var mu sync.Mutex
	var departed []throttle.Instant
	depart := func(ctx context.Context, q *shaping.Queue) bool {
		turn := shaping.Turn{N: 1}
		if q.WaitTurn(ctx, &turn) != nil {
			return false
		}
		mu.Lock()
		defer mu.Unlock()
		departed = append(departed, turn.Departure().Grant.At)
		return true
	}
	ctx, cancel := context.WithTimeout(t.Context(), windows*per)
	defer cancel()
	var bulk sync.WaitGroup
	for range 20 {
		bulk.Go(func() {
			for depart(ctx, queues[0]) {
			}
		})
	}
	var waits []time.Duration
	for ctx.Err() == nil {
		time.Sleep(per / 20)
		asked := time.Now()
		if !depart(shaping.WithPriority(ctx, shaping.PriorityHigh), queues[1]) {
			break
		}
		waits = append(waits, time.Since(asked))
	}
	bulk.Wait()
	slices.Sort(waits)
	t.Logf("%d departures, urgent waits %s", len(departed), quantiles(waits))
	if late := waits[len(waits)*9/10]; late > per/2 {
		t.Errorf("one urgent call in ten waited %v or longer, want %v at most", late, per/2)
	}
	counts := make(map[int64]int)
	for _, at := range departed {
		counts[int64(at)/int64(per)]++
	}
	// The clock of Redis decides on a departure, and the queue's clock dates it. Within the
	// tolerance of 10 ms it may count in the neighbouring window.
	for _, n := range counts {
		if n > 200+2 {
			t.Errorf("windows have %v departures, want 200 at most", counts)
		}
	}
	if len(departed) < 200*(windows-1)/4 {
		t.Errorf("%d departures in %d windows", len(departed), windows)
	}
}
