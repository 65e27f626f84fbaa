package shaping_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// An office is queues of customers, who share one limiter of 10 permits a second.
type office struct {
	junction shaping.Junction
	account  *shaping.Roster
	ctx      context.Context
}

func newOffice(ctx context.Context, t *testing.T) *office {
	o := &office{ctx: ctx}
	o.account = o.junction.NewRoster("account", shaping.NewQueue(newLimiter(t, throttle.LeakyBucket(10, time.Second))))
	return o
}

// customer opens the queue of a customer of whom n callers come.
func (o *office) customer(t *testing.T, n int, class shaping.Priority) *shaping.Queue {
	o.ctx = shaping.WithPriority(o.ctx, class)
	q := o.junction.NewQueue(o.junction.NewRoster("customer", shaping.NewQueue(newLimiter(t, throttle.TokenBucket(1000, time.Second, 100)))), o.account)
	for range n {
		go q.Wait(o.ctx)
		synctest.Wait()
	}
	return q
}

// A forecast counts those who wait for the same limiter in other queues.
func TestForecastCountsOtherQueues(t *testing.T) {
	for _, test := range []struct {
		class   shaping.Priority
		waiting int
	}{
		{shaping.PriorityHigh, 0},
		{shaping.PriorityNormal, 2}, // one of each customer
		{shaping.PriorityLow, 6},
	} {
		t.Run(fmt.Sprint(test.class), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				o := newOffice(ctx, t)
				o.customer(t, 6, 0) // one departs at once
				o.customer(t, 1, 0)
				q := o.customer(t, 0, 0)
				turn := &shaping.Turn{N: 1, Priority: test.class}
				want := shaping.Forecast{
					Wait: 100 * time.Millisecond, Expected: time.Duration(1+test.waiting) * 100 * time.Millisecond,
					Lane: "account", Reason: throttle.ReasonRate, Waiting: test.waiting,
				}
				if got, err := q.Forecast(ctx, turn); got.Limit == "" || err != nil {
					t.Errorf("Forecast = %+v, %v", got, err)
				} else if want.Limit = got.Limit; got != want {
					t.Errorf("Forecast = %+v, want %+v", got, want)
				}
				q.MaxForecast = want.Expected - 1
				var e *shaping.Error
				if err := q.WaitTurn(ctx, turn); !errors.As(err, &e) || !errors.Is(e, shaping.ErrQueueFull) || e.Forecast != want.Expected || e.Before != test.waiting || e.Lane != "account" {
					t.Errorf("WaitTurn with MaxForecast = %+v, want ErrQueueFull of account behind %d, after %v", e, test.waiting, want.Expected)
				}
			})
		})
	}
}

// What can never be granted is rejected at once. It spends nothing, and keeps nobody from
// going.
func TestTheImpossibleHoldsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t.Context(), t)
		other := o.customer(t, 1, 0)
		q := o.customer(t, 0, 0)
		done := make(chan error, 2)
		go func() { done <- other.Wait(t.Context()) }()
		synctest.Wait()
		go func() { done <- q.Wait(t.Context()) }()
		synctest.Wait()
		if _, err := q.Forecast(t.Context(), &shaping.Turn{N: 101}); !errors.Is(err, throttle.ErrExceedsBurst) {
			t.Errorf("Forecast of 101 permits = %v, want ErrExceedsBurst", err)
		}
		if err := q.WaitTurn(t.Context(), &shaping.Turn{N: 101}); !errors.Is(err, throttle.ErrExceedsBurst) {
			t.Errorf("WaitTurn for 101 permits = %v, want ErrExceedsBurst", err)
		}
		start := time.Now()
		if err := errors.Join(<-done, <-done); err != nil || time.Since(start) != 200*time.Millisecond {
			t.Errorf("those in line departed after %v, %v, want 200ms", time.Since(start), err)
		}
	})
}

// A lossy limiter lets one call go a second. What comes back is lost, and its forecast is never
// certain.
type lossy struct {
	throttle.Limiter
	free throttle.Instant
}

func (l *lossy) Take(now throttle.Instant, _ throttle.Request) (throttle.Grant, error) {
	if l.free > now {
		return throttle.Grant{At: l.free}, nil
	}
	l.free = now.Add(time.Second)
	return throttle.Grant{At: now}, nil
}

func (l *lossy) Refund(throttle.Instant, throttle.Grant, throttle.Request) {}

func (l *lossy) Held(throttle.Instant, throttle.Request) throttle.Instant { return l.free }

// Two limiters, each of which loses what comes back, let a caller go once both are free.
func TestNothingIsSpentWhileAnotherLimiterHolds(t *testing.T) {
	const ms = time.Millisecond
	for _, free := range [][2]time.Duration{{0, 300 * ms}, {300 * ms, 0}, {300 * ms, 700 * ms}, {700 * ms, 300 * ms}} {
		synctest.Test(t, func(t *testing.T) {
			var junction shaping.Junction
			began := time.Now()
			var rosters []*shaping.Roster
			for _, f := range free {
				l := &lossy{newLimiter(t), throttle.InstantOf(began).Add(f)}
				rosters = append(rosters, junction.NewRoster("lossy", shaping.NewQueue(l)))
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			q := junction.NewQueue(rosters...)
			for i := range 3 {
				err := q.Wait(ctx)
				if got, want := time.Since(began), max(free[0], free[1])+time.Duration(i)*time.Second; err != nil || got != want {
					t.Errorf("limiters free after %v: call %d left after %v, %v, want %v", free, i, got, err, want)
				}
			}
		})
	}
}
