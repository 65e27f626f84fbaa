package shaping_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// A log counts grants, and callers wake up late by up to the tolerance. At most its permits depart
// in any span that is shorter by the tolerance.
func TestLogKeepsItsBoundOfDeparturesLessTheTolerance(t *testing.T) {
	const permits, per, tolerance = 10, time.Second, 100 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, throttle.SlidingLog(permits, per))
		type key struct{}
		q.Hook = &shaping.Hook{Wait: func(ctx context.Context, _ shaping.Wait) func(error) {
			if d, ok := ctx.Value(key{}).(time.Duration); ok {
				time.Sleep(d) // it is granted meanwhile, and runs late
			}
			return nil
		}}
		var mu sync.Mutex
		var left []throttle.Instant
		var all sync.WaitGroup
		lateness := func(group int) time.Duration {
			switch {
			case group == 15:
				return 140 * time.Millisecond // too late: its permits are void
			case group%2 == 1:
				return 99 * time.Millisecond
			default:
				return 0
			}
		}
		for i := range 20 * permits {
			// It is granted after that many whole seconds, with nine others.
			d := time.Duration(i/permits)*per + lateness(i/permits)
			all.Go(func() {
				turn := shaping.Turn{N: 1}
				if err := q.WaitTurn(context.WithValue(t.Context(), key{}, d), &turn); err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				left = append(left, turn.Departed())
			})
			synctest.Wait()
		}
		all.Wait()
		slices.Sort(left)
		shortest := time.Hour
		for i := permits; i < len(left); i++ {
			shortest = min(shortest, left[i].Sub(left[i-permits]))
		}
		if shortest < per-tolerance {
			t.Errorf("%d left in %v, less than %v", permits+1, shortest, per-tolerance)
		}
		if shortest >= per {
			t.Errorf("%d left in no less than %v: no caller woke up late", permits+1, shortest)
		}
	})
}
