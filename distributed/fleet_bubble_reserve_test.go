package distributed_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// Bulk calls wait in line at two replicas from the start of a window. One-time passwords are sent in
// each of its 24 parts, at the replicas in turn. If every limit reserves permits or has a
// burst, each password waits only for the round trip. A bucket without either delays it by one
// interval at most, while bulk spends all permits. A fixed window spends all its permits in the end.
func TestUrgentCallsDoNotWaitForBulk(t *testing.T) {
	const whole = 3 * time.Minute
	bucket := throttle.TokenBucket(14, time.Second, 8)
	for name, c := range map[string]struct {
		limits      []throttle.Limit
		whole, most time.Duration // most: the longest wait of the password
		departs     int           // of bulk and passwords, at least
	}{
		"a fixed window":            {[]throttle.Limit{throttle.FixedWindow(1000, whole).Reserving("10%")}, whole, 0, 1000},
		"a log":                     {[]throttle.Limit{throttle.SlidingLog(1000, whole).Reserving("10%")}, whole, 0, 900},
		"a sliding window":          {[]throttle.Limit{throttle.SlidingWindow(1000, whole/2).Reserving("10%")}, whole / 2, 0, 900},
		"a bucket":                  {[]throttle.Limit{bucket.Reserving("25%")}, time.Minute, 0, 840},
		"a bucket's one":            {[]throttle.Limit{bucket.Reserving("1")}, time.Minute, 0, 840},
		"a slow bucket":             {[]throttle.Limit{throttle.TokenBucket(600, time.Hour, 20).Reserving("10")}, whole, 0, 42},
		"two limits":                {[]throttle.Limit{bucket.Reserving("2"), throttle.FixedWindow(1000, whole).Reserving("10%")}, whole, 0, 1000},
		"a bucket reserves nothing": {[]throttle.Limit{bucket, throttle.FixedWindow(1000, whole).Reserving("10%")}, whole, time.Millisecond, 1000},
		"a bucket saves nothing":    {[]throttle.Limit{throttle.TokenBucket(14, time.Second, 1), throttle.FixedWindow(1000, whole).Reserving("10%")}, whole, time.Second / 14, 1000},
	} {
		if testing.Short() && name != "a slow bucket" {
			continue // each takes seconds under the race detector
		}
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newBubbleFleet(t, 2, time.Millisecond, c.limits...)
				f.meet()
				time.Sleep(time.Until(time.Now().Truncate(time.Hour).Add(time.Hour)))
				f.start = time.Now()
				f.work(0, 10, c.whole-time.Microsecond)
				f.work(1, 10, c.whole-time.Microsecond)
				passwords := f.ask(c.whole, 2*time.Millisecond+c.most)
				f.wg.Wait()
				bulk := len(f.all())
				t.Logf("%d of bulk and %d passwords departed, by %d calls", bulk, passwords, f.server.Calls())
				if bulk+passwords < c.departs {
					t.Errorf("%d of bulk and %d passwords departed, want %d at least", bulk, passwords, c.departs)
				}
			})
		})
	}
}

// ask sends a password from each replica in turn, and returns how many were sent.
func (f *bubbleFleet) ask(whole, most time.Duration) (asked int) {
	urgent := shaping.WithPriority(f.t.Context(), shaping.PriorityHigh)
	for part := range 24 {
		time.Sleep(time.Until(f.start.Add(whole*time.Duration(part)/24 + time.Duration(1000+37*part)*time.Millisecond)))
		replica := part % len(f.queues)
		at := time.Now()
		if part == 12 {
			most = 2 * time.Millisecond // bulk has spent what it may, and goes slower than a bucket lets it
		}
		if err := f.queues[replica].Wait(urgent); err != nil {
			f.t.Error(err)
		}
		if waited := time.Since(at); waited > most {
			f.t.Errorf("the password at replica %d after %v waited %v, want %v at most", replica, at.Sub(f.start), waited, most)
		}
		asked++
	}
	return asked
}

// At eight replicas with bulk in line, an urgent call waits for two calls to Redis at most beside a
// bucket that reserves nothing, and bulk makes hardly more than one call for each request: permits
// of the fast bucket are promised ahead, and half of its burst is left.
func TestUrgentCallsBesideAFastBucket(t *testing.T) {
	if tooSlowHere(t) {
		return
	}
	synctest.Test(t, func(t *testing.T) {
		const rate, replicas, whole, roundTrip = 200, 8, 20 * time.Second, time.Millisecond
		f := newBubbleFleet(t, replicas, roundTrip, throttle.TokenBucket(rate, time.Second, 20), throttle.FixedWindow(20_000, 24*time.Hour).Reserving("10%"))
		f.meet()
		before := f.server.Calls()
		for replica := range replicas {
			f.work(replica, 10, whole)
		}
		urgent, longest := shaping.WithPriority(t.Context(), shaping.PriorityHigh), time.Duration(0)
		for i := range 100 {
			time.Sleep(time.Until(f.start.Add(time.Duration(i)*190*time.Millisecond + time.Duration(1000+37*i)*time.Microsecond)))
			at := time.Now()
			if err := f.queues[i%replicas].Wait(urgent); err != nil {
				t.Fatal(err)
			}
			longest = max(longest, time.Since(at))
		}
		f.wg.Wait()
		bulk, calls := len(f.all()), f.server.Calls()-before
		t.Logf("%d of bulk, %d calls; the longest wait of an urgent call was %v", bulk, calls, longest)
		if longest > 3*roundTrip {
			t.Errorf("an urgent call waited %v, want %v at most", longest, 3*roundTrip)
		}
		if all := rate*int(whole.Seconds()) - 100; bulk < all*95/100 || calls > bulk*13/10 {
			t.Errorf("%d of bulk departed by %d calls, want 0.95 of %d and 1.3 calls each at most", bulk, calls, all)
		}
	})
}

// Callers who give up in less than a second wait in a bucket that reserves a permit, and promises
// none for later. They ask again when the next one is near, not after each reply.
func TestCallersWithDeadlinesAreNeverAHotLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newBubbleFleet(t, 2, time.Millisecond, throttle.TokenBucket(2, time.Second, 5).Reserving("1"))
		f.meet()
		end := time.Now().Add(20 * time.Second)
		for i := range 6 {
			f.wg.Go(func() {
				for time.Now().Before(end) {
					ctx, cancel := context.WithTimeout(t.Context(), 900*time.Millisecond)
					_ = f.queues[i%2].Wait(ctx)
					cancel()
				}
			})
		}
		f.wg.Wait()
		if n := f.server.Calls(); n > 200 {
			t.Errorf("%d calls for 40 permits in 20 s, want 200 at most", n)
		}
	})
}
