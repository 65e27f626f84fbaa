package shaping_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

func TestQueueRefusesOnDeadlineBeforeSleeping(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit := throttle.LeakyBucket(1, 10*time.Second).Named("mail")
		q := newQueue(t, limit)
		if err := q.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		start := time.Now()
		err := q.Wait(ctx)
		var refused *shaping.Error
		if !errors.Is(err, shaping.ErrDeadline) || !errors.Is(err, context.DeadlineExceeded) || !errors.As(err, &refused) {
			t.Fatalf("Wait() = %v, want ErrDeadline", err)
		}
		want := shaping.Error{Err: shaping.ErrDeadline, Wait: 10 * time.Second, Forecast: 10 * time.Second, Limit: "mail", Reason: throttle.ReasonRate}
		if *refused != want || !refused.Timeout() {
			t.Errorf("refused: %+v, want %+v", *refused, want)
		}
		if time.Since(start) != 0 {
			t.Errorf("refused after %v, want at once", time.Since(start))
		}
		const text = `shaping: wait of 10s or more for rate of limit "mail", 0 in line: wait ends after the deadline`
		if err.Error() != text {
			t.Errorf("Error() = %q, want %q", err, text)
		}
	})
}

func TestQueueRefusesForAPauseWithItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t)
		q.Pause(time.Minute)
		turn := within(30 * time.Second)
		err := q.WaitTurn(t.Context(), turn)
		const text = "shaping: wait of 1m0s or more for pause, 0 in line: wait exceeds MaxWait"
		if err == nil || err.Error() != text {
			t.Errorf("WaitTurn() = %v, want %s", err, text)
		}
	})
}

func TestQueueEndsWaitsAMillisecondBeforeTheContexts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal(t, newQueue(t, throttle.LeakyBucket(1, time.Second)))
		come := func(name string, d time.Duration) {
			ctx, cancel := context.WithTimeout(t.Context(), d)
			t.Cleanup(cancel)
			j.come(ctx, name, one())
		}
		come("first", time.Hour)
		come("granted at the margin", time.Second+time.Millisecond)
		come("a nanosecond below it", time.Second+time.Millisecond-1)
		come("behind another", 1500*time.Millisecond) // certain to be too late once that one has left
		j.want("a nanosecond below it 0s deadline", "first 0s", "behind another 1s deadline", "granted at the margin 1s")
	})
}

// Without forecasts of the limiter nothing is certain.
func TestQueueEndsWaitsAtTheirDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal(t, shaping.NewQueue(everyMillisecond()))
		j.come(t.Context(), "a", one())
		j.come(t.Context(), "b", one())
		ctx, cancel := context.WithTimeout(t.Context(), 2700*time.Microsecond)
		defer cancel()
		j.come(ctx, "c", one())
		j.come(t.Context(), "d", within(1500*time.Microsecond))
		j.want("a 0s", "b 1ms", "d 1.5ms deadline", "c 1.7ms deadline")
	})
}

func TestQueueGrantsAtHandWithinTheMargin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, throttle.LeakyBucket(1, time.Second))
		ctx, cancel := context.WithTimeout(t.Context(), time.Microsecond)
		defer cancel()
		if err := q.Wait(ctx); err != nil {
			t.Errorf("Wait() = %v, want nil: nothing had to be waited for", err)
		}
	})
}

func TestQueueBoundsWaitsWithoutDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, throttle.LeakyBucket(1, time.Second))
		q.MaxWait = 2500 * time.Millisecond
		j := newJournal(t, q)
		for _, name := range []string{"a", "b", "c", "d"} {
			j.come(t.Context(), name, one())
		}
		j.come(t.Context(), "shorter", within(time.Second+1))
		j.come(t.Context(), "too short", within(time.Second-1))
		j.come(t.Context(), "longer", within(10*time.Second))
		// d and shorter wait in vain: that is certain once b and c have left.
		j.want("a 0s", "too short 0s deadline", "b 1s", "shorter 1s deadline", "c 2s", "d 2s deadline", "longer 3s")
	})
}

// The others' times are a guess and reject no caller.
func TestQueueRejectsNoCallerForOthersBeforeIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, throttle.LeakyBucket(1, time.Second))
		j := newJournal(t, q)
		j.come(t.Context(), "first", one())
		ctx, cancel := context.WithCancel(t.Context())
		for range 10 {
			j.come(ctx, "gone", one())
		}
		j.come(t.Context(), "last", within(2*time.Second))
		time.Sleep(100 * time.Millisecond)
		cancel()
		synctest.Wait()
		want := []string{"first 0s", "last 1s"}
		for range 10 {
			want = slices.Insert(want, 1, "gone 100ms canceled")
		}
		j.want(want...)
	})
}

// When the head is rejected the next may ask for less and depart at once.
func TestQueueAsksAgainWhenTheHeadExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, throttle.TokenBucket(1, time.Second, 5))
		j := newJournal(t, q)
		j.come(t.Context(), "four", &shaping.Turn{N: 4})
		j.come(t.Context(), "a", &shaping.Turn{N: 3})
		j.come(t.Context(), "five", &shaping.Turn{N: 5, MaxWait: 6 * time.Second})
		j.come(t.Context(), "two", &shaping.Turn{N: 2})
		j.want("four 0s", "a 2s", "five 2s deadline", "two 4s")
	})
}

// A caller with a high cost is rejected when a departure or a pause makes it too late, even while
// others with earlier deadlines are in time.
func TestCostlyCallerIsRejectedAsSoonAsItIsTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, throttle.TokenBucket(1, time.Second, 5))
		j := newJournal(t, q)
		j.come(t.Context(), "burst", &shaping.Turn{N: 5})
		j.come(t.Context(), "a", one())
		j.come(t.Context(), "b", one())
		j.come(t.Context(), "cheap", within(4200*time.Millisecond))
		// Its permits are at hand at 3s and, after a and b, at 5s.
		j.come(t.Context(), "costly", &shaping.Turn{N: 3, MaxWait: 4500 * time.Millisecond})
		j.want("burst 0s", "a 1s", "b 2s", "costly 2s deadline", "cheap 3s")
	})
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, throttle.TokenBucket(1, time.Second, 5))
		j := newJournal(t, q)
		j.come(t.Context(), "burst", &shaping.Turn{N: 5})
		j.come(t.Context(), "cheap", within(4200*time.Millisecond))
		j.come(t.Context(), "costly", &shaping.Turn{N: 3, MaxWait: 4300 * time.Millisecond})
		time.Sleep(500 * time.Millisecond)
		q.Pause(2 * time.Second)
		j.want("burst 0s", "costly 500ms deadline", "cheap 2.5s")
	})
}

// The cost of a departure does not grow with the callers in line that have deadlines.
func TestDeadlinesAreLookedAtInBoundedNumber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := &counting{Limiter: newLimiter(t, throttle.TokenBucket(100, time.Second, 100))}
		q := shaping.NewQueue(limiter)
		q.MaxWaiting = 3000
		for i := range 3000 {
			go q.WaitTurn(t.Context(), &shaping.Turn{N: 1 + i%100, MaxWait: time.Hour})
		}
		synctest.Wait()
		before := limiter.forecasts.Load()
		waiting := q.Waiting()
		time.Sleep(10 * time.Second)
		departures := int64(waiting - q.Waiting())
		if n := limiter.forecasts.Load() - before; departures < 10 || n > 16*departures {
			t.Errorf("%d departures took %d forecasts, want 16 for each at most", departures, n)
		}
		q.Close()
	})
}

// A counting limiter counts how often it is asked for a forecast.
type counting struct {
	throttle.Limiter
	forecasts atomic.Int64
}

func (c *counting) Forecast(now throttle.Instant, r throttle.Request) throttle.Forecast {
	c.forecasts.Add(1)
	return c.Limiter.Forecast(now, r)
}

// The error is that of WaitTurn, for whatever reason it rejects the turn.
func TestCheckWaitReturnsTheErrorOfWaitTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var junction shaping.Junction
		bucket := throttle.TokenBucket(1, time.Second, 2)
		joint := junction.NewQueue(junction.NewRoster("a", newQueue(t, bucket)), junction.NewRoster("b", newQueue(t, bucket)))
		defer joint.Close()
		brief, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		for name, q := range map[string]*shaping.Queue{"one limiter": newQueue(t, bucket), "two": joint} {
			if err := q.WaitN(t.Context(), 2); err != nil {
				t.Fatal(err)
			}
			for _, c := range []struct {
				ctx  context.Context
				turn shaping.Turn
			}{
				{t.Context(), shaping.Turn{N: 3}},
				{brief, shaping.Turn{N: 3}},
				{t.Context(), shaping.Turn{N: -1}},
				{brief, shaping.Turn{N: 2}},
				{t.Context(), shaping.Turn{N: 2, MaxWait: time.Second}},
			} {
				got, want := q.CheckWait(c.ctx, &c.turn, 0), q.WaitTurn(c.ctx, &c.turn)
				if got == nil || want == nil || got.Error() != want.Error() {
					t.Errorf("%s: CheckWait(%+v) = %v, and WaitTurn = %v", name, c.turn, got, want)
				}
			}
		}
	})
}

func TestCheckWaitForecastsWhatWaitTurnWouldReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, throttle.LeakyBucket(1, 10*time.Second))
		turn := within(5 * time.Second)
		if err := q.WaitTurn(t.Context(), turn); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 8*time.Second)
		defer cancel()
		for _, c := range []struct {
			delay time.Duration
			ctx   context.Context
			wait  time.Duration
		}{
			{0, t.Context(), 10 * time.Second},
			{-time.Second, t.Context(), 10 * time.Second},
			{5*time.Second - 1, t.Context(), 10 * time.Second},
			{5 * time.Second, t.Context(), 0},
			{20 * time.Second, t.Context(), 0},
			{5 * time.Second, ctx, 10 * time.Second},
			{9 * time.Second, ctx, 10 * time.Second},
			{11 * time.Second, ctx, 11 * time.Second},
		} {
			wait := time.Duration(0)
			var refused *shaping.Error
			if errors.As(q.CheckWait(c.ctx, turn, c.delay), &refused) {
				wait = refused.Wait
			}
			if wait != c.wait {
				t.Errorf("CheckWait(%v) returns a wait of %v, want %v", c.delay, wait, c.wait)
			}
		}
		q.Close()
		if err := q.CheckWait(ctx, turn, 0); !errors.Is(err, shaping.ErrClosed) {
			t.Errorf("CheckWait() = %v after Close, want ErrClosed", err)
		}
	})
}
