// Package xrate lets golang.org/x/time/rate and this module stand in for each other.
// [Limiter] puts a [shaping.Queue] in front of a [rate.Limiter] from which other code
// spends, too. [Waiter] gives a queue the methods of a rate.Limiter.
package xrate

import (
	"context"
	"fmt"
	"math"
	"time"

	"golang.org/x/time/rate"

	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// Limiter returns a limiter that spends the tokens of l: one for each permit that a request asks of
// the first limit. Code that uses l itself shares them. The limiter is made by
// [throttle.LimiterFunc]: tokens that are given back are lost, and limits are changed by l.SetLimit
// and l.SetBurst. It panics if l is nil.
func Limiter(l *rate.Limiter) throttle.Limiter {
	if l == nil {
		panic("xrate: Limiter of nil")
	}
	made := time.Now() // its monotonic reading makes instants comparable with those of code that uses l
	return throttle.LimiterFunc(func(now throttle.Instant, r throttle.Request) (throttle.Instant, error) {
		at, n := made.Add(now.Sub(throttle.InstantOf(made))), r.Of(0)
		// Nothing is reserved and cancelled: a rate.Limiter may lose tokens by that
		// if others reserve meanwhile.
		if l.AllowN(at, n) {
			return now, nil
		}
		if burst := l.Burst(); n > burst {
			return 0, fmt.Errorf("xrate: %d tokens of a burst of %d: %w", n, burst, throttle.ErrExceedsBurst)
		}
		missing := (float64(n) - l.TokensAt(at)) / max(float64(l.Limit()), 0)
		return now.Add(delayOf(missing)), nil
	})
}

// longest is how long a call waits at most before it asks again, because the rate may have been
// raised.
const longest = time.Second

// delayOf returns a number of seconds as a duration, rounded up.
func delayOf(seconds float64) time.Duration {
	if !(seconds < longest.Seconds()) { // not a number, if the rate is zero
		return longest
	}
	return max(time.Duration(math.Ceil(seconds*1e9)), 1)
}

// A Waiter is a queue with the methods of a [rate.Limiter] that spend: for code that
// takes an interface of them. Its methods are safe for concurrent use. Limits are
// changed by [shaping.Queue.Tune].
type Waiter struct {
	*shaping.Queue // its Wait and WaitN have the contract of rate's, and their errors say more
}

// Allow reports whether a call may go now, and spends its permit if it may.
func (w Waiter) Allow() bool { return w.AllowN(time.Now(), 1) }

// AllowN is [Waiter.Allow] for n permits of each limit. The instant is ignored: it is always now.
// While others wait, it returns false.
func (w Waiter) AllowN(_ time.Time, n int) bool {
	if w.Waiting() > 0 {
		return false
	}
	return w.WaitTurn(context.Background(), &shaping.Turn{N: n, MaxWait: 1}) == nil
}

// Limit returns the rate of the slowest limit; rate.Inf if there is none.
func (w Waiter) Limit() rate.Limit {
	slowest := rate.Inf
	for _, l := range w.State().Limits {
		slowest = min(slowest, rate.Limit(l.Limit.PerSecond()))
	}
	return slowest
}
