package shaping

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/weirgo/weir/throttle"
)

// Whether callers leave one by one or all at once, the others depart in the same order, and by the
// same deadlines.
func TestLeavingTogetherIsLeavingOneByOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var lines [2]struct {
			q   *Queue
			all []*waiter
		}
		for i := range lines {
			lines[i].q = NewQueue(throttle.LimiterFunc(func(throttle.Instant, throttle.Request) (throttle.Instant, error) { return throttle.Never, nil }))
		}
		for i := range rapid.IntRange(1, 60).Draw(t, "callers") {
			u := urgency{
				priority: Priority(rapid.IntRange(-1, 1).Draw(t, "class")),
				tenant:   rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "tenant"),
			}
			n, deadline := rapid.IntRange(0, 9).Draw(t, "n"), throttle.Instant(rapid.IntRange(1, 99).Draw(t, "deadline"))
			for k := range lines {
				w := &waiter{place: place{throttle.Instant(i), 1}, cost: float64(n), deadline: deadline, n: n, bytes: int64(n)}
				lines[k].q.line.enter(w, u)
				lines[k].q.expiring.add(w)
				lines[k].all = append(lines[k].all, w)
			}
		}
		one, together := lines[0], lines[1]
		var leave []*waiter
		for i, w := range one.all {
			if rapid.Bool().Draw(t, "leaves") {
				one.q.drop(w)
				leave = append(leave, together.all[i])
			}
		}
		if len(leave) == 0 {
			return
		}
		together.q.dropAll(leave)
		if a, b := &one.q.line, &together.q.line; a.count != b.count || a.bytes != b.bytes || len(a.classes) != len(b.classes) {
			t.Fatalf("%d callers of %d bytes in %d classes stay, want %d, %d, %d", b.count, b.bytes, len(b.classes), a.count, a.bytes, len(a.classes))
		}
		if a, b := stays(one.q), stays(together.q); !slices.Equal(a, b) {
			t.Fatalf("departures by arrival, and deadlines, are %v, want %v", b, a)
		}
	})
}

// stays empties a queue, and returns the next deadline before each departure, and its caller.
func stays(q *Queue) (all []throttle.Instant) {
	for q.line.count > 0 {
		w := q.line.first()
		all = append(all, w.arrived, q.expiring.next())
		q.expiring.remove(w)
		q.line.depart(w)
	}
	return append(all, q.expiring.next())
}

// A caller that gives up while another goroutine holds the lock does not wait for it, and is
// removed when that one is done. A permit granted to it goes to another.
func TestLeaverDoesNotWaitForTheLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter, err := throttle.Local{}.Limiter("test", throttle.LeakyBucket(1, time.Second))
		if err != nil {
			t.Fatal(err)
		}
		q := NewQueue(limiter)
		wait(t, q)
		ctx, cancel := context.WithCancel(t.Context())
		gone := make(chan error, 1)
		go func() { gone <- q.Wait(ctx) }()
		synctest.Wait()
		next := make(chan time.Duration, 1)
		go func() {
			wait(t, q)
			next <- time.Since(q.started)
		}()
		synctest.Wait()
		time.Sleep(time.Second - 1)
		q.lock()
		cancel()
		if err := <-gone; !errors.Is(err, context.Canceled) {
			t.Errorf("Wait = %v while another holds the lock, want context.Canceled", err)
		}
		time.Sleep(time.Nanosecond)
		q.letGo(q.line.first(), outcome{grant: throttle.Grant{At: q.Now()}, granted: q.Now(), due: q.Now()}) // the leaver, in the same moment
		if _, err := q.limiter.Take(q.Now(), throttle.Request{N: 1}); err != nil {
			t.Fatal(err)
		}
		q.unlock()
		if at := <-next; at != time.Second {
			t.Errorf("the next departed at %v, want 1s", at)
		}
		if n := q.Waiting(); n != 0 {
			t.Errorf("%d in line, want 0", n)
		}
	})
}

// The rest of hundreds of callers, cancelled together, depart in their order, one at each permit.
func TestTheRestDepartsInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter, err := throttle.Local{}.Limiter("test", throttle.LeakyBucket(1, time.Second))
		if err != nil {
			t.Fatal(err)
		}
		q := NewQueue(limiter)
		wait(t, q)
		ctx, cancel := context.WithCancel(t.Context())
		departed := make(chan int, 10)
		for i := range 1000 {
			go func() {
				if i%100 != 99 {
					if err := q.Wait(ctx); !errors.Is(err, context.Canceled) {
						t.Errorf("Wait = %v, want context.Canceled", err)
					}
					return
				}
				wait(t, q)
				departed <- i
			}()
			synctest.Wait()
		}
		cancel()
		synctest.Wait()
		if n := q.Waiting(); n != 10 {
			t.Errorf("%d in line, want 10", n)
		}
		for i := range 10 {
			if got, at := <-departed, time.Since(q.started); got != 100*i+99 || at != time.Duration(i+1)*time.Second {
				t.Errorf("caller %d departed at %v, want %d at %ds", got, at, 100*i+99, i+1)
			}
		}
	})
}

// Granted callers depart while another goroutine holds the lock: callers granted together do not
// wait again, for the lock.
func TestCallersDepartWithoutTheLock(t *testing.T) {
	limiter, err := throttle.Local{}.Limiter("test", throttle.LeakyBucket(1, time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	q := NewQueue(limiter)
	wait(t, q)
	departed := make(chan error)
	for range 2 {
		go func() { departed <- q.Wait(t.Context()) }()
	}
	for q.Waiting() < 2 {
		runtime.Gosched()
	}
	q.lock()
	for w := q.line.first(); w != nil; w = q.line.first() {
		q.letGo(w, outcome{grant: throttle.Grant{At: q.Now()}, granted: q.Now(), due: q.Now()})
	}
	q.free()
	q.lock()
	defer q.unlock()
	for range 2 {
		select {
		case err := <-departed:
			if err != nil {
				t.Errorf("Wait = %v, want nil", err)
			}
		case <-time.After(10 * time.Second):
			t.Fatal("a granted caller waits for the lock")
		}
	}
}
