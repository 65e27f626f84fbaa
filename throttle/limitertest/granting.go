package limitertest

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/weirgo/weir/throttle"
)

// granting are the rules of when permits are granted.
var granting = []rule{
	{"a whole bucket lets out its burst and then its rate", func(t *testing.T, s Suite) {
		f := begin(t, s, bucket(10, 3))
		f.grants(0, 3)
		f.refuses(0, 1, 100*ms)
		f.refuses(0, 3, 300*ms)
		f.grants(100*ms, 1)
		f.refuses(100*ms, 1, 200*ms)
	}},
	{"a leaky bucket has no burst, not even after idleness", func(t *testing.T, s Suite) {
		f := begin(t, s, throttle.LeakyBucket(10, time.Second))
		f.grants(0, 1)
		f.refuses(0, 1, 100*ms)
		f.grants(time.Hour, 1)
		f.refuses(time.Hour, 1, time.Hour+100*ms)
	}},
	{"a leaky cost of n departs at its instant and the next one n intervals later", func(t *testing.T, s Suite) {
		f := begin(t, s, throttle.LeakyBucket(10, time.Second))
		if at := f.take(0, throttle.Request{N: 50}); at != after(0) {
			t.Fatalf("Take(0, 50) = %v, want now", at.Sub(midnight))
		}
		f.refuses(0, 1, 5*time.Second)
		f.grants(5*time.Second, 1)
	}},
	{"a fixed window lets out its permits, and the next ones in the next window", func(t *testing.T, s Suite) {
		f := begin(t, s, throttle.FixedWindow(3, time.Second))
		f.grants(900*ms, 3)
		f.refuses(900*ms, 1, time.Second)
		f.grants(time.Second, 3)
		f.refuses(time.Second, 2, 2*time.Second)
	}},
	{"a window of first use begins with the first permit after the last window", func(t *testing.T, s Suite) {
		l := throttle.FixedWindow(2, time.Second).Aligned(throttle.AlignFirstUse)
		f := begin(t, s, l)
		f.grants(300*ms, 1)
		f.grants(900*ms, 1)
		f.refuses(900*ms, 1, 1300*ms)
		f.grants(1500*ms, 2)
		f.refuses(1500*ms, 1, 2500*ms)
	}},
	{"a sliding log lets out its permits in any span", func(t *testing.T, s Suite) {
		f := begin(t, s, throttle.SlidingLog(3, time.Second))
		f.grants(100*ms, 2)
		f.grants(500*ms, 1)
		f.refuses(900*ms, 1, 1100*ms)
		f.refuses(900*ms, 3, 1500*ms)
		f.grants(1100*ms, 2)
		f.refuses(1100*ms, 1, 1500*ms)
	}},
	{"a sliding window weighs the window before by its overlap", func(t *testing.T, s Suite) {
		f := begin(t, s, throttle.SlidingWindow(10, time.Second))
		f.grants(900*ms, 10)
		f.refuses(900*ms, 1, time.Second+1)
		f.refuses(time.Second, 1, time.Second+1)
		f.refuses(1050*ms, 2, 1100*ms+1)
		f.refuses(1050*ms, 10, 1900*ms+1)
		f.grants(1500*ms, 5)
		f.refuses(1500*ms, 1, 1500*ms+1)
	}},
	{"a sliding counter is no bound of its permits in a span: nearly twice as many", func(t *testing.T, s Suite) {
		f := begin(t, s, throttle.SlidingWindow(100, time.Second))
		f.grants(time.Second-s.Tick, 100)
		if n := f.line(1990*ms, 1990*ms); n != 99 {
			t.Fatalf("%d left in the span after the worst window, want 99", n)
		}
	}},
	{"what is reserved is left by all requests but urgent ones", func(t *testing.T, s Suite) {
		for _, c := range []struct {
			limit    throttle.Limit
			bulk, at time.Duration // when one more is granted, not urgent and urgent
		}{
			{bucket(10, 8).Reserving("3"), 400 * ms, 100 * ms},
			{throttle.SlidingLog(8, time.Second).Reserving("3"), time.Second, time.Second},
			{throttle.SlidingWindow(8, time.Second).Reserving("3"), 1375*ms + 1, time.Second + 1},
			{throttle.FixedWindow(8, time.Second).Reserving("3"), time.Second, time.Second},
		} {
			f := begin(t, s, c.limit)
			f.grants(0, 5)
			if f.take(0, throttle.Request{N: 1}) <= after(0) {
				t.Errorf("limit %v: a sixth request that is not urgent is granted", c.limit)
			}
			for i := range 3 {
				if at := f.take(0, throttle.Request{N: 1, Urgent: true}); at > after(0) {
					t.Errorf("limit %v: urgent request %d = %v, want now", c.limit, i, at.Sub(midnight))
				}
			}
			f.refuses(0, 1, c.bulk)
			if at, want := f.take(0, throttle.Request{N: 1, Urgent: true}), s.first(after(c.at)); at != want {
				t.Errorf("limit %v: one more urgent request = %v, want %v", c.limit, at.Sub(midnight), want.Sub(midnight))
			}
		}
	}},
	{"a fixed window releases its reserve evenly until its end", func(t *testing.T, s Suite) {
		f := begin(t, s, throttle.FixedWindow(10, time.Second).Reserving("4"))
		f.grants(0, 6)
		for _, at := range []time.Duration{1, 250*ms + 1, 500*ms + 1, 750*ms + 1} {
			now := max(at-time.Microsecond, 0)
			f.refuses(now.Truncate(time.Microsecond), 1, at)
			f.grants(s.first(after(at)).Sub(midnight), 1)
		}
		f.refuses(800*ms, 1, time.Second)
	}},
	{"what can never be granted is an error at once", func(t *testing.T, s Suite) {
		for _, l := range []throttle.Limit{
			bucket(100, 20), throttle.GCRA(100, time.Second, 20), throttle.FixedWindow(20, time.Second),
			throttle.SlidingLog(20, time.Second), throttle.SlidingWindow(20, time.Second),
		} {
			for _, n := range []int{21, math.MaxInt} {
				if _, err := s.Make(l).Take(midnight, throttle.Request{N: n}); !errors.Is(err, throttle.ErrExceedsBurst) {
					t.Errorf("limit %v: Take of %d permits = %v, want %v", l, n, err, throttle.ErrExceedsBurst)
				}
			}
		}
	}},
	{"negative permits are an error", func(t *testing.T, s Suite) {
		for _, r := range []throttle.Request{{N: -1}, {Each: []int{-1}}} {
			if _, err := s.Make(bucket(1, 1)).Take(midnight, r); err == nil {
				t.Errorf("Take(%+v) is granted", r)
			}
		}
	}},
	{"a probe passes and spends nothing, also where nothing is left", func(t *testing.T, s Suite) {
		f := begin(t, s, bucket(10, 1), throttle.SlidingLog(1, time.Hour))
		f.grants(0, 1)
		if at := f.take(0, throttle.Request{}); at > after(0) {
			t.Fatalf("Take of nothing = %v, want now", at.Sub(midnight))
		}
	}},
	{"no permit is burnt in one limit because another refused", func(t *testing.T, s Suite) {
		f := begin(t, s, bucket(10, 10), throttle.FixedWindow(1, time.Minute))
		f.grants(0, 1)
		for range 100 {
			f.refuses(time.Second, 1, time.Minute)
		}
		if at := f.take(time.Second, throttle.Request{Each: []int{10, 0}}); at > after(time.Second) {
			t.Fatalf("the refused requests spent permits: %v", at.Sub(midnight))
		}
	}},
	{"late credit is measured from when all limits allowed it", func(t *testing.T, s Suite) {
		f := begin(t, s, bucket(10, 1), throttle.FixedWindow(100, time.Minute))
		if at := f.take(0, throttle.Request{Each: []int{0, 100}}); at > after(0) {
			t.Fatal("the minute could not be used up")
		}
		n := 0
		for now := time.Minute; now < 61*time.Second; now += ms {
			n += f.line(now, 0)
		}
		if n != 10 {
			t.Fatalf("%d left in the first second of the next minute, want 10", n)
		}
	}},
	{"each limit is charged its own permits", func(t *testing.T, s Suite) {
		tokens := throttle.TokenBucket(1000, time.Second, 1000).Of("tokens")
		f := begin(t, s, bucket(10, 10), tokens)
		ask := throttle.Request{N: 1, Each: []int{1, 600}}
		if at := f.take(0, ask); at > after(0) {
			t.Fatalf("Take(1, 600) = %v, want now", at.Sub(midnight))
		}
		if at := f.take(0, ask); at != after(200*ms) {
			t.Fatalf("Take(1, 600) again = %v, want 200ms", at.Sub(midnight))
		}
		f.grants(0, 9)
	}},
	{"limits beyond the list of costs are charged the common one", func(t *testing.T, s Suite) {
		f := begin(t, s, bucket(10, 10), bucket(10, 10).Of("tokens"))
		if at := f.take(0, throttle.Request{N: 10, Each: []int{1}}); at > after(0) {
			t.Fatalf("Take(1, 10) = %v, want now", at.Sub(midnight))
		}
		f.refuses(0, 1, 100*ms)
	}},
	{"a request that does not say since when it waits comes now", func(t *testing.T, s Suite) {
		f := begin(t, s, bucket(1000, 1))
		f.grants(0, 1)
		for n := range 2 {
			g, err := f.limiter.Take(after(time.Hour), throttle.Request{N: 1})
			if granted := g.At <= after(time.Hour); err != nil || granted != (n == 0) {
				t.Fatalf("Take number %d after idleness = %v, %v, want one permit", n+1, g.At.Sub(midnight), err)
			}
		}
	}},
	{"a forecast names nothing but what the request would wait for", func(t *testing.T, s Suite) {
		f := begin(t, s, bucket(10, 10).Named("calls"), bucket(10, 1).Named("uploads"))
		names := func(limit string, reason throttle.Reason) {
			t.Helper()
			got := f.limiter.Forecast(after(0), throttle.Request{N: 1, Since: after(0)})
			if got.Limit != "" && got.Limit != limit || got.Reason != "" && got.Reason != reason {
				t.Errorf("Forecast = %+v, want %q and limit %q, or nothing", got, reason, limit)
			}
		}
		names("", "")
		f.grants(0, 1)
		names("uploads", throttle.ReasonRate)
		f.pause(0, time.Minute)
		names("", throttle.ReasonPause)
	}},
	{"credit for lateness is only for time in line", func(t *testing.T, s Suite) {
		f := begin(t, s, throttle.LeakyBucket(1000, time.Second))
		f.grants(0, 1)
		if n := f.line(time.Hour, time.Hour); n != 1 {
			t.Fatalf("%d newcomers left at once, want 1", n)
		}
	}},
	{"permits not spent within the tolerance are void", func(t *testing.T, s Suite) {
		f := begin(t, s, bucket(1000, 1))
		f.grants(0, 1)
		if n := f.line(time.Second, 0); n != 11 {
			t.Fatalf("%d left after a stall of a second, want those of 10ms and one", n)
		}
	}},
	{"a late timer never slows the schedule", func(t *testing.T, s Suite) {
		f := begin(t, s, bucket(7777, 1))
		n := 0
		for now := time.Duration(0); now <= 999*ms; now += 9 * ms { // 111 late timers
			n += f.line(now, 0)
		}
		if want := 7777*999/1000 + 1; n != want {
			t.Fatalf("%d left until 999ms, want %d", n, want)
		}
	}},
	{"a window that turns costs a late timer nothing", func(t *testing.T, s Suite) {
		for _, l := range []throttle.Limit{throttle.FixedWindow(1000, 100*ms), throttle.SlidingWindow(1000, 100*ms)} {
			f := begin(t, s, bucket(1000, 1), l)
			n := 0
			for now := time.Duration(0); now <= 999*ms; now += 9 * ms {
				n += f.line(now, 0)
			}
			if n != 1000 {
				t.Errorf("beside limit %v: %d left until 999ms, want 1000", l, n)
			}
		}
	}},
	{"a clock that runs backwards can only be refused", func(t *testing.T, s Suite) {
		for _, l := range []throttle.Limit{bucket(10, 1), throttle.SlidingLog(1, time.Second), throttle.FixedWindow(1, time.Second)} {
			f := begin(t, s, l)
			f.grants(time.Minute, 1)
			for back := range 100 {
				if at := f.take(time.Minute-time.Duration(back)*ms, throttle.Request{N: 1}); at <= after(time.Minute) {
					t.Fatalf("limit %v granted at a clock turned back by %dms", l, back)
				}
			}
		}
	}},
	{"alternating clocks mint nothing", func(t *testing.T, s Suite) {
		f := begin(t, s, bucket(10, 1))
		n := 0
		for i := range 42 {
			now := time.Duration(i%2) * time.Second
			if f.take(now, throttle.Request{N: 1}) <= after(now) {
				n++
			}
		}
		if n != 2 {
			t.Fatalf("%d of 42 went, want 2", n)
		}
	}},
	{"a refused request costs nothing", func(t *testing.T, s Suite) {
		f := begin(t, s, bucket(10, 1))
		f.grants(0, 1)
		for range 10 {
			f.refuses(0, 1, 100*ms)
		}
		f.grants(100*ms, 1)
		f.refuses(100*ms, 1, 200*ms)
	}},
	{"fractions of a permit are kept, however it is polled", func(t *testing.T, s Suite) {
		f := begin(t, s, throttle.TokenBucket(7, 10*time.Second, 3))
		n := 0
		for now := time.Duration(0); now < 1000*time.Second; now += 2 * time.Second {
			n += f.line(now, now)
		}
		if n != 3+698 {
			t.Fatalf("%d left in 998s of 0.7/s, want the burst and 698", n)
		}
	}},
	{"a rate below one a second is a rate", func(t *testing.T, s Suite) {
		f := begin(t, s, throttle.TokenBucket(30, time.Minute, 1))
		f.grants(0, 1)
		f.refuses(0, 1, 2*time.Second)
		f = begin(t, s, throttle.TokenBucket(1, 31*24*time.Hour, 1))
		f.grants(0, 1)
		f.refuses(0, 1, 31*24*time.Hour)
	}},
}
