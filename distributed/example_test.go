package distributed_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/weirgo/weir/distributed"
	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// Two replicas share a burst of three: together they send three at once, and
// the fourth waits.
func Example() {
	server, err := miniredis.Run()
	if err != nil {
		panic(err)
	}
	defer server.Close()

	var replicas []*shaping.Queue
	for range 2 {
		rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
		defer rdb.Close()
		store := distributed.New(rdb, "billing")
		defer store.Close()
		limiter, err := store.Limiter("api.example.com", throttle.TokenBucket(1, time.Second, 3))
		if err != nil {
			panic(err)
		}
		replicas = append(replicas, shaping.NewQueue(limiter))
	}

	start := time.Now()
	for i := range 4 {
		if err := replicas[i%2].Wait(context.Background()); err != nil {
			panic(err)
		}
		fmt.Printf("replica %d sent, after a wait: %v\n", i%2, time.Since(start) > 900*time.Millisecond)
	}
	// Output:
	// replica 0 sent, after a wait: false
	// replica 1 sent, after a wait: false
	// replica 0 sent, after a wait: false
	// replica 1 sent, after a wait: true
}

// A quota must never be exceeded: while Redis does not answer, callers are rejected.
func ExampleLoss() {
	server, err := miniredis.Run()
	if err != nil {
		panic(err)
	}
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer rdb.Close()
	store := distributed.New(rdb, "billing")
	store.OnLoss = distributed.FailClosed
	store.Logger = slog.New(slog.DiscardHandler)
	defer store.Close()
	limiter, err := store.Limiter("api.example.com", throttle.TokenBucket(10, time.Second, 3))
	if err != nil {
		panic(err)
	}
	queue := shaping.NewQueue(limiter)

	fmt.Println("sent:", queue.Wait(context.Background()) == nil)
	server.Close()
	for {
		if err := queue.Wait(context.Background()); err != nil {
			fmt.Println("unavailable:", errors.Is(err, distributed.ErrUnavailable))
			return
		}
	}
	// Output:
	// sent: true
	// unavailable: true
}
