package throttle_test

import (
	"fmt"
	"time"

	"github.com/weirgo/weir/throttle"
)

// A half is a store that leaves half of each rate to others, such as a second
// data center.
type half struct{ throttle.Store }

func (h half) Limiter(key string, limits ...throttle.Limit) (throttle.Limiter, error) {
	l, err := h.Store.Limiter(key, halved(limits)...)
	return halfLimiter{l}, err
}

// A halfLimiter is the limiter of a half: it is given whole limits, also when
// they change.
type halfLimiter struct{ throttle.Limiter }

func (l halfLimiter) Tune(now throttle.Instant, limits ...throttle.Limit) error {
	return l.Limiter.Tune(now, halved(limits)...)
}

func halved(limits []throttle.Limit) []throttle.Limit {
	out := make([]throttle.Limit, len(limits))
	for i, l := range limits {
		l.Per *= 2
		out[i] = l
	}
	return out
}

// A user's own store can be the Store of a weir.Transport. Package limitertest holds the rules for
// its limiters.
func ExampleStore() {
	var store throttle.Store = half{throttle.Local{}}
	limiter, err := store.Limiter("", throttle.TokenBucket(10, time.Second, 1))
	if err != nil {
		panic(err)
	}
	now := throttle.InstantOf(time.Unix(1_700_000_000, 0))
	for range 2 {
		granted, _ := limiter.Take(now, throttle.Request{N: 1})
		fmt.Println(granted.At.Sub(now))
	}
	if err := limiter.Tune(now, throttle.TokenBucket(100, time.Second, 1)); err != nil {
		panic(err)
	}
	fmt.Println(limiter.State(now).Limits[0].Limit.PerSecond(), "per second")
	// Output:
	// 0s
	// 200ms
	// 50 per second
}
