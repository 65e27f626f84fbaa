package limitertest

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// everySecond grants one permit each second, without a burst.
var everySecond = []throttle.Limit{throttle.LeakyBucket(1, time.Second)}

var waitingRules = []waitingRule{
	{"a decision takes no time", everySecond, func(w *waiting) {
		for range 2 {
			now := w.queue.Now()
			w.limiter.Forecast(now, throttle.Request{N: 1, Since: now})
			_, _ = w.limiter.Take(now, throttle.Request{N: 1, Since: now})
			w.limiter.State(now)
		}
		if slept := time.Since(w.start); slept > 0 {
			w.Errorf("%s: two took %v", w.rule, slept)
		}
	}},
	{"callers depart in order of arrival, at the limit's instants", []throttle.Limit{throttle.LeakyBucket(7, time.Second)}, func(w *waiting) {
		var want []string
		for i := range 12 {
			w.come(fmt.Sprintf("%02d", i), cost(1))
			want = append(want, fmt.Sprintf("%02d %v", i, w.tickAt((time.Duration(i)*time.Second+6)/7)))
		}
		w.want(want...)
	}},
	{"a whole bucket's burst departs at once, and the rest at the rate", []throttle.Limit{throttle.TokenBucket(10, time.Second, 3)}, func(w *waiting) {
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			w.come(name, cost(1))
		}
		w.want("a 0s", "b 0s", "c 0s", "d 100ms", "e 200ms")
	}},
	{"idleness saves up no more than the burst", []throttle.Limit{throttle.TokenBucket(10, time.Second, 2)}, func(w *waiting) {
		w.come("first", cost(1))
		w.pass(time.Hour)
		for _, name := range []string{"a", "b", "c"} {
			w.come(name, cost(1))
		}
		w.want("first 0s", "a 1h0m0s", "b 1h0m0s", "c 1h0m0.1s")
	}},
	{"a caller who asks for more waits for it, and nobody passes it by", []throttle.Limit{throttle.TokenBucket(10, time.Second, 5)}, func(w *waiting) {
		w.come("five", cost(5))
		w.come("three", cost(3))
		w.come("one", cost(1))
		w.want("five 0s", "three 300ms", "one 400ms")
	}},
	{"what can never be granted is an error at once", []throttle.Limit{throttle.TokenBucket(10, time.Second, 5)}, func(w *waiting) {
		w.come("six", cost(6))
		w.come("five", cost(5))
		w.want("five 0s", "six 0s too much")
	}},
	{"a caller that asks for nothing passes", everySecond, func(w *waiting) {
		w.come("a", cost(1))
		w.come("probe", cost(0))
		w.want("a 0s", "probe 0s")
	}},
	{"a turn that comes back stands where its first arrival puts it", everySecond, func(w *waiting) {
		turn := cost(1)
		w.come("first", turn)
		w.come("second", cost(1))
		w.come("third", cost(1))
		w.pass(500 * time.Millisecond)
		w.come("first again", turn)
		w.want("first 0s", "first again 1s", "second 2s", "third 3s")
	}},
	{"a wait that is certain to end too late ends at once", everySecond, func(w *waiting) {
		w.come("a", cost(1))
		w.come("in time", atMostWaiting(time.Second))
		w.come("too late", atMostWaiting(time.Second-1))
		w.want("a 0s", "too late 0s too late", "in time 1s")
	}},
	{"a wait for those before is no reason to be refused", everySecond, func(w *waiting) {
		ctx, cancel := context.WithCancel(w.Context())
		w.come("a", cost(1))
		w.comeWith(ctx, "gone", cost(1))
		w.comeWith(ctx, "gone", cost(1))
		w.come("patient", atMostWaiting(1500*time.Millisecond))
		w.pass(100 * time.Millisecond)
		cancel()
		w.want("a 0s", "gone 100ms cancelled", "gone 100ms cancelled", "patient 1s")
	}},
	{"a wait ends a millisecond before its context", everySecond, func(w *waiting) {
		ctx, cancel := context.WithTimeout(w.Context(), time.Second+time.Millisecond)
		defer cancel()
		short, stop := context.WithTimeout(w.Context(), time.Second+time.Millisecond-1)
		defer stop()
		w.come("a", cost(1))
		w.comeWith(ctx, "in time", cost(1))
		w.comeWith(short, "too late", cost(1))
		w.want("a 0s", "too late 0s too late", "in time 1s")
	}},
	{"a full line refuses newcomers", everySecond, func(w *waiting) {
		w.queue.MaxWaiting = 1
		w.come("a", cost(1))
		w.come("b", cost(1))
		w.come("c", cost(1))
		w.want("a 0s", "c 0s full", "b 1s")
	}},
	{"who gives up costs the others nothing", everySecond, func(w *waiting) {
		ctx, cancel := context.WithCancel(w.Context())
		w.come("a", cost(1))
		for range 5 {
			w.comeWith(ctx, "gone", cost(1))
		}
		w.come("b", cost(1))
		w.comeWith(ctx, "gone", cost(1))
		w.come("c", cost(1))
		w.pass(999 * time.Millisecond)
		cancel()
		want := []string{"a 0s"}
		for range 6 {
			want = append(want, "gone 999ms cancelled")
		}
		w.want(append(want, "b 1s", "c 2s")...)
	}},
	{"permits that come back go to the next at once", []throttle.Limit{throttle.TokenBucket(1, time.Second, 2)}, func(w *waiting) {
		turn := cost(2)
		w.come("returned", turn)
		w.come("a", cost(1))
		w.come("b", cost(1))
		w.pass(50 * time.Millisecond)
		w.queue.Return(turn)
		w.want("returned 0s", "a 50ms", "b 50ms")
	}},
	{"a pause holds everybody, and its end lets them go at the limit's instants", []throttle.Limit{throttle.TokenBucket(10, time.Second, 5)}, func(w *waiting) {
		w.come("before", cost(5))
		w.come("a", cost(1))
		w.come("b", cost(1))
		w.pass(50 * time.Millisecond)
		w.queue.Pause(2 * time.Second)
		w.come("c", cost(1))
		w.want("before 0s", "a 2.05s", "b 2.15s", "c 2.25s")
	}},
	{"a pause refuses those in line who cannot wait for its end", everySecond, func(w *waiting) {
		w.come("a", cost(1))
		w.come("patient", atMostWaiting(5*time.Second))
		w.come("hasty", atMostWaiting(4*time.Second))
		w.pass(500 * time.Millisecond)
		w.queue.Pause(4 * time.Second)
		w.want("a 0s", "hasty 500ms too late", "patient 4.5s")
	}},
	{"close sends everybody away at once", everySecond, func(w *waiting) {
		w.come("a", cost(1))
		w.come("b", cost(1))
		w.come("c", cost(1))
		w.pass(100 * time.Millisecond)
		w.queue.Close()
		w.come("d", cost(1))
		w.want("a 0s", "b 100ms closed", "c 100ms closed", "d 100ms closed")
	}},
	{"what is called at the same time grants each permit once", []throttle.Limit{throttle.TokenBucket(1, time.Hour, 20)}, func(w *waiting) {
		w.come("first", cost(1))
		now := w.queue.Now()
		var granted atomic.Int64
		for range 8 {
			w.all.Go(func() {
				for range 100 {
					r := throttle.Request{N: 1, Since: now}
					w.limiter.Forecast(now, r)
					if g, err := w.limiter.Take(now, r); err == nil && g.At <= now {
						granted.Add(1)
						w.limiter.Settle(now, g, r, r)
					}
					w.limiter.State(now)
					w.limiter.Reconcile(now, throttle.Fact{})
					w.limiter.Tolerance()
				}
			})
		}
		w.all.Wait()
		_, remote := w.limiter.(throttle.Remote) // its permits may still be in the store
		if n := granted.Load(); n > 19 || n < 19 && !remote {
			w.Errorf("%s: %d of the 19 permits were granted", w.rule, n)
		}
	}},
	{"a permit whose caller slept too long is void", everySecond, func(w *waiting) {
		type sleeps struct{}
		once := true
		w.queue.Hook = &shaping.Hook{Wait: func(ctx context.Context, _ shaping.Wait) func(error) {
			if ctx.Value(sleeps{}) != nil && once {
				once = false
				time.Sleep(5500 * time.Millisecond)
			}
			return nil
		}}
		w.come("a", cost(1))
		w.comeWith(context.WithValue(w.Context(), sleeps{}, true), "sleeper", cost(1)) // its permit is dated 1s
		w.pass(5500 * time.Millisecond)
		w.come("b", cost(1))
		w.come("c", cost(1))
		w.want("a 0s", "sleeper 5.5s", "b 6.5s", "c 7.5s")
	}},
}

// tuneRules are those of a store that applies one caller's limits at once.
var tuneRules = []waitingRule{
	{"new limits re-time everybody in line", []throttle.Limit{throttle.LeakyBucket(1, 10*time.Second)}, func(w *waiting) {
		w.come("a", cost(1))
		w.come("b", cost(1))
		w.come("c", cost(1))
		w.pass(5 * time.Second)
		if err := w.queue.Tune(everySecond...); err != nil {
			w.Errorf("%s: Tune() = %v", w.rule, err)
		}
		w.want("a 0s", "b 5.5s", "c 6.5s")
	}},
}
