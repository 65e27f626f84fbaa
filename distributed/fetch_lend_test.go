package distributed_test

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/internal/store"

	"github.com/weirgo/weir/distributed"
	"github.com/weirgo/weir/internal/redispipe"
	"github.com/weirgo/weir/throttle"
)

// A call is lent to a caller whose deadline allows it, while Redis is near and answers.
func TestACallIsLentToACallerThatCanWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newBubbleFleet(t, 1, 0, throttle.TokenBucket(100, time.Second, 10))
		f.meet()
		l, q := f.limiters[0].(store.Lender), f.queues[0]
		one := throttle.Request{N: 1}
		line := func(yield func(throttle.Request) bool) { yield(one) }
		for _, c := range []struct {
			waits time.Duration
			lent  bool
		}{{distributed.DefaultDeadline, false}, {time.Second, true}} {
			before, now := f.server.Calls(), q.Now()
			call := l.Lend(now, now.Add(c.waits), line)
			synctest.Wait()
			if made := f.server.Calls() > before; (call != nil) != c.lent || made == c.lent {
				t.Fatalf("waits %v: lent %t, made by the store %t, want lent %t and the contrary", c.waits, call != nil, made, c.lent)
			}
			if call != nil {
				call()
			}
			if granted, err := f.limiters[0].Take(q.Now(), one); err != nil || granted.At > q.Now() {
				t.Errorf("waits %v: Take() = %v, %v after the call, want a permit", c.waits, granted.At, err)
			}
		}
		l.Fetch(q.Now(), 2, slices.Values([]throttle.Request{one, one}))
		synctest.Wait()
		for range 2 {
			_, _ = l.(throttle.Limiter).Take(q.Now(), one)
		}
		if now := q.Now(); l.Lend(now, now.Add(time.Hour), line) != nil {
			t.Error("a call was lent though two waited in line a moment ago")
		}
		synctest.Wait()
		_, _ = l.(throttle.Limiter).Take(q.Now(), one)
		f.server.Break(redispipe.Silent)
		_ = q.Wait(t.Context())
		if now := q.Now(); l.Lend(now, now.Add(time.Hour), line) != nil {
			t.Error("a call to a Redis that does not answer was lent")
		}
		l.Fetch(q.Now(), 0, nil)
	})
}

// A caller that gives up while Redis has just stopped answering returns by its deadline.
func TestACancelledCallerReturnsByItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newBubbleFleet(t, 1, 0, throttle.TokenBucket(100, time.Second, 10))
		f.meet()
		f.server.Break(redispipe.Silent)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		time.AfterFunc(10*time.Millisecond, cancel)
		if err := f.queues[0].Wait(ctx); err != context.Canceled {
			t.Errorf("Wait() = %v, want context.Canceled", err)
		}
		if took := time.Since(f.start); took > distributed.DefaultDeadline {
			t.Errorf("the cancelled caller returned after %v, want %v at most", took, distributed.DefaultDeadline)
		}
	})
}

// A watcher panics in a call lent to a caller. That caller gets the panic, and the lane continues.
func TestAPanicInALentCallIsItsCallersAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newBubbleFleet(t, 1, prefetchTrip, throttle.TokenBucket(100, time.Second, 10))
		f.meet()
		for range 5 { // until Redis is measured as near
			_ = f.queues[0].Wait(t.Context())
			time.Sleep(time.Second)
		}
		var panics atomic.Int32
		panics.Store(2)
		f.limiters[0].(store.Limiter).Watch(store.Watch{Called: func(store.Call) {
			if panics.Add(-1) >= 0 {
				panic("watcher")
			}
		}})
		q := f.queues[0]
		wait := func() (panicked any, err error) {
			defer func() { panicked = recover() }()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			return nil, q.Wait(ctx)
		}
		if p, _ := wait(); p != "watcher" || q.Waiting() != 0 {
			t.Errorf("the lone caller recovers %v, and %d wait; want the watcher's panic, and none waiting", p, q.Waiting())
		}
		time.Sleep(time.Second) // until a caller waits alone again
		var others sync.WaitGroup
		time.AfterFunc(prefetchTrip/2, func() {
			for range 3 {
				others.Go(func() {
					if p, err := wait(); err != nil || p != nil {
						t.Errorf("Wait() = %v for a caller that came during the call, with a panic %v", err, p)
					}
				})
			}
		})
		if p, _ := wait(); p != "watcher" {
			t.Errorf("a caller recovers %v, want the watcher's panic", p)
		}
		others.Wait()
		if p, err := wait(); err != nil || p != nil {
			t.Errorf("Wait() = %v, with a panic %v", err, p)
		}
		if s := f.limiters[0].State(q.Now()); s.Store.Lost || s.Store.Unknown != 2 || s.Store.Failures != 2 {
			t.Errorf("the store is %+v, want two calls failed and their permits unknown, and no loss", s.Store)
		}
	})
}

// Sixteen workers loop under a loose limit. One call serves all of them, rather than two halves in
// turns.
func TestWorkersInALoopShareOneCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const workers, trip = 16, time.Millisecond
		f := newBubbleFleet(t, 1, trip, throttle.TokenBucket(1_000_000, time.Second, 100_000))
		f.meet()
		before := f.server.Calls()
		f.work(0, workers, 100*trip)
		f.wg.Wait()
		calls, gone := f.server.Calls()-before, len(f.all())
		t.Logf("%d departures by %d calls", gone, calls)
		if halves := 100 * workers / 2; gone < halves*17/16 || calls > 110 {
			t.Errorf("%d departures in %v by %d calls, want %d, and more than the %d of two halves", gone, 100*trip, calls, 2*halves, halves)
		}
	})
}
