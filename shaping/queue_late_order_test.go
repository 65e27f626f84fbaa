package shaping

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/throttle"
)

// A tally counts granted permits that did not come back.
type tally struct {
	throttle.Limiter
	spent atomic.Int32
}

func (l *tally) Take(now throttle.Instant, r throttle.Request) (throttle.Grant, error) {
	g, err := l.Limiter.Take(now, r)
	if err == nil && g.At <= now {
		l.spent.Add(1)
	}
	return g, err
}

func (l *tally) Refund(now throttle.Instant, g throttle.Grant, r throttle.Request) {
	l.spent.Add(-1)
	l.Limiter.Refund(now, g, r)
}

// A silent alarm does not ring: its timer is very late.
type silent struct{}

func (silent) Reset(time.Duration) bool { return false }
func (silent) Stop() bool               { return false }

// A napper is a sleeper once it is tired.
type napper struct {
	sleeper
	tired *atomic.Bool
}

func (n napper) Err() error {
	if n.tired.Load() {
		return n.sleeper.Err()
	}
	return n.Context.Err()
}

// A caller wakes too late, while the timer of the head before it is late as well. It does not
// depart by the instant of that head's permit: it waits for its own.
func TestLateCallerBehindALateHeadPays(t *testing.T) {
	for name, c := range map[string]struct {
		urgent func(context.Context) context.Context
		comes  time.Duration // arrival of the other one
	}{
		"a class above":          {func(ctx context.Context) context.Context { return WithPriority(ctx, PriorityHigh) }, 11 * time.Millisecond},
		"a tenant that had less": {func(ctx context.Context) context.Context { return WithTenant(ctx, "other", 1) }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := lateQueue(t, 0, throttle.LeakyBucket(100, time.Second)) // tolerance 20ms
				limiter := &tally{Limiter: q.limiter}
				q.limiter, q.alarm = limiter, silent{}
				wait(t, q)
				var naps atomic.Bool
				var wg sync.WaitGroup
				come := func(ctx context.Context) {
					wg.Go(func() {
						if err := q.Wait(ctx); err != nil {
							t.Error(err)
						}
					})
					synctest.Wait()
				}
				come(napper{sleeper{t.Context(), q, 50 * time.Millisecond}, &naps})
				naps.Store(true)
				wg.Go(func() {
					time.Sleep(c.comes)
					come(c.urgent(t.Context()))
				})
				time.Sleep(10 * time.Millisecond)
				q.wake()
				for range 3 {
					time.Sleep(time.Second)
					naps.Store(false)
					q.wake()
				}
				wg.Wait()
				if n := q.State().Stale; limiter.spent.Load() != 3 || n == 0 {
					t.Errorf("3 callers left for %d permits, %d were void, want 3 and some", limiter.spent.Load(), n)
				}
			})
		})
	}
}
