package throttle_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/weirgo/weir/throttle"
)

func ExampleLimit() {
	limits := []throttle.Limit{
		throttle.TokenBucket(10, time.Second, 5),
		throttle.FixedWindow(20_000, 24*time.Hour),
	}
	limits[1].Align = throttle.AlignDay("America/New_York")
	text, _ := json.Marshal(limits)
	fmt.Println(string(text))
	fmt.Println(limits[0].PerSecond(), "per second in the long run")
	// Output:
	// ["10/s burst 5","fixed 20000/d align day@America/New_York"]
	// 10 per second in the long run
}

func ExampleParseLimit() {
	l, err := throttle.ParseLimit("5000/h fixed of points")
	fmt.Println(l.Permits, l.Per, l.Unit, err)
	_, err = throttle.ParseLimit("5000/fortnight")
	fmt.Println(err)
	// Output:
	// 5000 1h0m0s points <nil>
	// throttle: limit "5000/fortnight": per "fortnight" is not a duration such as s, 90s, 1m30s, h or d
}

func ExampleLocal() {
	limiter, err := throttle.Local{}.Limiter("", throttle.TokenBucket(10, time.Second, 2))
	if err != nil {
		panic(err)
	}
	now := throttle.InstantOf(time.Unix(1_700_000_000, 0))
	for range 3 {
		granted, _ := limiter.Take(now, throttle.Request{N: 1})
		if granted.At <= now {
			fmt.Println("go")
		} else {
			fmt.Println("ask again in", granted.At.Sub(now))
		}
	}
	_, err = limiter.Take(now, throttle.Request{N: 3})
	fmt.Println(errors.Is(err, throttle.ErrExceedsBurst))
	// Output:
	// go
	// go
	// ask again in 100ms
	// true
}

func ExampleRequest() {
	tokens := throttle.TokenBucket(1000, time.Second, 1000).Of("tokens")
	limiter, err := throttle.Local{}.Limiter("", throttle.TokenBucket(10, time.Second, 10), tokens)
	if err != nil {
		panic(err)
	}
	now := throttle.InstantOf(time.Unix(1_700_000_000, 0))
	call := throttle.Request{Each: []int{1, 600}} // one request of an estimated 600 tokens
	granted, _ := limiter.Take(now, call)
	limiter.Settle(now, granted, call, throttle.Request{Each: []int{1, 250}})
	fmt.Println(limiter.State(now).Limits[1].Headroom)
	// Output: 750
}

// A function decides: one call at a time.
func ExampleLimiterFunc() {
	flying := false
	limiter := throttle.LimiterFunc(func(now throttle.Instant, _ throttle.Request) (throttle.Instant, error) {
		if flying {
			return now.Add(10 * time.Millisecond), nil // ask again then
		}
		flying = true
		return now, nil
	})
	now := throttle.InstantOf(time.Unix(1_700_000_000, 0))
	for range 2 {
		granted, _ := limiter.Take(now, throttle.Request{N: 1})
		fmt.Println(granted.At.Sub(now))
	}
	// Output:
	// 0s
	// 10ms
}
