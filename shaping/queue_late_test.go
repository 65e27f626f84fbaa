package shaping

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/throttle"
)

// lateQueue returns a queue whose timer is late.
func lateQueue(t *testing.T, late time.Duration, limits ...throttle.Limit) *Queue {
	t.Helper()
	limiter, err := throttle.Local{}.Limiter("test", limits...)
	if err != nil {
		t.Fatal(err)
	}
	q := NewQueue(limiter)
	q.alarm = time.AfterFunc(time.Hour, func() {
		time.Sleep(late)
		q.wake()
	})
	q.alarm.Stop()
	return q
}

func wait(t *testing.T, q *Queue) {
	t.Helper()
	if err := q.Wait(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestLateTimerKeepsTheRateOfOneWorker(t *testing.T) {
	for _, c := range []struct {
		limit throttle.Limit
		late  time.Duration
		work  time.Duration // between two waits
		calls int
		want  time.Duration
	}{
		// All permits that fell due while the timer was late depart with it.
		{throttle.LeakyBucket(10_000, time.Second), time.Millisecond, 0, 10_001, time.Second + time.Millisecond},
		{throttle.LeakyBucket(10_000, time.Second), time.Millisecond, 20 * time.Microsecond, 10_001, time.Second + time.Millisecond},
		{throttle.LeakyBucket(1000, time.Second), 900 * time.Microsecond, 0, 1001, time.Second + 900*time.Microsecond},
		{throttle.TokenBucket(1000, time.Second, 5), 5 * time.Millisecond, 0, 1005, time.Second + 5*time.Millisecond},
		// Later than the tolerance of 10 ms: 11 each 31 ms, the rest is void.
		{throttle.LeakyBucket(1000, time.Second), 30 * time.Millisecond, 0, 101, 310 * time.Millisecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			q := lateQueue(t, c.late, c.limit)
			start := time.Now()
			for i := range c.calls {
				if i > 0 {
					time.Sleep(c.work)
				}
				wait(t, q)
			}
			if took := time.Since(start); took > c.want || took < c.want-c.late-c.work {
				t.Errorf("%v, timer late by %v: %d calls took %v, want %v", c.limit, c.late, c.calls, took, c.want)
			}
		})
	}
}

func TestLateTimerKeepsTheRateOfALine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const late, calls = 900 * time.Microsecond, 1000
		q := lateQueue(t, late, throttle.LeakyBucket(1000, time.Second))
		start := time.Now()
		var wg sync.WaitGroup
		for range calls + 1 {
			wg.Go(func() { wait(t, q) })
		}
		wg.Wait()
		if took := time.Since(start); took != time.Second+late {
			t.Errorf("%d calls took %v, want %v", calls, took, time.Second+late)
		}
	})
}

// Settle finds the permit by its instant, however late its caller woke.
func TestDepartureIsDatedByItsPermit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := lateQueue(t, 5*time.Millisecond, throttle.LeakyBucket(1000, time.Second))
		wait(t, q)
		start := q.Now()
		turn := Turn{N: 1, Each: []int{1}, ID: 7}
		if err := q.WaitTurn(t.Context(), &turn); err != nil {
			t.Fatal(err)
		}
		d := turn.Departure()
		if d.Grant.At != start.Add(time.Millisecond) || turn.Departed() != start.Add(6*time.Millisecond) {
			t.Errorf("charged %v and departed %v after the first, want 1ms and 6ms", d.Grant.At.Sub(start), turn.Departed().Sub(start))
		}
		if r := d.Request; r.N != 1 || !slices.Equal(r.Each, turn.Each) || r.ID != 7 {
			t.Errorf("charged %+v", r)
		}
	})
}

// A caller that runs too late waits for the lock before it takes another permit. Its departure is no
// earlier than that permit. The clock of a bubble would stand still meanwhile.
func TestDepartureIsNotBeforeItsPermit(t *testing.T) {
	for _, late := range []time.Duration{0, 20 * time.Millisecond} {
		q := lateQueue(t, 0, throttle.LeakyBucket(1000, time.Second))
		g, err := q.limiter.Take(q.Now(), throttle.Request{N: 1})
		if err != nil {
			t.Fatal(err)
		}
		w := q.newWaiter(t.Context(), 0)
		w.n, w.out, w.watched = 1, outcome{grant: g, granted: q.Now()}, true
		q.asleep = new(sleepers)
		time.Sleep(late)
		q.lock()
		from := q.Now()
		missed := make(chan bool)
		go func() { missed <- q.missed(w) }()
		time.Sleep(5 * time.Millisecond)
		unlocked := q.Now()
		q.unlock()
		if <-missed {
			t.Fatal("it stands in line again, want another permit")
		}
		if at := w.out.granted; at < w.out.grant.At || at < unlocked {
			t.Errorf("%v late, it waited %v for the lock, and departed %v before that, %v after its permit", late, unlocked.Sub(from), unlocked.Sub(at), at.Sub(w.out.grant.At))
		}
	}
}

// Lateness is credit for callers that it delayed, not a burst for later ones.
func TestLateTimerSavesNothingUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := lateQueue(t, 5*time.Millisecond, throttle.LeakyBucket(1000, time.Second))
		wait(t, q)
		wait(t, q) // due at 1ms, woken at 6ms
		time.Sleep(9 * time.Millisecond)
		start := time.Now()
		var atOnce atomic.Int32
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				wait(t, q)
				if time.Since(start) == 0 {
					atOnce.Add(1)
				}
			})
		}
		wg.Wait()
		if n := atOnce.Load(); n > 2 {
			t.Errorf("%d callers left a leaky bucket at once, want 1, and 1 for the lateness before", n)
		}
	})
}

// A caller that woke too late for its permits asks again, and its earlier grant is at hand: the
// bucket has room for it.
func TestLateCallerLosesNoCost(t *testing.T) {
	for _, limits := range [][]throttle.Limit{
		{throttle.TokenBucket(600, time.Minute, 600)},
		{throttle.TokenBucket(600, time.Minute, 600), throttle.TokenBucket(1000, time.Second, 1000)}, // late after 10 ms
		{throttle.FixedWindow(600, time.Minute)},
	} {
		synctest.Test(t, func(t *testing.T) {
			limiter, err := throttle.Local{}.Limiter("test", limits...)
			if err != nil {
				t.Fatal(err)
			}
			q := NewQueue(limiter)
			var late time.Duration
			q.Hook = &Hook{Wait: func(_ context.Context, w Wait) func(error) {
				if late == 0 { // time from the grant to its goroutine's run
					late = 2*limiter.Tolerance() + time.Millisecond
					time.Sleep(w.Planned + late)
				}
				return nil
			}}
			start := time.Now()
			for range 3 {
				if err := q.WaitTurn(t.Context(), &Turn{N: 1, Each: []int{300}}); err != nil {
					t.Fatal(err)
				}
			}
			due := 30 * time.Second
			if limits[0].Algorithm == throttle.AlgorithmFixedWindow {
				due = time.Minute
			}
			if took := time.Since(start); took < due+late || took > due+2*late || q.State().Stale != 1 {
				t.Errorf("%v: the third of 300 left at %v, and %d were stale, want %v and 1", limits, took, q.State().Stale, due+late)
			}
		})
	}
}

// Once its lateness no longer counts, the queue grants callers without its lock.
func TestLateTimerIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := lateQueue(t, time.Millisecond, throttle.LeakyBucket(1000, time.Second))
		wait(t, q)
		wait(t, q)
		time.Sleep(time.Second)
		wait(t, q)
		if !q.idle() {
			t.Error("the queue takes its lock for a lateness long past")
		}
	})
}

// A queue that was late when it was closed stays closed when its lateness is forgotten.
func TestForgottenLatenessOpensNoClosedQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := lateQueue(t, time.Millisecond, throttle.LeakyBucket(1000, time.Second))
		wait(t, q)
		wait(t, q)
		if q.late.Load() == 0 {
			t.Fatal("the queue was not late: no test")
		}
		q.Close()
		time.Sleep(time.Second)
		for range 2 { // the first forgets the lateness
			if err := q.Wait(t.Context()); !errors.Is(err, ErrClosed) {
				t.Errorf("Wait() = %v after Close, want ErrClosed", err)
			}
		}
	})
}

// No caller overtakes the line because its lateness was forgotten.
func TestForgottenLatenessKeepsTheLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := lateQueue(t, 5*time.Millisecond, throttle.LeakyBucket(1, time.Second))
		wait(t, q)
		wait(t, q)
		if q.late.Load() == 0 {
			t.Fatal("the queue was not late: no test")
		}
		start := time.Now()
		var wg sync.WaitGroup
		wg.Go(func() {
			wait(t, q)
			if waited := time.Since(start); waited > time.Second {
				t.Errorf("the head of the line left after %v, want when the next came, after 997ms", waited)
			}
		})
		time.Sleep(500 * time.Millisecond)
		if err := q.WaitTurn(t.Context(), &Turn{N: 1, MaxWait: 1}); !errors.Is(err, ErrDeadline) {
			t.Errorf("WaitTurn() = %v, want ErrDeadline", err)
		}
		time.Sleep(497 * time.Millisecond) // the permit is at hand, the timer late
		wait(t, q)
		wg.Wait()
	})
}

// A caller that departs together with the head before it has no lateness: afterwards a leaky bucket
// grants one at a time.
func TestLatenessIsOfTheHeadAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter, err := throttle.Local{}.Limiter("test", throttle.LeakyBucket(1000, time.Second))
		if err != nil {
			t.Fatal(err)
		}
		q := NewQueue(limiter)
		start := time.Now()
		var mu sync.Mutex
		var wg sync.WaitGroup
		at := make(map[time.Duration]int)
		come := func(when time.Duration, n int) {
			wg.Go(func() {
				time.Sleep(when)
				if err := q.WaitN(t.Context(), n); err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				at[time.Since(start)]++
			})
		}
		come(0, 20)
		come(time.Nanosecond, 1)
		come(5*time.Millisecond, 0)
		for range 12 {
			come(30*time.Millisecond, 1)
		}
		wg.Wait()
		for instant, n := range at {
			if instant >= 30*time.Millisecond && n > 1 {
				t.Errorf("%d left a leaky bucket at %v, want one at a time", n, instant)
			}
		}
	})
}

// A returned permit is no late timer either: its instant is past, but no caller could have had it
// then.
func TestReturnedPermitIsNoLateness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := lateQueue(t, 0, throttle.LeakyBucket(1000, time.Second))
		first, second := Turn{N: 1}, Turn{N: 1}
		var wg sync.WaitGroup
		for _, turn := range []*Turn{&first, &second} {
			if err := q.WaitTurn(t.Context(), turn); err != nil {
				t.Fatal(err)
			}
		}
		wg.Go(func() { wait(t, q) })
		synctest.Wait()
		time.Sleep(700 * time.Microsecond)
		q.Return(&second)
		wg.Wait()
		if late := time.Duration(q.late.Load()); late > 0 {
			t.Errorf("a permit that came back makes the queue late by %v", late)
		}
	})
}

// A sleeper is a context whose caller runs only a while after it was woken, as on a busy machine.
type sleeper struct {
	context.Context
	q   *Queue
	nap time.Duration
}

// Err is also called under the queue's lock, where no caller sleeps.
func (s sleeper) Err() error {
	if s.q.mu.TryLock() {
		s.q.mu.Unlock()
		time.Sleep(s.nap)
	}
	return s.Context.Err()
}

// Sleeper returns a sleeper, for the tests outside of the package.
func Sleeper(ctx context.Context, q *Queue, nap time.Duration) context.Context {
	return sleeper{ctx, q, nap}
}

// Callers that all wake up later than the tolerance still depart, each for one permit.
func TestCallersThatAlwaysWakeLateLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter, err := throttle.Local{}.Limiter("test", throttle.LeakyBucket(100, time.Second)) // tolerance 20ms
		if err != nil {
			t.Fatal(err)
		}
		paid := &tally{Limiter: limiter}
		q := NewQueue(paid)
		const callers = 64
		ctx := sleeper{t.Context(), q, 50 * time.Millisecond}
		start := time.Now()
		var wg sync.WaitGroup
		for range callers {
			wg.Go(func() {
				if err := q.Wait(ctx); err != nil {
					t.Error(err)
				}
			})
		}
		stuck := time.AfterFunc(time.Minute, func() { q.Close() })
		defer stuck.Stop()
		wg.Wait()
		if took, most := time.Since(start), 2*callers*10*time.Millisecond; took > most || q.State().Stale == 0 {
			t.Errorf("%d callers left in %v, %d of their permits void, want %v at most, and some", callers, took, q.State().Stale, most)
		}
		if n := paid.spent.Load(); n != callers {
			t.Errorf("%d callers left for %d permits", callers, n)
		}
	})
}
