package shaping_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// slow is a slow hook: its caller wakes late.
func slow(d time.Duration) func(context.Context, shaping.Wait) func(error) {
	return func(context.Context, shaping.Wait) func(error) {
		time.Sleep(d)
		return nil
	}
}

func TestHookIsCalledOnceForEachRealWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit := throttle.LeakyBucket(1, time.Second).Named("mail")
		q := newQueue(t, limit)
		var mu sync.Mutex
		var seen []string
		note := func(format string, a ...any) {
			mu.Lock()
			defer mu.Unlock()
			seen = append(seen, fmt.Sprintf(format, a...))
		}
		q.Hook = &shaping.Hook{Wait: func(_ context.Context, w shaping.Wait) func(error) {
			note("%v behind %d, visit %d, %s %s", w.Planned, w.Waiting, w.Visits, w.Reason, w.Limit)
			return func(err error) {
				if err != nil {
					err = errors.New(word(err))
				}
				note("ended %v", err)
			}
		}}
		j := newJournal(t, q)
		turn := one()
		j.come(t.Context(), "a fast pass", turn)
		j.come(t.Context(), "b", turn)
		j.come(t.Context(), "c", within(1500*time.Millisecond))
		j.come(t.Context(), "refused at once", within(time.Millisecond))
		j.want("a fast pass 0s", "refused at once 0s deadline", "b 1s", "c 1s deadline")
		want := []string{
			"1s behind 0, visit 1, rate mail",
			"1s behind 1, visit 0, rate mail",
			"ended <nil>",
			"ended deadline",
		}
		slices.Sort(seen[2:]) // both at 1s
		slices.Sort(want[2:])
		if !slices.Equal(seen, want) {
			t.Errorf("seen\n%q, want\n%q", seen, want)
		}
	})
}

func TestHookIsCalledForPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t)
		var seen []shaping.Wait
		q.Hook = &shaping.Hook{Wait: func(_ context.Context, w shaping.Wait) func(error) {
			seen = append(seen, w)
			return nil
		}}
		q.Pause(time.Second)
		j := newJournal(t, q)
		j.come(t.Context(), "a", one())
		j.want("a 1s")
		if want := (shaping.Wait{Queue: q, Planned: time.Second, Reason: throttle.ReasonPause}); !slices.Equal(seen, []shaping.Wait{want}) {
			t.Errorf("seen %+v, want %+v", seen, want)
		}
	})
}

// A caller that wakes later than the tolerance has lost its permit. It returns to the head of the
// line, and its hook gets one wait. Without a later charge the limiter gets the permit back too.
func TestQueueVoidsPermitsOfCallersThatWakeTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := &refunds{Limiter: newLimiter(t, throttle.LeakyBucket(100, time.Second))} // tolerance 20ms
		q := shaping.NewQueue(limiter)
		var begun, ended atomic.Int32
		q.Hook = &shaping.Hook{Wait: func(context.Context, shaping.Wait) func(error) {
			if begun.Add(1) == 1 {
				time.Sleep(50 * time.Millisecond)
			}
			return func(error) { ended.Add(1) }
		}}
		j := newJournal(t, q)
		turn := one()
		j.come(t.Context(), "a", one())
		j.come(t.Context(), "b", turn)  // granted at 10ms, wakes at 50ms
		j.come(t.Context(), "c", one()) // at 20ms, not delayed
		j.want("a 0s", "c 20ms", "b 50ms")
		if s := q.State(); s.Stale != 1 || begun.Load() != 2 || ended.Load() != 2 || limiter.refunds != 1 {
			t.Errorf("%d stale, %d waits begun, %d ended, %d refunds; want 1, 2, 2, 1", s.Stale, begun.Load(), ended.Load(), limiter.refunds)
		}
		if d := turn.Departed().Sub(throttle.InstantOf(j.start)); d != 50*time.Millisecond {
			t.Errorf("departed at %v, want 50ms", d)
		}
	})
}

// refunds counts permits given back.
type refunds struct {
	throttle.Limiter
	refunds int
}

func (r *refunds) Refund(now throttle.Instant, g throttle.Grant, request throttle.Request) {
	r.refunds++
	r.Limiter.Refund(now, g, request)
}

func TestQueueTakesATolerance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			limiter throttle.Limiter
			asleep  time.Duration
			stale   uint64
		}{
			{newLimiter(t, throttle.LeakyBucket(100, time.Second)), 30 * time.Millisecond, 0},
			{newLimiter(t, throttle.LeakyBucket(100, time.Second)), 30*time.Millisecond + 1, 1},
			{untolerant{newLimiter(t, throttle.LeakyBucket(100, time.Second))}, 110 * time.Millisecond, 0},
			{untolerant{newLimiter(t, throttle.LeakyBucket(100, time.Second))}, 110*time.Millisecond + 1, 1},
		} {
			q := shaping.NewQueue(c.limiter)
			first := true
			q.Hook = &shaping.Hook{Wait: func(context.Context, shaping.Wait) func(error) {
				if first {
					first = false
					time.Sleep(c.asleep)
				}
				return nil
			}}
			for range 2 { // the second waits for 10ms
				if err := q.Wait(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if s := q.State(); s.Stale != c.stale {
				t.Errorf("%d permits stale after %v, want %d", s.Stale, c.asleep, c.stale)
			}
		}
	})
}

// An untolerant limiter has no tolerance.
type untolerant struct{ throttle.Limiter }

func (untolerant) Tolerance() time.Duration { return 0 }

func TestHookThatPanicsLeavesTheLineEmpty(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, throttle.LeakyBucket(1, time.Second))
		q.Hook = &shaping.Hook{Wait: func(context.Context, shaping.Wait) func(error) { panic("hook") }}
		if err := q.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		func() {
			defer func() {
				if recover() == nil {
					t.Error("Wait did not panic")
				}
			}()
			_ = q.Wait(t.Context())
		}()
		if waiting := q.State().Waiting; waiting != 0 {
			t.Errorf("Waiting = %d, want 0", waiting)
		}
		time.Sleep(time.Second)
		if err := q.Wait(t.Context()); err != nil { // at once, or it would panic
			t.Errorf("Wait = %v, want nil", err)
		}
	})
}
