package distributed_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/distributed"
	"github.com/weirgo/weir/internal/redispipe"
	"github.com/weirgo/weir/throttle"
)

// The call is lent to who can wait for it, while Redis is near and answers.
func TestACallIsLentToWhoCanWaitForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newBubbleFleet(t, 1, 0, throttle.TokenBucket(100, time.Second, 10))
		f.meet()
		l, q := f.limiters[0].(throttle.Lender), f.queues[0]
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
				t.Fatalf("lent to who waits %v: %t, made without it: %t, want %t and the contrary", c.waits, call != nil, made, c.lent)
			}
			if call != nil {
				call()
			}
			if at, err := f.limiters[0].Take(q.Now(), one); err != nil || at > q.Now() {
				t.Errorf("waits %v: Take() = %v, %v after the call, want a permit", c.waits, at, err)
			}
		}
		l.Fetch(q.Now(), 2, slices.Values([]throttle.Request{one, one}))
		synctest.Wait()
		for range 2 {
			_, _ = l.(throttle.Limiter).Take(q.Now(), one)
		}
		if now := q.Now(); l.Lend(now, now.Add(time.Hour), line) != nil {
			t.Error("a call was lent though two stood in line a moment ago")
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

// Who gives up during a call to a Redis that has just ceased to answer is out by its
// deadline.
func TestWhoGivesUpDuringItsCallIsOutByItsDeadline(t *testing.T) {
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
			t.Errorf("who gave up was out after %v, want %v at most", took, distributed.DefaultDeadline)
		}
	})
}
