package shaping_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

func TestPauseHoldsEverybodyThenSpaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, throttle.TokenBucket(10, time.Second, 5))
		j := newJournal(t, q)
		q.Pause(2 * time.Second)
		q.Pause(time.Second) // shortens nothing
		for _, name := range []string{"a", "b", "c", "d"} {
			j.come(t.Context(), name, one())
		}
		j.want("a 2s", "b 2.1s", "c 2.2s", "d 2.3s")
	})
}

func TestPauseHoldsOneHundredWaitersThenSpacesThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, throttle.TokenBucket(100, time.Second, 10))
		j := newJournal(t, q)
		var want []string
		for i := range 115 {
			j.come(t.Context(), fmt.Sprintf("%03d", i), one())
			at := time.Duration(max(0, i-9)) * 10 * time.Millisecond
			if i >= 15 {
				at = 2055*time.Millisecond + time.Duration(i-15)*10*time.Millisecond
			}
			want = append(want, fmt.Sprintf("%03d %v", i, at))
		}
		time.Sleep(55 * time.Millisecond)
		q.Reconcile(throttle.Fact{Until: q.Now().Add(2 * time.Second)})
		if n := q.State().Waiting; n != 100 {
			t.Errorf("%d in line, want 100", n)
		}
		j.want(want...)
	})
}

func TestPauseRejectsCallersThatCannotWaitForItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, throttle.LeakyBucket(1, time.Second))
		j := newJournal(t, q)
		j.come(t.Context(), "a", one())
		j.come(t.Context(), "b", one())
		j.come(t.Context(), "four seconds", within(4*time.Second))
		j.come(t.Context(), "five seconds", within(5500*time.Millisecond))
		j.come(t.Context(), "nine seconds", within(9*time.Second))
		time.Sleep(500 * time.Millisecond)
		q.Pause(5 * time.Second) // until 5.5s
		j.come(t.Context(), "too late", within(5*time.Second-1))
		j.want("a 0s", "four seconds 500ms deadline", "too late 500ms deadline", "b 5.5s", "five seconds 5.5s deadline", "nine seconds 6.5s")
	})
}

// A permit granted before a pause, to a caller that has not woken yet, is void.
func TestPauseVoidsPermitsOfCallersThatHaveNotLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, throttle.LeakyBucket(100, time.Second))
		q.Hook = &shaping.Hook{Wait: slow(15 * time.Millisecond)}
		j := newJournal(t, q)
		j.come(t.Context(), "a", one())
		j.come(t.Context(), "b", one()) // granted at 10ms, would leave at 15ms
		time.Sleep(12 * time.Millisecond)
		q.Pause(time.Second)
		j.want("a 0s", "b 1.012s")
		if s := q.State(); s.Stale != 1 {
			t.Errorf("%d permits were void, want 1", s.Stale)
		}
	})
}

func TestTuneRetimesEverybodyInLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, throttle.LeakyBucket(1, 10*time.Second))
		j := newJournal(t, q)
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			j.come(t.Context(), name, one())
		}
		time.Sleep(5 * time.Second)
		tune := func(l throttle.Limit) {
			t.Helper()
			if err := q.Tune(l); err != nil {
				t.Errorf("Tune(%v) = %v", l, err)
			}
		}
		tune(throttle.LeakyBucket(1, time.Second)) // half an interval left
		time.Sleep(time.Second)                    // b at 5.5s; c is half an interval away
		tune(throttle.LeakyBucket(1, 4*time.Second))
		if err := q.Tune(throttle.Limit{}); err == nil {
			t.Error("Tune() of a limit that does not validate = nil")
		}
		j.want("a 0s", "b 5.5s", "c 8s", "d 12s", "e 16s")
	})
}

func TestTuneRejectsCallersThatWouldBeTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, throttle.TokenBucket(1, time.Second, 5))
		j := newJournal(t, q)
		j.come(t.Context(), "a", &shaping.Turn{N: 5})
		j.come(t.Context(), "b", within(20*time.Second)) // in time, and the next to expire
		j.come(t.Context(), "four", &shaping.Turn{N: 4, MaxWait: 30 * time.Second})
		j.come(t.Context(), "two", &shaping.Turn{N: 2, MaxWait: time.Minute})
		time.Sleep(500 * time.Millisecond)
		if err := q.Tune(throttle.TokenBucket(1, 10*time.Second, 4)); err != nil {
			t.Fatal(err)
		}
		j.want("a 0s", "four 500ms deadline", "b 5.5s", "two 25.5s")
	})
}

// A caller that asks for more than the new limits ever grant is rejected at once, at any place in
// line, with or without a deadline.
func TestTuneRejectsCallersThatNeverFit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, throttle.TokenBucket(1, time.Second, 5))
		j := newJournal(t, q)
		j.come(t.Context(), "a", &shaping.Turn{N: 5})
		j.come(t.Context(), "b", one())
		j.come(t.Context(), "five", &shaping.Turn{N: 5})
		j.come(t.Context(), "c", one())
		j.come(t.Context(), "five in time", &shaping.Turn{N: 5, MaxWait: time.Minute})
		j.come(t.Context(), "four", &shaping.Turn{N: 4})
		time.Sleep(500 * time.Millisecond)
		if err := q.Tune(throttle.TokenBucket(1, time.Second, 4)); err != nil {
			t.Fatal(err)
		}
		j.want("a 0s", "five 500ms burst", "five in time 500ms burst", "b 1s", "c 2s", "four 6s")
	})
}

func TestCloseSendsEverybodyAwayAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, throttle.LeakyBucket(1, time.Hour))
		j := newJournal(t, q)
		j.come(t.Context(), "first", one())
		want := []string{"first 0s"}
		for range 1000 {
			j.wg.Go(func() { j.note("waiter", q.WaitTurn(t.Context(), one())) })
			want = append(want, "waiter 1m0s closed")
		}
		time.Sleep(time.Minute)
		for range 2 {
			if err := q.Close(); err != nil {
				t.Errorf("Close() = %v", err)
			}
			j.want(want...)
		}
		q.Pause(time.Second)
		if err := q.Wait(t.Context()); !errors.Is(err, shaping.ErrClosed) {
			t.Errorf("Wait() = %v after Close, want ErrClosed", err)
		}
		if s := q.State(); s.Waiting != 0 {
			t.Errorf("%d in line after Close", s.Waiting)
		}
	})
}

func TestCloseCountsTheOthersInLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, throttle.LeakyBucket(1, time.Hour))
		if err := q.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 3)
		for range 3 {
			go func() { ended <- q.Wait(t.Context()) }()
		}
		synctest.Wait()
		q.Close()
		for range 3 {
			var e *shaping.Error
			if err := <-ended; !errors.As(err, &e) || e.Waiting != 2 {
				t.Errorf("Wait() = %v, want 2 others in line", err)
			}
		}
	})
}

func TestStateShowsQueueAndLimiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, throttle.LeakyBucket(1, time.Second))
		j := newJournal(t, q)
		j.come(t.Context(), "a", one())
		j.come(t.Context(), "b", one())
		s := q.State()
		if s.Waiting != 1 || s.Stale != 0 || s.Paused != 0 || s.Whole || len(s.Limits) != 1 || s.Limits[0].Next != time.Second {
			t.Errorf("State() = %+v", s)
		}
		j.want("a 0s", "b 1s")
	})
}

func TestWaitingCountsTheLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, throttle.LeakyBucket(1, time.Second))
		if n := q.Waiting(); n != 0 {
			t.Errorf("%d wait in a new queue, want 0", n)
		}
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() { _ = q.Wait(t.Context()) })
		}
		for want := 3; want >= 0; want-- { // the first leaves at once
			synctest.Wait()
			if n := q.Waiting(); n != want {
				t.Errorf("%d wait, want %d", n, want)
			}
			time.Sleep(time.Second)
		}
		all.Wait()
	})
}
