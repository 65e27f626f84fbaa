package throttle_test

import (
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirgo/weir/throttle"
)

// The lock-free form and the locked set run the same random histories: every decision and every
// state must be equal.
func TestLockFreeDecidesAsLocked(t *testing.T) {
	lockFree, histories := 0, 5_000
	if testing.Short() {
		histories = 500
	}
	for seed := range uint64(histories) {
		random := rand.New(rand.NewPCG(seed, 1))
		l := randomBucket(random)
		a, b := throttle.NewAt(l), throttle.NewLocked(l)
		now, latest := epoch, epoch
		var at throttle.Instant
		for step := range 60 {
			interval := int64(l.Per) / int64(l.Permits)
			now += throttle.Instant(random.Int64N(interval+2) * random.Int64N(3))
			switch random.IntN(20) {
			case 0: // idle
				now += throttle.Instant(20 * interval)
			case 1: // read out of order, by less than the burst lasts
				now = latest - throttle.Instant(random.Int64N(interval*int64(max(l.Burst, 1))+1))
			case 2:
				refundBoth(now, at, a, b)
			case 3:
				f := throttle.Fact{Until: now + throttle.Instant(random.Int64N(4*interval+1)-interval)}
				reconcileBoth(now, f, a, b)
			case 4:
				reconcileBoth(now, throttle.Fact{Resumed: true}, a, b)
			case 5:
				l = randomBucket(random)
				tuneBoth(t, now, l, a, b)
			}
			latest = max(latest, now)
			quick := throttle.LockFree(a)
			if quick {
				lockFree++
			}
			r := throttle.Request{N: 1 + random.IntN(max(l.Burst, 1)), Urgent: random.IntN(3) == 0, Since: now - throttle.Instant(random.Int64N(2*interval+1))}
			f, g := a.Forecast(now, r), b.Forecast(now, r)
			if max(f.At, now) != max(g.At, now) {
				t.Fatalf("history %d, step %d: %v: Forecast(%d, %+v) lock-free = %d; locked = %d", seed, step, l, now-epoch, r, f.At-epoch, g.At-epoch)
			}
			x, errX := a.Take(now, r)
			if quick && errX == nil && max(f.At, x.At) <= now && f.At > x.At {
				t.Fatalf("history %d, step %d: %v: Forecast(%d, %+v) lock-free = %d; Take = %d", seed, step, l, now-epoch, r, f.At-epoch, x.At-epoch)
			}
			y, errY := b.Take(now, r)
			if x.At != y.At || (errX == nil) != (errY == nil) {
				t.Fatalf("history %d, step %d: %v: Take(%d, %+v) lock-free = %d, %v; locked = %d, %v", seed, step, l, now-epoch, r, x.At-epoch, errX, y.At-epoch, errY)
			}
			if x.At <= now {
				at = x.At
			}
		}
	}
	if lockFree < 12*histories {
		t.Fatalf("only %d takes were lock-free", lockFree)
	}
}

// A returned permit that was not taken in time is dropped.
func TestReturnedPermitsHoldUpTheLockFreeFormNoLongerThanTheTolerance(t *testing.T) {
	l := throttle.NewAt(throttle.LeakyBucket(1000, time.Second))
	now := epoch
	for range 4 {
		_, _ = l.Take(now, throttle.Request{N: 1})
		now = now.Add(time.Millisecond)
	}
	l.Refund(now, throttle.Grant{At: epoch.Add(time.Millisecond)}, throttle.Request{N: 1})
	if throttle.LockFree(l) {
		t.Fatal("a returned permit is not kept")
	}
	now = now.Add(20 * time.Millisecond)
	_, _ = l.Take(now, throttle.Request{N: 1})
	if !throttle.LockFree(l) {
		t.Fatal("20 ms later, twice the tolerance, the returned permit is still kept")
	}
}

// A burst or a cost that does not fit the word is decided as by the locked set.
func TestBurstsAndCostsBeyondTheWordAreDecidedAsLocked(t *testing.T) {
	const day = 24 * time.Hour
	for _, c := range []struct {
		limit throttle.Limit
		costs []int // one a day
		left  int   // of them
	}{
		{throttle.LeakyBucket(1, day), []int{1, math.MaxInt32, 1, 1}, 2},
		{throttle.LeakyBucket(1, day), []int{1, 213_504, 1, 1}, 2}, // almost the range in days
		{throttle.TokenBucket(1, day, 200_000), []int{1, 1, 50_000, 1, 2}, 5},
		{throttle.TokenBucket(1, day, math.MaxInt32), []int{1, 1, 50_000, 1, 2}, 5},
	} {
		a, b, left := throttle.NewAt(c.limit), throttle.NewLocked(c.limit), 0
		for i, n := range c.costs {
			now := epoch.Add(time.Duration(i) * day)
			got, err := a.Take(now, throttle.Request{N: n})
			want, _ := b.Take(now, throttle.Request{N: n})
			if got.At != want.At || err != nil {
				t.Errorf("%v: Take(%d) on day %d = %d, %v, want %d", c.limit, n, i, got.At, err, want.At)
			}
			if got.At <= now {
				left++
			}
		}
		if left != c.left {
			t.Errorf("%v: %d of the costs %v left, want %d", c.limit, left, c.costs, c.left)
		}
	}
}

func randomBucket(random *rand.Rand) throttle.Limit {
	permits := []int{1, 3, 7, 100, 7_777, 150_000, 1_000_000}[random.IntN(7)]
	if random.IntN(3) == 0 {
		return throttle.LeakyBucket(permits, time.Second)
	}
	l := throttle.TokenBucket(permits, time.Second, 1+random.IntN(20))
	if random.IntN(2) == 0 && l.Burst > 3 {
		l.Keep, l.Reserve = "30%", "25%"
		if permits < 7 {
			l.Keep = ""
		}
	}
	return l
}

func refundBoth(now, at throttle.Instant, a, b throttle.Limiter) {
	for _, l := range []throttle.Limiter{a, b} {
		l.Refund(now, throttle.Grant{At: at}, throttle.Request{N: 1})
	}
}

func reconcileBoth(now throttle.Instant, f throttle.Fact, a, b throttle.Limiter) {
	for _, l := range []throttle.Limiter{a, b} {
		l.Reconcile(now, f)
	}
}

func tuneBoth(t *testing.T, now throttle.Instant, limit throttle.Limit, a, b throttle.Limiter) {
	for _, l := range []throttle.Limiter{a, b} {
		if err := l.Tune(now, limit); err != nil {
			t.Fatal(err)
		}
	}
}

func TestInstantsFarAwayDoNotOverflow(t *testing.T) {
	for name, make := range paths {
		for _, now := range []throttle.Instant{-1 << 62, -1, 1, 1 << 62, throttle.Never - 1<<40} {
			for _, since := range []throttle.Instant{-1 << 63, -1<<63 + 1, -1, 1, throttle.Never} {
				l := make(throttle.TokenBucket(1, time.Second, 5))
				for i := range 10 {
					granted, err := l.Take(now, throttle.Request{N: 1, Since: since})
					if err != nil || (granted.At <= now) != (i < 5) || granted.At < now.Add(-time.Second) {
						t.Errorf("%s: Take(%d, 1 since %d) number %d = %d, %v", name, now, since, i+1, granted.At, err)
					}
				}
			}
		}
	}
}

// Many goroutines take, give back, settle, tune and read at once, each with an advancing clock of
// its own: the grants stay within the bound.
func TestConcurrentUseKeepsTheBound(t *testing.T) {
	sets := [][]throttle.Limit{
		{throttle.TokenBucket(1000, time.Second, 50)},
		{throttle.TokenBucket(1000, time.Second, 50), throttle.SlidingLog(5000, time.Minute)},
		{throttle.FixedWindow(1000, time.Second)},
		{throttle.SlidingWindow(1000, time.Second), throttle.LeakyBucket(1000, time.Second)},
	}
	for _, limits := range sets {
		l := throttle.NewAt(limits...)
		var clock, granted atomic.Int64
		clock.Store(int64(epoch))
		var wg sync.WaitGroup
		for g := range 16 {
			wg.Go(func() {
				random := rand.New(rand.NewPCG(uint64(g), 9))
				for range 2_000 {
					now := throttle.Instant(clock.Add(int64(50 * time.Microsecond)))
					disturb(l, now, random, limits)
					g, err := l.Take(now, throttle.Request{N: 1, Since: now - 1000})
					if err != nil {
						t.Error(err)
						return
					}
					if g.At > now {
						continue
					}
					switch random.IntN(20) {
					case 0, 1:
						l.Refund(now, g, throttle.Request{N: 1})
						continue
					case 2:
						l.Settle(now, g, throttle.Request{N: 1}, throttle.Request{})
						continue
					}
					granted.Add(1)
				}
			})
		}
		wg.Wait()
		took := throttle.Instant(clock.Load()).Sub(epoch)
		most := int64(1000*took.Seconds()) + 50 + 10 + 1000*int64(limits[0].Burst/1001)
		if limits[0].Algorithm == throttle.AlgorithmFixedWindow {
			most += 1000
		}
		if got := granted.Load(); got > most || got < 50 {
			t.Errorf("%v: %d granted in %v, want at most %d", limits, got, took, most)
		}
	}
}

func disturb(l throttle.Limiter, now throttle.Instant, random *rand.Rand, limits []throttle.Limit) {
	switch random.IntN(200) {
	case 0:
		_ = l.Tune(now, limits...)
	case 1:
		l.Reconcile(now, throttle.Fact{Resumed: true})
	case 2:
		l.Reconcile(now, throttle.Fact{})
	case 3:
		l.State(now)
	case 4:
		l.Forecast(now, throttle.Request{N: 1})
	case 5:
		l.Reconcile(now, throttle.Fact{Until: now + 1})
	case 6:
		l.Settle(now, throttle.Grant{At: now}, throttle.Request{N: 1}, throttle.Request{N: 3})
	}
}
