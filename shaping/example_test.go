package shaping_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

func ExampleQueue_Wait() {
	limiter, err := throttle.Local{}.Limiter("mail", throttle.LeakyBucket(100, time.Second))
	if err != nil {
		fmt.Println(err)
		return
	}
	queue := shaping.NewQueue(limiter)
	defer queue.Close()
	start := time.Now()
	for range 3 {
		if err := queue.Wait(context.Background()); err != nil {
			fmt.Println(err)
			return
		}
	}
	fmt.Println("three mails, 10 ms apart:", time.Since(start) >= 20*time.Millisecond)
	// Output: three mails, 10 ms apart: true
}

// A wait that cannot end in time is refused before it begins, and the error
// says how long it would have been.
func ExampleError() {
	daily := throttle.LeakyBucket(1, 24*time.Hour).Named("daily report")
	limiter, err := throttle.Local{}.Limiter("reports", daily)
	if err != nil {
		fmt.Println(err)
		return
	}
	queue := shaping.NewQueue(limiter)
	queue.MaxWait = time.Minute
	fmt.Println(queue.Wait(context.Background()))
	var refused *shaping.Error
	if errors.As(queue.Wait(context.Background()), &refused) {
		fmt.Println(refused.Limit, refused.Reason, refused.Wait.Round(time.Hour), refused.Err)
	}
	// Output:
	// <nil>
	// daily report rate 24h0m0s wait exceeds MaxWait
}

func ExampleQueue_Pause() {
	limiter, err := throttle.Local{}.Limiter("mail", throttle.TokenBucket(10, time.Second, 5))
	if err != nil {
		fmt.Println(err)
		return
	}
	queue := shaping.NewQueue(limiter)
	queue.Pause(2 * time.Minute)
	turn := shaping.Turn{N: 1, MaxWait: time.Minute}
	err = queue.WaitTurn(context.Background(), &turn)
	fmt.Println(errors.Is(err, shaping.ErrDeadline), errors.Is(err, context.DeadlineExceeded))
	// Output: true true
}

// New limits apply at once, also to callers in line.
func ExampleQueue_Tune() {
	limiter, err := throttle.Local{}.Limiter("mail", throttle.TokenBucket(1, time.Hour, 1))
	if err != nil {
		fmt.Println(err)
		return
	}
	queue := shaping.NewQueue(limiter)
	waits := make(chan time.Duration)
	queue.Hook = &shaping.Hook{Wait: func(_ context.Context, w shaping.Wait) func(error) {
		waits <- w.Planned
		return nil
	}}

	sent := make(chan error)
	go func() {
		for range 2 {
			sent <- queue.Wait(context.Background())
		}
	}()
	fmt.Println("first:", <-sent)
	fmt.Println("second waits", (<-waits).Round(time.Hour))
	if err := queue.Tune(throttle.TokenBucket(1000, time.Second, 1)); err != nil {
		fmt.Println(err)
	}
	fmt.Println("second:", <-sent)
	// Output:
	// first: <nil>
	// second waits 1h0m0s
	// second: <nil>
}

// A call has a cost for each limit: here one request and an estimate of 600 tokens, which is
// corrected by the answer.
func ExampleQueue_WaitTurn() {
	tokens := throttle.TokenBucket(1000, 24*time.Hour, 1000).Of("tokens")
	limiter, err := throttle.Local{}.Limiter("model", throttle.TokenBucket(10, time.Second, 10), tokens)
	if err != nil {
		fmt.Println(err)
		return
	}
	queue := shaping.NewQueue(limiter)

	turn := shaping.Turn{Each: []int{1, 600}, MaxWait: time.Minute}
	if err := queue.WaitTurn(context.Background(), &turn); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%.0f tokens at hand\n", queue.State().Limits[1].Headroom)
	queue.Settle(turn.Departure(), throttle.Request{Each: []int{1, 250}})
	fmt.Printf("%.0f tokens at hand\n", queue.State().Limits[1].Headroom)
	// Output:
	// 400 tokens at hand
	// 750 tokens at hand
}

// The vendor refused a call and asked for two minutes. No call departs before they are over, and
// callers with less time are rejected at once.
func ExampleQueue_Reconcile() {
	limiter, err := throttle.Local{}.Limiter("api", throttle.TokenBucket(10, time.Second, 5))
	if err != nil {
		fmt.Println(err)
		return
	}
	queue := shaping.NewQueue(limiter)
	queue.MaxWait = time.Minute

	if err := queue.Wait(context.Background()); err != nil {
		fmt.Println(err)
		return
	}
	queue.Reconcile(throttle.Fact{Until: queue.Now().Add(2 * time.Minute)})

	var refused *shaping.Error
	if errors.As(queue.Wait(context.Background()), &refused) {
		fmt.Println(refused.Reason, refused.Wait.Round(time.Minute))
	}
	// Output: pause 2m0s
}
