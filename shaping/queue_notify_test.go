package shaping_test

import (
	"context"
	"iter"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// A silent part of a remote limiter has nothing to fetch and nothing to close.
type silent struct{ wake func() }

func (s *silent) Notify(wake func()) { s.wake = wake }

func (*silent) Fetch(throttle.Instant, int, iter.Seq[throttle.Request]) {}

func (*silent) Close() error { return nil }

// A metered is a limiter that grants only the permits that the test adds, and fetches.
type metered struct {
	throttle.Limiter
	silent
	mu      sync.Mutex
	permits int
	fetched [][]int
	granted func() // called after a grant; nil: no call
}

func newMetered() *metered {
	l := new(metered)
	l.Limiter = throttle.LimiterFunc(l.take)
	return l
}

func (l *metered) take(now throttle.Instant, r throttle.Request) (throttle.Instant, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.permits < r.N {
		return throttle.Never, nil
	}
	l.permits -= r.N
	if l.granted != nil {
		l.granted()
	}
	return now, nil
}

// Tolerance is long: a machine at its limit must not make permits void here.
func (l *metered) Tolerance() time.Duration { return time.Hour }

func (l *metered) Fetch(_ throttle.Instant, _ int, line iter.Seq[throttle.Request]) {
	var asked []int
	for r := range line {
		if asked = append(asked, r.N); len(asked) == 3 {
			break
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fetched = append(l.fetched, asked)
}

func (l *metered) bring(permits int) {
	l.mu.Lock()
	l.permits += permits
	l.mu.Unlock()
	l.wake()
}

func TestQueueWaitsForAnEventWhereOnlyOneCanHelp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := newMetered()
		q := shaping.NewQueue(limiter)
		j := newJournal(t, q)
		j.come(t.Context(), "a", one())
		j.come(t.Context(), "b", &shaping.Turn{N: 2})
		j.come(t.Context(), "c", &shaping.Turn{N: 3, MaxWait: 30 * time.Minute})
		j.come(t.Context(), "d", &shaping.Turn{N: 4})
		time.Sleep(time.Hour)
		limiter.bring(1)
		synctest.Wait()
		time.Sleep(time.Hour)
		limiter.bring(1) // not enough
		limiter.bring(5)
		j.want("c 30m0s deadline", "a 1h0m0s", "b 2h0m0s", "d 2h0m0s")
		want := [][]int{{1}, {1, 2}, {1, 2, 3}, {1, 2, 3}, {1, 2, 4}, {2, 4}, {2, 4}, nil}
		if !slices.EqualFunc(limiter.fetched, want, slices.Equal) {
			t.Errorf("the limiter was given lines %v, want %v", limiter.fetched, want)
		}
	})
}

// No wake-up is lost between a caller's question and its place in line.
func TestQueueLosesNoWakeUp(t *testing.T) {
	limiter := newMetered()
	q := shaping.NewQueue(limiter)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 2000 {
				if err := q.Wait(t.Context()); err != nil {
					t.Errorf("Wait() = %v", err)
				}
			}
		})
		wg.Go(func() {
			for range 2000 {
				limiter.bring(1)
			}
		})
	}
	wg.Wait()
}

func TestFetchReceivesTheLineInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := newMetered()
		q := shaping.NewQueue(limiter)
		j := newJournal(t, q)
		first := &shaping.Turn{N: 7}
		limiter.bring(7)
		j.come(t.Context(), "first", first)
		j.come(t.Context(), "second", &shaping.Turn{N: 1})
		j.come(t.Context(), "third", &shaping.Turn{N: 2})
		j.come(t.Context(), "first", first) // ahead of both
		if got := limiter.fetched[len(limiter.fetched)-1]; !slices.Equal(got, []int{7, 1, 2}) {
			t.Errorf("the limiter was given the line %v, want [7 1 2]", got)
		}
		q.Close()
		j.want("first 0s", "first 0s closed", "second 0s closed", "third 0s closed")
	})
}

// A never grants five permits, and returns Never instead of an error.
type never struct{ throttle.Limiter }

func (l never) Take(now throttle.Instant, r throttle.Request) (throttle.Grant, error) {
	if r.N == 5 {
		return throttle.Grant{At: throttle.Never}, nil
	}
	return l.Limiter.Take(now, r)
}

func (l never) Forecast(now throttle.Instant, r throttle.Request) throttle.Forecast {
	if r.N == 5 {
		return throttle.Forecast{At: throttle.Never}
	}
	return l.Limiter.Forecast(now, r)
}

// An unbounded context ends without a deadline.
type unbounded struct{ context.Context }

func (unbounded) Deadline() (time.Time, bool) { return time.Time{}, false }

// A caller that joins behind the head does not decide when the head asks again.
func TestHopelessCallerLeavesTheTimerAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := shaping.NewQueue(never{newLimiter(t, throttle.LeakyBucket(1, time.Second))})
		j := newJournal(t, q)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		j.come(t.Context(), "a", one())
		j.come(t.Context(), "b", one())
		j.come(t.Context(), "c", one())
		j.come(unbounded{ctx}, "hopeless", &shaping.Turn{N: 5})
		j.want("a 0s", "b 1s", "c 2s", "hopeless 10s late")
	})
}
