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
	daily := throttle.LeakyBucket(1, 24*time.Hour)
	daily.Name = "daily report"
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
	// daily report rate 24h0m0s wait ends after the deadline
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
