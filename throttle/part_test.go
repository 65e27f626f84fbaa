package throttle_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/weirgo/weir/throttle"
)

func TestKeepMakesTheLimitSmaller(t *testing.T) {
	for _, c := range []struct{ limit, want string }{
		{"5000/h burst 500 keep 20%", "4000/h burst 400"},
		{"5000/h burst 500 keep 1000", "4000/h burst 400"},
		{"5000/h keep 20%", "4000/h burst 1"},
		{"100/s burst 20 keep 7%", "93/s burst 18"},
		{"3/s burst 5 keep 1%", "2/s burst 3"},
		{"fixed 5000/h keep 1k reserve 10%", "fixed 4000/h reserve 10%"},
		{"leaky 10/s keep 5%", "leaky 9/s"},
		{"log 100/m keep 0%", "log 100/m"},
	} {
		l, err := throttle.ParseLimit(c.limit)
		if got := l.Enforced().String(); err != nil || got != c.want {
			t.Errorf("%s enforces %s, %v, want %s", c.limit, got, err, c.want)
		}
	}
	huge := throttle.TokenBucket(math.MaxInt, time.Hour, math.MaxInt).Keeping("50%")
	if got := huge.Enforced(); float64(got.Burst) > math.MaxInt/2*1.001 || float64(got.Burst) < math.MaxInt/2*0.999 {
		t.Errorf("half of the largest burst is %d", got.Burst)
	}
}

// The state shows the limit as written, and counts the enforced permits.
func TestKeptPermitsAreNeverSpent(t *testing.T) {
	for _, text := range []string{"100/m burst 50 keep 20%", "fixed 100/m keep 20", "log 100/m keep 20%", "sliding 100/m keep 20%", "leaky 100/m keep 20%"} {
		l, err := throttle.ParseLimit(text)
		if err != nil {
			t.Fatal(err)
		}
		limiter, granted := throttle.NewAt(l), 0
		for now := epoch; now < epoch.Add(10*time.Minute); now = now.Add(100 * time.Millisecond) {
			for {
				if g, err := limiter.Take(now, throttle.Request{N: 1}); err != nil {
					t.Fatal(err)
				} else if g.At > now {
					break
				}
				granted++
			}
		}
		if granted < 740 || granted > 880 {
			t.Errorf("%s: %d permits in 10 minutes, want about 800 and no more than a burst or a window beyond", text, granted)
		}
		s := limiter.State(epoch.Add(time.Hour)).Limits[0]
		if s.Limit.String() != text+" of requests name "+s.Limit.Name || s.Headroom > 80 {
			t.Errorf("%s: the state is of %s with %v at hand", text, s.Limit, s.Headroom)
		}
	}
}

// Bulk takes all that it may from midnight on. The reserve is available to urgent requests all day,
// and is all spent in the end.
func TestFixedWindowReleasesItsReserveUntilItsEnd(t *testing.T) {
	const day = 24 * time.Hour
	limiter := throttle.NewAt(throttle.FixedWindow(20_000, day).Reserving("10%"))
	midnight := throttle.InstantOf(time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC))
	bulk, now := 0, midnight
	for now < midnight.Add(day) {
		if reserved := int(2000 * midnight.Add(day).Sub(now) / day); 20_000-bulk < reserved {
			t.Fatalf("%d permits are left after %v, want %d or more", 20_000-bulk, now.Sub(midnight), reserved)
		}
		g, err := limiter.Take(now, throttle.Request{N: 1})
		if err != nil {
			t.Fatal(err)
		}
		if g.At <= now {
			bulk++
			continue
		}
		now = g.At
	}
	if bulk != 20_000 {
		t.Errorf("%d permits left on the day, want all 20,000", bulk)
	}
}

func TestUrgentRequestsSpendTheReserve(t *testing.T) {
	for _, c := range []struct {
		limit         string
		bulk, urgent  int           // granted at once
		bulkAt, allAt time.Duration // the next one is granted
	}{
		{"10/s burst 20 reserve 25%", 15, 5, 600 * time.Millisecond, 100 * time.Millisecond},
		{"gcra 10/s burst 20 reserve 5", 15, 5, 600 * time.Millisecond, 100 * time.Millisecond},
		{"10/s burst 40 keep 50% reserve 25%", 15, 5, 1200 * time.Millisecond, 200 * time.Millisecond},
		{"log 20/s reserve 5", 15, 5, time.Second, time.Second},
		{"fixed 20/s reserve 5", 15, 5, time.Second, time.Second},
		{"sliding 20/s reserve 5", 15, 5, 1250*time.Millisecond + 1, time.Second + 1},
	} {
		l, err := throttle.ParseLimit(c.limit)
		if err != nil {
			t.Fatal(err)
		}
		limiter, now := throttle.NewAt(l), epoch.Add(-time.Duration(epoch)%time.Second)
		take := func(urgent bool) (n int, at throttle.Instant) {
			for {
				g, err := limiter.Take(now, throttle.Request{N: 1, Since: now, Urgent: urgent})
				if err != nil {
					t.Fatal(err)
				}
				if g.At > now {
					return n, g.At
				}
				n++
			}
		}
		bulk, _ := take(false)
		urgent, allAt := take(true)
		_, bulkAt := take(false)
		if bulk != c.bulk || urgent != c.urgent || bulkAt.Sub(now) != c.bulkAt || allAt.Sub(now) != c.allAt {
			t.Errorf("%s: %d, then %d urgent ones, the next after %v and %v; want %d, %d, %v, %v",
				c.limit, bulk, urgent, bulkAt.Sub(now), allAt.Sub(now), c.bulk, c.urgent, c.bulkAt, c.allAt)
		}
	}
}

func TestCostsBeyondTheReserveAreUrgent(t *testing.T) {
	limiter := throttle.NewAt(throttle.TokenBucket(100, time.Second, 20).Reserving("25%"))
	_, err := limiter.Take(epoch, throttle.Request{N: 16})
	if want := "throttle: 16 permits exceed the 15 of 20 that limit 100/s burst 20 reserve 25% leaves to requests that are not urgent: cost exceeds burst"; !errors.Is(err, throttle.ErrExceedsBurst) || err.Error() != want {
		t.Errorf("Take of 16 = %v, want %s", err, want)
	}
	if g, err := limiter.Take(epoch, throttle.Request{N: 16, Urgent: true}); err != nil || g.At > epoch {
		t.Errorf("an urgent Take of 16 = %v, %v", g, err)
	}
}

// It begins with its first permit, and so with all of its reserve: a request for more than the rest
// would wait for a release that never comes.
func TestFirstUseWindowLeavesItsReserve(t *testing.T) {
	limit := throttle.FixedWindow(20, time.Second).Aligned(throttle.AlignFirstUse).Reserving("25%")
	limiter := throttle.NewAt(limit)
	if g, err := limiter.Take(epoch, throttle.Request{N: 16}); !errors.Is(err, throttle.ErrExceedsBurst) {
		t.Errorf("Take of 16 = %v, %v, want ErrExceedsBurst", g, err)
	}
	if f := limiter.Forecast(epoch, throttle.Request{N: 16}); f.At != throttle.Never {
		t.Errorf("Forecast of 16 = %v, want Never", f)
	}
	if g, err := limiter.Take(epoch, throttle.Request{N: 15}); err != nil || g.At > epoch {
		t.Errorf("Take of 15 = %v, %v, want them at once", g, err)
	}
	if g, err := limiter.Take(epoch, throttle.Request{N: 5, Urgent: true}); err != nil || g.At > epoch {
		t.Errorf("an urgent Take of the reserve = %v, %v, want it at once", g, err)
	}
}

// Another limit may delay a request until a window that has released nothing yet. The wall clock is
// that of the question, also for later windows.
func TestRequestIsNotAskedAgainBeforeItsWindowReleases(t *testing.T) {
	at := epoch.Add(-time.Duration(epoch) % time.Second)
	wall := func(throttle.Instant) throttle.Instant { return at }
	window := throttle.FixedWindow(10, time.Second).Reserving("4") // 8 permits may leave the other two from 250 ms on
	for _, c := range []struct {
		limits []throttle.Limit
		spent  throttle.Request
		want   time.Duration
	}{
		{[]throttle.Limit{window, throttle.LeakyBucket(10, 31*time.Second)}, throttle.Request{Each: []int{0, 1}, Urgent: true}, 3250*time.Millisecond + 1},
		{[]throttle.Limit{window, throttle.LeakyBucket(10, 33*time.Second)}, throttle.Request{Each: []int{0, 1}, Urgent: true}, 3300 * time.Millisecond},
		{[]throttle.Limit{window}, throttle.Request{N: 10, Urgent: true}, 1250*time.Millisecond + 1},
	} {
		limiter := throttle.NewWall(wall, c.limits...)
		if g, err := limiter.Take(at, c.spent); err != nil || g.At > at {
			t.Fatalf("limits %v: %v, %v", c.limits, g, err)
		}
		g, err := limiter.Take(at, throttle.Request{Each: []int{8, 1}[:len(c.limits)]})
		if err != nil || g.At.Sub(at) != c.want {
			t.Errorf("limits %v: Take = %v, %v, want %v", c.limits, g.At.Sub(at), err, c.want)
		}
	}
}
