package xrate_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"golang.org/x/time/rate"

	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/shaping/xrate"
	"github.com/weirgo/weir/throttle"
)

// waiter is the interface of code that takes a *rate.Limiter.
type waiter interface {
	Allow() bool
	AllowN(time.Time, int) bool
	Wait(context.Context) error
	WaitN(context.Context, int) error
	Limit() rate.Limit
}

var (
	_ waiter = (*rate.Limiter)(nil)
	_ waiter = xrate.Waiter{}
)

// Callers of the queue and of the limiter itself share its tokens, and no token is lost.
func TestQueueSpendsTheTokensOfALimiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := rate.NewLimiter(10, 5)
		q := shaping.NewQueue(xrate.Limiter(l))
		defer q.Close()
		began := time.Now()
		if !l.AllowN(began, 2) {
			t.Fatal("the limiter does not allow 2 of its burst of 5")
		}
		var callers sync.WaitGroup
		for i := range 10 {
			callers.Go(func() {
				wait := q.Wait
				if i%5 == 4 {
					wait = l.Wait
				}
				if err := wait(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		callers.Wait()
		// 12 tokens: 5 at once, 7 at 10/s.
		if took := time.Since(began).Round(time.Millisecond); took != 700*time.Millisecond {
			t.Errorf("12 tokens took %v, want 700ms", took)
		}
	})
}

// A machine that slept, or whose clock was set, has a wall clock ahead of the queue's.
func TestStepOfTheWallClockMakesNoTokens(t *testing.T) {
	l := rate.NewLimiter(rate.Every(time.Hour), 1)
	q := shaping.NewQueue(xrate.Limiter(l))
	defer q.Close()
	if err := q.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	*(*uint64)(unsafe.Pointer(&now)) += 7200 << 30 // seconds of its wall clock; the monotonic one stays
	if time.Since(now) < 0 || now.Round(0).Before(time.Now().Add(time.Hour)) {
		t.Fatal("package time has another form of instants: the step needs another way")
	}
	if l.AllowN(now, 1) {
		t.Error("after a step of two hours the limiter allows a second call within the hour")
	}
}

func TestNegativeRateIsNone(t *testing.T) {
	l := rate.NewLimiter(-1, 1)
	limiter := xrate.Limiter(l)
	now := throttle.InstantOf(time.Now())
	for _, want := range []throttle.Instant{now, now.Add(time.Second)} {
		if g, err := limiter.Take(now, throttle.Request{N: 1}); g.At != want || err != nil {
			t.Errorf("Take = %v, %v, want %v from now", g.At.Sub(now), err, want.Sub(now))
		}
	}
}

func TestTooManyTokensAreAnError(t *testing.T) {
	q := shaping.NewQueue(xrate.Limiter(rate.NewLimiter(10, 5)))
	defer q.Close()
	if err := q.WaitN(t.Context(), 6); !errors.Is(err, throttle.ErrExceedsBurst) {
		t.Errorf("WaitN(6) = %v, want ErrExceedsBurst", err)
	}
}

func TestWaiterAllowsWhatIsAtHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter, err := throttle.Local{}.Limiter("", throttle.TokenBucket(10, time.Second, 3), throttle.TokenBucket(20, time.Second, 20))
		if err != nil {
			t.Fatal(err)
		}
		w := xrate.Waiter{Queue: shaping.NewQueue(limiter)}
		defer w.Close()
		if w.Limit() != 10 {
			t.Errorf("Limit() = %v, want 10", w.Limit())
		}
		if !w.AllowN(time.Now(), 2) || !w.Allow() || w.Allow() {
			t.Error("a burst of 3 does not allow 2 and 1 and no more")
		}
		time.Sleep(150 * time.Millisecond)
		began := time.Now()
		if !w.Allow() || w.Allow() || time.Since(began) != 0 {
			t.Error("after 150ms one call is not allowed at once, or a second one is")
		}
	})
}
