package shaping_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// wantForecast fails the test unless the forecast of a turn is as wanted.
func wantForecast(t *testing.T, what string, q *shaping.Queue, turn *shaping.Turn, want shaping.Forecast, cause error) {
	t.Helper()
	got, err := q.Forecast(t.Context(), turn)
	if got != want || !errors.Is(err, cause) {
		t.Errorf("%s: Forecast = %+v, %v, want %+v, %v", what, got, err, want, cause)
	}
}

func TestForecastCountsTheLineBeforeIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, throttle.LeakyBucket(1, time.Second).Named("mail"))
		j := newJournal(t, q)
		wantForecast(t, "idle", q, one(), shaping.Forecast{}, nil)
		j.come(t.Context(), "a", one())
		j.come(t.Context(), "b", one())
		j.come(t.Context(), "c", one())
		time.Sleep(600 * time.Millisecond)
		const next = 400 * time.Millisecond
		wantForecast(t, "behind two", q, one(), shaping.Forecast{Wait: next, Expected: next + 2*time.Second, Limit: "mail", Reason: "rate", Waiting: 2}, nil)
		urgent := &shaping.Turn{N: 1, Priority: shaping.PriorityHigh}
		wantForecast(t, "more urgent", q, urgent, shaping.Forecast{Wait: next, Expected: next, Limit: "mail", Reason: "rate"}, nil)
		j.want("a 0s", "b 1s", "c 2s") // it has taken no place and no permit
	})
}

// For tenants of one class and equal costs the forecast is exact, also for a newcomer whose turn
// would begin together with those of others.
func TestForecastCountsTenantsThatComeFirst(t *testing.T) {
	for seed := range uint64(100) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			q := newQueue(t, throttle.LeakyBucket(8, time.Second)) // an eighth of a second is exact
			ctx, cancel := context.WithCancel(t.Context())
			var gone atomic.Int64
			var all sync.WaitGroup
			for range 1 + random.IntN(50) {
				turn := &shaping.Turn{N: 1, Tenant: []string{"", "a", "b"}[random.IntN(3)]}
				all.Go(func() {
					if q.WaitTurn(ctx, turn) == nil {
						gone.Add(1)
					}
				})
				synctest.Wait()
			}
			time.Sleep(time.Duration(random.Int64N(int64(time.Second))))
			synctest.Wait()
			turn := &shaping.Turn{N: 1, Tenant: []string{"", "a", "new"}[random.IntN(3)]}
			forecast, err := q.Forecast(t.Context(), turn)
			before, start := gone.Load(), time.Now()
			if err := errors.Join(err, q.WaitTurn(t.Context(), turn)); err != nil {
				t.Fatal(err)
			}
			n, waited := int(gone.Load()-before), time.Since(start)
			if forecast.Waiting != n || forecast.Expected != waited {
				t.Errorf("seed %d: %d departed before the turn in %v, want %d in %v", seed, n, waited, forecast.Waiting, forecast.Expected)
			}
			cancel()
			all.Wait()
		})
	}
}

// A less urgent caller does not wait for all who are more urgent, and is not rejected as if it did:
// by its share of one in twenty it departs after 19 of them.
func TestForecastCountsTheShareOfLessUrgentCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, throttle.LeakyBucket(8, time.Second))
		q.MaxForecast = 26 * time.Second
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for range 201 {
			all.Go(func() { _ = q.Wait(ctx) })
		}
		synctest.Wait()
		q.MaxForecast = 3 * time.Second
		for range 3 {
			turn := &shaping.Turn{N: 1, Priority: shaping.PriorityLow}
			forecast, err := q.Forecast(t.Context(), turn)
			start := time.Now()
			if err := errors.Join(err, q.WaitTurn(t.Context(), turn)); err != nil {
				t.Fatal(err)
			}
			waited := time.Since(start)
			if late := forecast.Expected - waited; forecast.Waiting != 19 || late.Abs() > time.Microsecond {
				t.Errorf("Forecast = %+v, and the turn departs after %v, want 19 before it", forecast, waited)
			}
		}
		cancel()
		all.Wait()
	})
}

func TestForecastOfUrgentCallersIncludesTheReserve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, throttle.TokenBucket(1, time.Second, 20).Reserving("50%").Named("mail"))
		if err := q.WaitN(t.Context(), 10); err != nil {
			t.Fatal(err)
		}
		urgent := &shaping.Turn{N: 10, Priority: shaping.PriorityHigh}
		wantForecast(t, "urgent", q, urgent, shaping.Forecast{}, nil)
		urgent.N = 15
		wantForecast(t, "more than the reserve", q, urgent, shaping.Forecast{Wait: 5 * time.Second, Expected: 5 * time.Second, Limit: "mail", Reason: "rate"}, nil)
		wantForecast(t, "not urgent", q, one(), shaping.Forecast{Wait: time.Second, Expected: time.Second, Limit: "mail", Reason: "rate"}, nil)
	})
}

func TestForecastSaysWhyATurnWouldBeRejected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, throttle.LeakyBucket(1, time.Second).Named("mail"))
		q.MaxWaiting, q.MaxForecast = 2, 90*time.Second
		j := newJournal(t, q)
		j.come(t.Context(), "a", one())
		held := shaping.Forecast{Wait: time.Second, Expected: time.Second, Limit: "mail", Reason: "rate"}
		wantForecast(t, "deadline", q, within(time.Second-1), held, shaping.ErrDeadline)
		wantForecast(t, "in time", q, within(time.Second), held, nil)
		bucket := newQueue(t, throttle.TokenBucket(1, time.Second, 1))
		if _, err := bucket.Forecast(t.Context(), &shaping.Turn{N: 2}); !errors.Is(err, throttle.ErrExceedsBurst) {
			t.Errorf("beyond the burst: Forecast = %v, want ErrExceedsBurst", err)
		}
		j.come(t.Context(), "b", one())
		j.come(t.Context(), "c", one())
		held.Waiting, held.Expected = 2, 3*time.Second
		wantForecast(t, "full", q, one(), held, shaping.ErrQueueFull)
		q.MaxWaiting, q.MaxForecast = 0, 3*time.Second-1
		wantForecast(t, "expected for too long", q, one(), held, shaping.ErrQueueFull)
		j.want("a 0s", "b 1s", "c 2s")
		q.Pause(time.Minute)
		wantForecast(t, "paused", q, one(), shaping.Forecast{Wait: time.Minute, Expected: time.Minute, Reason: "pause"}, shaping.ErrQueueFull)
		_ = q.Close()
		wantForecast(t, "closed", q, one(), shaping.Forecast{}, shaping.ErrClosed)
	})
}

// A turn knows the cause of its last wait.
func TestTurnKnowsWhatHeldIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, throttle.LeakyBucket(1, time.Second).Named("mail"))
		q.Hook = &shaping.Hook{Wait: func(context.Context, shaping.Wait) func(error) { return nil }}
		for _, want := range []throttle.Reason{"", throttle.ReasonRate} {
			turn := one()
			if err := q.WaitTurn(t.Context(), turn); err != nil {
				t.Fatal(err)
			}
			if reason, limit := turn.Held(); reason != want || (limit == "mail") != (want != "") {
				t.Errorf("Held = %q, %q, want %q", reason, limit, want)
			}
		}
	})
}
