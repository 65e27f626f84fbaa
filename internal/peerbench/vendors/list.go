package main

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/weirgo/weir/internal/testserver"
)

// A vendor is a server, and how it reports its state.
type vendor struct {
	limits []testserver.Limit
	word   string // of says
}

// says are the ways in which a vendor reports its state.
var says = map[string][]testserver.Style{
	"nothing":           nil,
	"Retry-After":       {testserver.RetryAfterSeconds},
	"Retry-After-Ms":    {testserver.RetryAfterMillis},
	"X-RateLimit epoch": {testserver.XRateLimitEpoch, testserver.RetryAfterSeconds},
	"X-RateLimit delta": {testserver.XRateLimitDelta, testserver.RetryAfterSeconds},
	"RateLimit":         {testserver.RateLimit, testserver.RetryAfterSeconds},
	"coarse":            {testserver.Coarse},
}

// vendors returns the servers to call. None of them is a row of the learner's table.
func vendors() []vendor {
	bucket := func(word string, rate, burst int) vendor {
		return vendor{[]testserver.Limit{testserver.TokenBucket(rate, time.Second, burst)}, word}
	}
	one := func(word string, l testserver.Limit) vendor { return vendor{[]testserver.Limit{l}, word} }
	return []vendor{
		bucket("nothing", 2, 1),
		bucket("nothing", 7, 1),
		bucket("nothing", 60, 5),
		bucket("nothing", 500, 50),
		bucket("Retry-After", 120, 1),
		bucket("Retry-After", 30, 10),
		bucket("Retry-After-Ms", 45, 1),
		bucket("X-RateLimit delta", 25, 25),
		bucket("RateLimit", 300, 30),
		bucket("coarse", 80, 8),
		one("nothing", testserver.FixedWindow(40, 4*time.Second)),
		one("Retry-After", testserver.FixedWindow(100, 10*time.Second)),
		one("X-RateLimit epoch", testserver.FixedWindow(150, 3*time.Second)),
		one("nothing", testserver.FirstUseWindow(50, 5*time.Second)),
		one("RateLimit", testserver.FirstUseWindow(80, 8*time.Second)),
		one("nothing", testserver.SlidingLog(200, 5*time.Second)),
		one("Retry-After", testserver.SlidingLog(30, 3*time.Second)),
		one("Retry-After-Ms", testserver.SlidingLog(90, 9*time.Second)),
		one("RateLimit", testserver.SlidingLog(60, 6*time.Second)),
		one("X-RateLimit delta", testserver.SlidingLog(100, 2*time.Second)),
		one("nothing", testserver.Concurrency(5)),
		one("RateLimit", testserver.Concurrency(12)),
		{[]testserver.Limit{testserver.TokenBucket(40, time.Second, 8), testserver.FixedWindow(200, 10*time.Second)}, "X-RateLimit epoch"},
		{[]testserver.Limit{testserver.TokenBucket(50, time.Second, 5), testserver.Concurrency(6)}, "nothing"},
	}
}

// service is how long a vendor takes to answer a call that it serves.
const service = 20 * time.Millisecond

// rate returns how many calls a second the vendor serves at most.
func (v vendor) rate() float64 {
	rate := math.Inf(1)
	for _, l := range v.limits {
		per := l.Per
		if per == 0 { // calls in flight
			per = service
		}
		rate = min(rate, float64(l.Permits)/per.Seconds())
	}
	return rate
}

// rules names the vendor's limits.
func (v vendor) rules() string {
	var all []string
	for _, l := range v.limits {
		all = append(all, l.String())
	}
	return strings.Join(all, " + ")
}

func (v vendor) name() string { return fmt.Sprintf("%s, %s", v.rules(), v.word) }
