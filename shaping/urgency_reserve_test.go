package shaping_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// Bulk waits for the permits that it may spend. Urgent callers spend the reserve at once, even if
// the class of the bulk is owed its share. Then both are earned.
func TestUrgentCallersPassThoseWhomTheReserveHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, throttle.TokenBucket(10, time.Second, 10).Reserving("5"))
		q.LowPriorityShare = 0.5
		j := newJournal(t, q)
		for i := range 7 {
			j.come(t.Context(), fmt.Sprintf("bulk %d", i), &shaping.Turn{N: 1, Priority: shaping.PriorityLow})
		}
		time.Sleep(10 * time.Millisecond)
		for i := range 6 {
			j.come(t.Context(), fmt.Sprintf("urgent %d", i), &shaping.Turn{N: 1, Priority: shaping.PriorityHigh})
		}
		j.want("bulk 0 0s", "bulk 1 0s", "bulk 2 0s", "bulk 3 0s", "bulk 4 0s",
			"urgent 0 10ms", "urgent 1 10ms", "urgent 2 10ms", "urgent 3 10ms", "urgent 4 10ms", "urgent 5 100ms",
			"bulk 5 700ms", "bulk 6 800ms")
	})
}

// A costly urgent caller may ask for the reserve, also if no other caller waits.
func TestUrgentCallerMayAskForMoreThanOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, throttle.TokenBucket(10, time.Second, 10).Reserving("50%"))
		if err := q.WaitN(t.Context(), 6); err == nil {
			t.Error("6 of 10 permits departed beside a reserve of 5")
		}
		urgent := shaping.WithPriority(t.Context(), shaping.PriorityHigh)
		if err := q.WaitN(urgent, 6); err != nil {
			t.Error(err)
		}
		turn := shaping.Turn{N: 10}
		if err := q.CheckWait(urgent, &turn, 0); err != nil {
			t.Error(err)
		}
		if err := q.WaitTurn(urgent, &turn); err != nil {
			t.Error(err)
		}
		q.Return(&turn)
		if got := q.State().Limits[0].Headroom; got != 10 {
			t.Errorf("%v permits are at hand after all came back, want 10", got)
		}
	})
}

// A hundred thousand calls wait in line from midnight on. A one-time password at 23:00 departs at
// once, and at midnight all of the day's permits are spent.
func TestOneTimePasswordPassesTheBulkOfADay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // begins at midnight
		q := newQueue(t, throttle.FixedWindow(20_000, 24*time.Hour).Reserving("10%"))
		left, bulk := atomic.Int64{}, shaping.WithPriority(t.Context(), shaping.PriorityLow)
		left.Store(100_000)
		for range 100 {
			go func() {
				for q.Wait(bulk) == nil && left.Add(-1) > 0 {
				}
			}()
		}
		time.Sleep(time.Second)
		if got := 100_000 - left.Load(); got != 18_001 { // one is released at once
			t.Errorf("%d calls left at midnight, want 18,001", got)
		}
		time.Sleep(23*time.Hour - time.Second)
		began := time.Now()
		for range 80 {
			if err := q.Wait(shaping.WithPriority(t.Context(), shaping.PriorityHigh)); err != nil {
				t.Fatal(err)
			}
		}
		if waited := time.Since(began); waited > 0 {
			t.Errorf("80 one-time passwords waited for %v, want 0s", waited)
		}
		time.Sleep(time.Hour - 1)
		if got := 100_000 - left.Load(); got != 20_000-80 {
			t.Errorf("%d calls left in the day beside 80 urgent ones, want the other 19,920", got)
		}
		q.Close()
	})
}

// A second limit without a reserve delays an urgent caller for less than one interval, while bulk
// takes each of its permits. At 14/s, bulk has taken its part of the day's after 22 minutes.
func TestUrgentCallersWaitLessThanAnIntervalOfOtherLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, throttle.TokenBucket(14, time.Second, 8), throttle.FixedWindow(20_000, 24*time.Hour).Reserving("10%"))
		bulk := shaping.WithPriority(t.Context(), shaping.PriorityLow)
		for range 100 {
			go func() {
				for q.Wait(bulk) == nil {
				}
			}()
		}
		var longest time.Duration
		for range 900 {
			time.Sleep(1361 * time.Millisecond)
			began := time.Now()
			if err := q.Wait(shaping.WithPriority(t.Context(), shaping.PriorityHigh)); err != nil {
				t.Fatal(err)
			}
			longest = max(longest, time.Since(began))
		}
		if longest > time.Second/14 || longest == 0 {
			t.Errorf("an urgent caller waited %v, want less than an interval of %v", longest, time.Second/14)
		}
		q.Close()
	})
}
