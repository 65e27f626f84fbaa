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

func TestQueueDepartsInOrderOfArrivalAtExactInstants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal(t, newQueue(t, throttle.LeakyBucket(7, time.Second)))
		var want []string
		for i := range 15 {
			j.come(t.Context(), fmt.Sprint(i), one())
			want = append(want, fmt.Sprint(i, " ", (time.Duration(i)*time.Second+6)/7))
		}
		j.want(want...)
	})
}

func TestQueueLetsABurstGoAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal(t, newQueue(t, throttle.TokenBucket(10, time.Second, 3)))
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			j.come(t.Context(), name, one())
		}
		j.want("a 0s", "b 0s", "c 0s", "d 100ms", "e 200ms")
	})
}

func TestQueueStandsReturningTurnByItsFirstArrival(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, throttle.LeakyBucket(1, time.Second))
		j := newJournal(t, q)
		fast, waited := one(), one()
		j.come(t.Context(), "fast", fast)
		j.come(t.Context(), "waited", waited)
		j.come(t.Context(), "b", one())
		j.come(t.Context(), "c", one())
		time.Sleep(1500 * time.Millisecond)
		synctest.Wait()
		j.come(t.Context(), "waited again", waited) // ahead of the head, b
		j.come(t.Context(), "fast again", fast)     // ahead of both
		j.want("fast 0s", "waited 1s", "fast again 2s", "waited again 3s", "b 4s", "c 5s")
	})
}

func TestQueueKeepsReturningTurnsOfOneInstantInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, throttle.TokenBucket(1, time.Second, 5))
		j := newJournal(t, q)
		turns := []*shaping.Turn{one(), one(), one(), one(), one(), one()} // the last one stands in line
		for i, turn := range turns {
			j.come(t.Context(), fmt.Sprint(i), turn)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		j.come(t.Context(), "new", one())
		for i, turn := range turns {
			j.come(t.Context(), fmt.Sprint(i, " again"), turn)
		}
		j.want("0 0s", "1 0s", "2 0s", "3 0s", "4 0s", "5 1s",
			"0 again 2s", "1 again 3s", "2 again 4s", "3 again 5s", "4 again 6s", "5 again 7s", "new 8s")
	})
}

func TestQueueRefusesNewcomersWhenFullButNotReturningTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, throttle.LeakyBucket(1, time.Second))
		q.MaxWaiting = 2
		j := newJournal(t, q)
		old, refused := one(), one()
		j.come(t.Context(), "old", old)
		j.come(t.Context(), "a", one())
		j.come(t.Context(), "b", one())
		j.come(t.Context(), "over", refused)
		j.come(t.Context(), "over again", refused) // rejected once, it has no place yet
		j.come(t.Context(), "old again", old)
		time.Sleep(time.Second)
		synctest.Wait()
		j.come(t.Context(), "c", one()) // a and b are in line still
		time.Sleep(time.Second)
		j.come(t.Context(), "d", one()) // the instant at which a leaves
		j.want("old 0s", "over 0s full", "over again 0s full", "c 1s full", "old again 1s", "a 2s", "b 3s", "d 4s")
	})
}

func TestQueueBoundHasADefault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, throttle.LeakyBucket(1, time.Hour))
		defer synctest.Wait()
		defer q.Close()
		for range shaping.DefaultMaxWaiting + 1 {
			go q.Wait(t.Context())
		}
		synctest.Wait()
		var refused *shaping.Error
		err := q.Wait(t.Context())
		if !errors.Is(err, shaping.ErrQueueFull) || !errors.As(err, &refused) || refused.Waiting != shaping.DefaultMaxWaiting {
			t.Errorf("Wait() = %v, want ErrQueueFull with %d in line", err, shaping.DefaultMaxWaiting)
		}
	})
}

func TestQueueWeighsCosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal(t, newQueue(t, throttle.TokenBucket(10, time.Second, 5)))
		j.come(t.Context(), "five", &shaping.Turn{N: 5})
		j.come(t.Context(), "three", &shaping.Turn{N: 3})
		j.come(t.Context(), "one", one()) // a permit is at hand before, but order is by arrival
		j.come(t.Context(), "five", &shaping.Turn{N: 5})
		j.want("five 0s", "three 300ms", "one 400ms", "five 900ms")
	})
}

func TestQueueWeighsEachLimitByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tokens := throttle.TokenBucket(100, time.Second, 100).Of("tokens")
		j := newJournal(t, newQueue(t, throttle.TokenBucket(10, time.Second, 10), tokens))
		j.come(t.Context(), "80", &shaping.Turn{Each: []int{1, 80}})
		j.come(t.Context(), "50", &shaping.Turn{Each: []int{1, 50}})
		j.come(t.Context(), "20", &shaping.Turn{N: 20, Each: []int{1}})
		j.want("80 0s", "50 300ms", "20 500ms")
	})
}

func TestQueuePassesProbesWithoutPermits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, throttle.LeakyBucket(1, time.Second))
		j := newJournal(t, q)
		j.come(t.Context(), "a", one())
		j.come(t.Context(), "probe", &shaping.Turn{})
		q.Pause(3 * time.Second)
		j.come(t.Context(), "paused probe", &shaping.Turn{})
		j.want("a 0s", "probe 0s", "paused probe 3s")
	})
}

func TestQueueReportsOversizeAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := shaping.NewQueue(certain{newLimiter(t, throttle.TokenBucket(1, time.Second, 2)), 2})
		j := newJournal(t, q)
		j.come(t.Context(), "oversize", &shaping.Turn{N: 3})
		j.come(t.Context(), "a", &shaping.Turn{N: 2})
		j.come(t.Context(), "b", &shaping.Turn{N: 2})
		j.come(t.Context(), "oversize behind b", &shaping.Turn{N: 3})
		j.come(t.Context(), "oversize in time", &shaping.Turn{N: 3, MaxWait: time.Second})
		j.want("a 0s", "oversize 0s burst", "oversize behind b 0s burst", "oversize in time 0s burst", "b 2s")
	})
}

// certain forecasts that a request is never granted.
type certain struct {
	throttle.Limiter
	most int
}

func (c certain) Forecast(now throttle.Instant, r throttle.Request) throttle.Forecast {
	if r.N > c.most {
		return throttle.Forecast{At: throttle.Never}
	}
	return c.Limiter.Forecast(now, r)
}

func TestQueueReturnsTheContextsErrorBeforeAnything(t *testing.T) {
	q := newQueue(t, throttle.LeakyBucket(1, time.Second))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := q.Wait(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Wait() = %v, want context.Canceled", err)
	}
	if err := q.Wait(t.Context()); err != nil {
		t.Errorf("Wait() = %v: the cancelled caller spent a permit", err)
	}
}

func TestNewQueuePanicsWithoutALimiter(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("NewQueue(nil) returned")
		}
	}()
	shaping.NewQueue(nil)
}

// everyMillisecond grants one call in each millisecond.
func everyMillisecond() throttle.Limiter {
	var next throttle.Instant
	return throttle.LimiterFunc(func(now throttle.Instant, _ throttle.Request) (throttle.Instant, error) {
		if next > now {
			return next, nil
		}
		next = now.Add(time.Millisecond)
		return now, nil
	})
}

func TestQueueWorksOverAFunction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := shaping.NewQueue(everyMillisecond())
		q.MaxWait = 1500 * time.Microsecond
		j := newJournal(t, q)
		turn := one()
		for _, name := range []string{"a", "b", "c"} {
			j.come(t.Context(), name, turn)
			turn = one()
		}
		q.Reconcile(throttle.Fact{})
		if err := q.Tune(throttle.LeakyBucket(1, time.Second)); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("Tune() = %v, want one that matches errors.ErrUnsupported", err)
		}
		if s := q.State(); s.Waiting != 2 {
			t.Errorf("State() = %+v, want 2 in line", s)
		}
		if err := q.CheckWait(t.Context(), turn, time.Second); err != nil {
			t.Errorf("CheckWait() = %v", err)
		}
		q.Return(turn) // it never departed
		j.want("a 0s", "b 1ms", "c 1.5ms deadline")
	})
}

// A pause also pauses a function, and charges beyond the estimates are taken from it before the
// next permits.
func TestQueuePausesAndChargesAFunction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := shaping.NewQueue(everyMillisecond())
		j := newJournal(t, q)
		q.Pause(time.Hour)
		turn := one()
		j.come(t.Context(), "a", turn)
		j.come(t.Context(), "in time", &shaping.Turn{N: 1, MaxWait: time.Minute})
		time.Sleep(time.Hour)
		synctest.Wait()
		q.Charge(turn.Departure())
		j.come(t.Context(), "b", one())
		j.want("in time 0s deadline", "a 1h0m0s", "b 1h0m0.002s")
	})
}
