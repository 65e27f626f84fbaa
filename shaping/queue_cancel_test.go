package shaping_test

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// An arrival is a caller that may give up.
type arrival struct {
	at, cancel time.Duration // cancel zero: never
	n          int
}

// departures returns when each caller departed, without those that gave up before.
func departures(t *testing.T, limit throttle.Limit, callers map[int]arrival) map[int]time.Duration {
	t.Helper()
	left := make(map[int]time.Duration)
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, limit)
		start := time.Now()
		var mu sync.Mutex
		var wg sync.WaitGroup
		for i, c := range callers {
			wg.Go(func() {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if c.cancel > 0 {
					defer time.AfterFunc(c.cancel, cancel).Stop()
				}
				time.Sleep(c.at)
				switch err := q.WaitN(ctx, c.n); {
				case err == nil:
					mu.Lock()
					defer mu.Unlock()
					left[i] = time.Since(start)
				case !errors.Is(err, context.Canceled):
					t.Errorf("WaitN() = %v, want context.Canceled", err)
				case time.Since(start) != max(c.cancel, c.at):
					t.Errorf("returned %v after the cancel, want at once", time.Since(start)-c.cancel)
				}
			})
		}
		wg.Wait()
		if s := q.State(); s.Waiting != 0 {
			t.Errorf("%d in line at the end", s.Waiting)
		}
	})
	return left
}

func TestCancelledWaitersCostTheOthersNothing(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, limit := range []throttle.Limit{
		throttle.LeakyBucket(100, time.Second),
		throttle.TokenBucket(100, time.Second, 10),
		throttle.GCRA(777, 10*time.Second, 5),
	} {
		callers := make(map[int]arrival)
		for i := range 1000 {
			// Distinct instants, so that the order of arrival is one.
			c := arrival{at: time.Duration(random.IntN(5000))*time.Millisecond + time.Duration(i), n: 1 + random.IntN(3)}
			if limit.Algorithm == throttle.AlgorithmLeakyBucket {
				c.n = 1
			}
			if i%2 == 1 { // many of them in the very instant of a grant
				c.cancel = c.at + time.Duration(random.IntN(1000))*10*time.Millisecond - time.Duration(i)%10
			}
			callers[i] = c
		}
		with := departures(t, limit, callers)
		survivors := make(map[int]arrival)
		for i := range with {
			survivors[i] = callers[i]
		}
		without := departures(t, limit, survivors)
		if gone := len(callers) - len(with); gone < 100 || gone > 500 {
			t.Errorf("%v: %d of 1000 gave up in line: no test", limit, gone)
		}
		if !maps.Equal(with, without) {
			for i, at := range with {
				if without[i] != at {
					t.Errorf("%v: caller %d departed at %v, and at %v had the cancelled never come", limit, i, at, without[i])
				}
			}
		}
	}
}

// A caller gives up at the very instant of its grant: before it, after it or as it departs. It
// passes the permit on at that instant.
func TestCancelInTheInstantOfTheGrantPassesThePermitOn(t *testing.T) {
	for name, test := range map[string]func(c *cancelling, ctx *leaving){
		"before the grant": func(c *cancelling, ctx *leaving) { c.asked = ctx.cancel },
		"after the grant":  func(c *cancelling, ctx *leaving) { c.granted = ctx.cancel },
		"as it sets out":   func(c *cancelling, ctx *leaving) { c.granted = func() { ctx.ends.Store(true) } },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				limiter := &cancelling{Limiter: newLimiter(t, throttle.LeakyBucket(1, time.Second))}
				j := newJournal(t, shaping.NewQueue(limiter))
				j.come(t.Context(), "first", one())
				ctx := new(leaving)
				ctx.Context, ctx.cancel = context.WithCancel(t.Context())
				test(limiter, ctx)
				j.come(ctx, "gone", one())
				j.come(t.Context(), "next", one())
				j.come(t.Context(), "last", one())
				j.want("first 0s", "gone 1s canceled", "next 1s", "last 2s")
			})
		})
	}
}

// A leaving context, once canceled, ends when it is next read.
type leaving struct {
	context.Context
	cancel func()
	ends   atomic.Bool
}

func (c *leaving) Err() error {
	if c.ends.Load() {
		c.cancel()
	}
	return c.Context.Err()
}

// cancelling calls a function once, just before or after a grant to a caller in line.
type cancelling struct {
	throttle.Limiter
	asked, granted func()
}

func (c *cancelling) Take(now throttle.Instant, r throttle.Request) (throttle.Grant, error) {
	if f := c.asked; f != nil && r.Since < now {
		c.asked = nil
		f()
	}
	granted, err := c.Limiter.Take(now, r)
	if f := c.granted; f != nil && r.Since < now && granted.At <= now {
		c.granted = nil
		f()
	}
	return granted, err
}

func (c *cancelling) Refund(now throttle.Instant, g throttle.Grant, r throttle.Request) {
	c.Limiter.Refund(now, g, r)
}

// A cancelled caller is skipped, though it had no time to leave the line. Its grant would be lost
// to a limiter that takes nothing back.
func TestGoneCallerIsPassedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := newMetered()
		q := shaping.NewQueue(limiter)
		j := newJournal(t, q)
		ctx, cancel := context.WithCancel(t.Context())
		j.come(t.Context(), "first", one())
		j.come(ctx, "gone", one())
		j.come(t.Context(), "next", one())
		limiter.granted = cancel
		limiter.bring(2)
		synctest.Wait()
		q.Close()
		j.want("first 0s", "gone 0s canceled", "next 0s")
	})
}

func TestReturnPassesPermitsOnOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := &refunds{Limiter: newLimiter(t, throttle.TokenBucket(1, time.Second, 3))}
		q := shaping.NewQueue(limiter)
		j := newJournal(t, q)
		turn := &shaping.Turn{N: 2}
		j.come(t.Context(), "returned", turn)
		j.come(t.Context(), "a", one())
		j.come(t.Context(), "b", &shaping.Turn{N: 2})
		j.come(t.Context(), "c", one())
		q.Return(turn)
		synctest.Wait()
		q.Return(turn)
		if turn.Departed() != 0 || turn.Departure().Grant.At != 0 || limiter.refunds != 1 {
			t.Errorf("departed %v, charged %v, %d refunds of a turn returned twice, want 0, 0, 1", turn.Departed(), turn.Departure().Grant.At, limiter.refunds)
		}
		j.want("a 0s", "b 0s", "returned 0s", "c 1s")
	})
}

// Permits given back by a settled estimate go to callers in line at once.
func TestSettleLetsTheLineGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, throttle.TokenBucket(1, time.Second, 5))
		j := newJournal(t, q)
		settle := func(turn *shaping.Turn, actual int) {
			q.Settle(turn.Departure(), throttle.Request{N: actual})
		}
		exact, estimate := &shaping.Turn{N: 1}, &shaping.Turn{N: 4}
		j.come(t.Context(), "exact", exact)
		settle(exact, 1)
		j.come(t.Context(), "estimate", estimate)
		j.come(t.Context(), "a", one())
		j.come(t.Context(), "b", one())
		j.come(t.Context(), "c", one())
		time.Sleep(500 * time.Millisecond)
		settle(estimate, 2)
		j.want("estimate 0s", "exact 0s", "a 500ms", "b 500ms", "c 1s")
	})
}

// A turn that was returned has not departed: when it comes back it is no visit.
func TestReturnedTurnHasNotVisited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, throttle.LeakyBucket(1, time.Second))
		var visits []int
		q.Hook = &shaping.Hook{Wait: func(_ context.Context, w shaping.Wait) func(error) {
			visits = append(visits, w.Visits)
			return nil
		}}
		j := newJournal(t, q)
		turn := one()
		j.come(t.Context(), "returned", turn)
		q.Return(turn)
		j.come(t.Context(), "another", one())
		j.come(t.Context(), "again", turn)
		j.want("another 0s", "returned 0s", "again 1s")
		if !slices.Equal(visits, []int{0}) {
			t.Errorf("visits: %v, want [0]", visits)
		}
	})
}

func TestChargeDelaysTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, throttle.LeakyBucket(1, time.Second))
		j := newJournal(t, q)
		turn := one()
		j.come(t.Context(), "a", turn)
		departure := turn.Departure()
		q.Charge(departure)
		departure.Request.Each = []int{1}
		q.Charge(departure)
		if departure.Request.Each[0] != 1 {
			t.Errorf("Charge() made its argument %v", departure)
		}
		j.come(t.Context(), "b", one())
		j.want("a 0s", "b 3s")
	})
}
