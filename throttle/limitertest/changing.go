package limitertest

import (
	"slices"
	"testing"
	"time"

	"github.com/weirgo/weir/throttle"
)

// changing are the rules of pauses and of changed limits, and of reading the state.
var changing = []rule{
	{"nothing departs before the end of a pause, and then nothing saved", func(t *testing.T, s Suite) {
		f := begin(t, s, bucket(100, 50))
		f.pause(0, 2*time.Second)
		f.refuses(0, 1, 2*time.Second)
		if at := f.take(1999*ms, throttle.Request{}); at != after(2*time.Second) {
			t.Fatalf("a probe in a pause = %v, want its end", at.Sub(midnight))
		}
		f.grants(2*time.Second, 1)
		f.refuses(2*time.Second, 1, 2010*ms)
		f.grants(2010*ms, 1)
	}},
	{"an operator who ends a pause gives back nothing that was spent before it", func(t *testing.T, s Suite) {
		for _, c := range []struct {
			text  string
			limit throttle.Limit
			spend func(f fixture)
			next  time.Duration // when one permit is granted if the pause ends at 1 s
		}{
			{"a cost of 600", throttle.LeakyBucket(10, time.Second), func(f fixture) {
				f.take(0, throttle.Request{N: 600})
				f.pause(0, 2*time.Minute)
			}, time.Minute},
			{"a cost beyond its estimate", bucket(10, 5), func(f fixture) {
				f.settle(0, 0, 0, 600)
				f.pause(0, 2*time.Minute)
			}, 60*time.Second - 400*ms},
			{"a pause that was made longer", throttle.LeakyBucket(10, time.Second), func(f fixture) {
				f.take(0, throttle.Request{N: 600})
				f.pause(0, 80*time.Second)
				f.pause(500*ms, 2*time.Minute)
			}, time.Minute},
			{"a pause before that ended", bucket(100, 5), func(f fixture) {
				f.pause(0, 500*ms)
				f.settle(600*ms, 600*ms, 0, 600)
				f.pause(700*ms, 2*time.Minute)
			}, 6560 * ms},
			{"a change in the pause", throttle.LeakyBucket(10, time.Second), func(f fixture) {
				f.take(0, throttle.Request{N: 600})
				f.pause(0, 2*time.Minute)
				f.tune(0, throttle.LeakyBucket(20, time.Second))
			}, 30 * time.Second},
			{"less than the pause took", throttle.LeakyBucket(10, time.Second), func(f fixture) {
				f.take(0, throttle.Request{N: 5})
				f.pause(0, 2*time.Minute)
			}, time.Second},
		} {
			f := begin(t, s, c.limit)
			c.spend(f)
			f.limiter.Reconcile(after(time.Second), throttle.Fact{Resumed: true})
			at := time.Second
			if c.next > at {
				f.refuses(at, 1, c.next)
				at = c.next
			}
			if got := f.take(at, throttle.Request{N: 1}); got > after(at) {
				t.Errorf("%s: the next call leaves at %v, want %v", c.text, got.Sub(midnight), at)
			}
		}
	}},
	{"the end of a pause begins no other one", func(t *testing.T, s Suite) {
		f := begin(t, s, bucket(10, 1))
		f.pause(0, time.Minute)
		f.limiter.Reconcile(after(time.Second), throttle.Fact{Resumed: true, Until: after(time.Minute)})
		f.grants(time.Second, 1)
	}},
	{"limits that do not validate are an error, and the old ones stay", func(t *testing.T, s Suite) {
		f := begin(t, s, bucket(10, 5))
		f.grants(0, 2)
		for _, wrong := range [][]throttle.Limit{{{}}, {bucket(0, 1)}, {bucket(10, 5), throttle.FixedWindow(-1, time.Second)}} {
			if err := f.limiter.Tune(after(0), wrong...); err == nil {
				t.Errorf("Tune(%v) is no error", wrong)
			}
		}
		f.grants(0, 3)
		f.refuses(0, 1, 100*ms)
	}},
	{"a shorter pause does not end a longer one", func(t *testing.T, s Suite) {
		f := begin(t, s, bucket(10, 1))
		f.pause(0, 2*time.Second)
		f.pause(0, time.Second)
		f.refuses(time.Second, 1, 2*time.Second)
	}},
	{"a pause holds, and slows nothing: what limits of any length leave, goes at its end", func(t *testing.T, s Suite) {
		for _, per := range []time.Duration{time.Second, time.Minute, 2 * time.Minute, time.Hour, 24 * time.Hour} {
			for _, l := range append(windowsOf(100, per), throttle.TokenBucket(100, per, 50), throttle.LeakyBucket(100, per)) {
				f := begin(t, s, l)
				used, left := 30, 70
				if l.Algorithm == throttle.AlgorithmTokenBucket || l.Algorithm == throttle.AlgorithmLeakyBucket {
					used, left = 1, 1
				}
				f.grants(0, used)
				until := per / 4
				f.pause(0, until)
				f.refuses(until-ms, 1, until)
				if n := f.line(until, until); n != left {
					t.Errorf("limit %v: %d left at the end of a pause, want %d", l, n, left)
				}
			}
		}
	}},
	{"a pause that ends in a used up window leaves the next one whole", func(t *testing.T, s Suite) {
		f := begin(t, s, throttle.FixedWindow(5, time.Second))
		f.grants(0, 5)
		f.pause(0, 600*ms)
		f.refuses(600*ms, 1, time.Second)
		f.grants(time.Second, 5)
		f.refuses(time.Second, 1, 2*time.Second)
	}},
	{"a change keeps the used part of a permit", func(t *testing.T, s Suite) {
		f := begin(t, s, bucket(10, 1))
		f.grants(0, 1)
		f.tune(50*ms, bucket(2, 1))
		f.refuses(50*ms, 1, 300*ms)
		f.tune(50*ms, bucket(100, 1))
		f.refuses(50*ms, 1, 55*ms)
	}},
	{"a larger burst is earned, not given", func(t *testing.T, s Suite) {
		f := begin(t, s, bucket(10, 2))
		f.grants(0, 2)
		f.tune(0, bucket(10, 100))
		f.refuses(0, 1, 100*ms)
	}},
	{"a changed window keeps its count", func(t *testing.T, s Suite) {
		f := begin(t, s, throttle.FixedWindow(10, time.Minute))
		f.grants(0, 6)
		f.tune(0, throttle.FixedWindow(8, time.Minute))
		f.grants(0, 2)
		f.refuses(0, 1, time.Minute)
	}},
	{"a change of the algorithm gives no burst", func(t *testing.T, s Suite) {
		for _, to := range []throttle.Limit{
			throttle.FixedWindow(600, time.Minute), throttle.SlidingLog(600, time.Minute),
			throttle.SlidingWindow(600, time.Minute), bucket(10, 100), throttle.LeakyBucket(10, time.Second),
		} {
			f := begin(t, s, bucket(10, 5))
			f.grants(0, 5)
			f.tune(0, to)
			if n := f.line(0, 0); n != 0 {
				t.Errorf("to %v: %d left at once", to, n)
			}
		}
	}},
	{"what says nothing changes nothing", func(t *testing.T, s Suite) {
		f := begin(t, s, bucket(10, 5))
		f.grants(0, 2)
		f.limiter.Reconcile(after(ms), throttle.Fact{})
		f.grants(ms, 3)
		f.refuses(ms, 1, 100*ms)
	}},
	{"a limiter without limits lets everything out but in a pause", func(t *testing.T, s Suite) {
		f := begin(t, s)
		f.grants(0, 100)
		f.pause(0, time.Second)
		f.refuses(0, 1, time.Second)
		f.grants(time.Second, 100)
	}},
	{"the state says what is left and when", func(t *testing.T, s Suite) {
		for _, l := range []throttle.Limit{bucket(10, 10), throttle.FixedWindow(10, time.Second), throttle.SlidingLog(10, time.Second), throttle.SlidingWindow(10, time.Second)} {
			f := begin(t, s, l)
			reader := f.limiter
			if st := reader.State(after(0)); !st.Whole || st.Limits[0].Headroom != 10 || st.Limits[0].Utilization != 0 {
				t.Errorf("limit %v: a new limiter's state is %+v", l, st)
			}
			f.grants(0, 4)
			if st := reader.State(after(0)); st.Whole || st.Limits[0].Headroom != 6 || st.Limits[0].Utilization != 0.4 {
				t.Errorf("limit %v: after 4 permits the state is %+v", l, st)
			}
			f.grants(0, 6)
			next := f.take(0, throttle.Request{N: 1})
			if st := reader.State(after(0)); st.Limits[0].Next != next.Sub(after(0)) || st.Limits[0].Headroom != 0 {
				t.Errorf("limit %v: after 10 permits the state is %+v, want next %d", l, st, next)
			}
			if st := reader.State(after(5 * time.Second)); !st.Whole {
				t.Errorf("limit %v: after idleness the state is %+v", l, st)
			}
		}
	}},
	{"the state has the limits in the order given", func(t *testing.T, s Suite) {
		limits := []throttle.Limit{bucket(10, 5), throttle.SlidingLog(7, time.Minute), bucket(20, 3)}
		f := begin(t, s, limits...)
		for range 2 {
			st := f.limiter.State(after(0))
			same := func(s throttle.LimitState, l throttle.Limit) bool { // it may have a name and a unit
				return s.Limit.Algorithm == l.Algorithm && s.Limit.Permits == l.Permits && s.Limit.Per == l.Per && s.Limit.Burst == l.Burst
			}
			if !slices.EqualFunc(st.Limits, limits, same) {
				t.Fatalf("the state is %+v, want the limits %v", st, limits)
			}
			limits = []throttle.Limit{bucket(30, 5), throttle.FixedWindow(7, time.Minute)}
			f.tune(0, limits...)
		}
	}},
	{"a change in a pause keeps the pause, and counts it as time", func(t *testing.T, s Suite) {
		f := begin(t, s, bucket(1000, 5))
		f.pause(0, time.Minute)
		f.tune(0, bucket(1, 1))
		f.refuses(0, 1, time.Minute)
		f.grants(time.Minute, 1)
		f.refuses(time.Minute, 1, 61*time.Second)

		f = begin(t, s, throttle.SlidingLog(10, time.Second))
		f.pause(0, time.Minute)
		f.tune(time.Second, throttle.SlidingLog(20, time.Second))
		f.refuses(2*time.Second, 1, time.Minute)
		f.grants(time.Minute, 20)
	}},
	{"changing often never holds the line back", func(t *testing.T, s Suite) {
		f := begin(t, s, bucket(10, 1))
		f.grants(0, 1)
		n := 0
		for now := time.Duration(0); now <= time.Second; now += 10 * ms {
			f.tune(now, throttle.FixedWindow(600+int(now/ms)%20, time.Minute))
			n += f.line(now, 0)
		}
		if n < 8 || n > 11 {
			t.Fatalf("%d left in a second of changes, want about 10", n)
		}
		f = begin(t, s, bucket(10, 1))
		n = 0
		for now := time.Duration(0); now <= time.Second; now += 10 * ms {
			f.tune(now, throttle.FixedWindow(600, time.Minute))
			f.tune(now, bucket(10, 1))
			n += f.line(now, 0)
		}
		if n < 8 || n > 11 {
			t.Fatalf("%d left in a second of changes there and back, want about 10", n)
		}
	}},
	{"changing there and back grants nothing", func(t *testing.T, s Suite) {
		for _, pair := range [][2]throttle.Limit{
			{bucket(10, 10), bucket(10, 1)},
			{bucket(10, 10), throttle.LeakyBucket(10, time.Second)},
			{throttle.FixedWindow(20, time.Minute), throttle.FixedWindow(10, time.Minute)},
			{throttle.SlidingLog(20, time.Minute), throttle.SlidingLog(10, time.Minute)},
			{throttle.SlidingWindow(20, time.Minute), throttle.SlidingWindow(10, time.Minute)},
		} {
			f := begin(t, s, pair[0])
			f.line(0, 0)
			for range 1000 {
				f.tune(0, pair[1])
				f.tune(0, pair[0])
			}
			if next := f.take(0, throttle.Request{N: 1}); next <= after(0) {
				t.Errorf("from %v to %v and back: a permit is left", pair[0], pair[1])
			}
			if n := f.line(99*ms, 99*ms); n != 0 {
				t.Errorf("from %v to %v and back: %d left", pair[0], pair[1], n)
			}
		}
	}},
	{"a change is no first use of a window", func(t *testing.T, s Suite) {
		first := throttle.FixedWindow(2, time.Second).Aligned(throttle.AlignFirstUse)
		f := begin(t, s, bucket(10, 2))
		f.tune(0, first)
		f.grants(500*ms, 2)
		f.refuses(500*ms, 1, 1500*ms)
	}},
	{"a change begins no window of first use that pays", func(t *testing.T, s Suite) {
		first := throttle.FixedWindow(10, time.Second).Aligned(throttle.AlignFirstUse)
		for _, c := range []struct {
			change, use time.Duration
			left        int
		}{{1500 * ms, 1900 * ms, 7}, {1500 * ms, 2500 * ms, 10}, {2 * time.Second, 2500 * ms, 10}} {
			f := begin(t, s, first)
			f.grants(0, 10)
			f.settle(0, 0, 10, 13)
			f.tune(c.change, first)
			f.grants(c.use, 1)
			if n := f.line(c.use+900*ms, c.use+900*ms); n != c.left-1 {
				t.Errorf("changed at %v, used at %v: %d left within a window of the first, want %d", c.change, c.use, n, c.left-1)
			}
			f.refuses(c.use+900*ms, 1, c.use+time.Second)
		}
	}},
	{"what windows before a change paid, the old limit paid", func(t *testing.T, s Suite) {
		f := begin(t, s, throttle.FixedWindow(10, time.Second))
		f.grants(0, 10)
		f.settle(0, 0, 10, 60)
		f.tune(1500*ms, throttle.FixedWindow(100, time.Second))
		if used := f.limiter.State(after(1500 * ms)).Limits[0].Utilization; used != 0.5 {
			t.Fatalf("%g of the window is used, want the 50 still owed of 100", used)
		}
	}},
	{"a longer log begins with what left in the old span", func(t *testing.T, s Suite) {
		f := begin(t, s, throttle.SlidingLog(10, time.Second))
		for second := range 60 {
			f.grants(time.Duration(second)*time.Second, 10)
		}
		f.tune(59*time.Second, throttle.SlidingLog(1000, time.Minute))
		f.refuses(59*time.Second, 1, 59060*ms)
	}},
	{"a clock that runs back behind a change can only be refused", func(t *testing.T, s Suite) {
		for _, l := range []throttle.Limit{
			bucket(10, 10), throttle.LeakyBucket(10, time.Second), throttle.FixedWindow(10, time.Second),
			throttle.SlidingLog(10, time.Second), throttle.SlidingWindow(10, time.Second),
		} {
			f := begin(t, s, l)
			f.tune(10*time.Second, l)
			f.refuses(9*time.Second, 1, 10*time.Second)
			f.grants(10*time.Second, 1)
		}

		f := begin(t, s, throttle.TokenBucket(2, 2*time.Second, 2)) // at the slower rate, one would be at hand at 0.7s
		f.take(0, throttle.Request{N: 2})
		f.tune(1900*ms, throttle.TokenBucket(2, 3*time.Second, 2))
		f.refuses(1000*ms, 1, 1900*ms)
		f.grants(1900*ms, 1)

		f = begin(t, s, throttle.SlidingLog(1, 10*ms))
		f.grants(0, 1)
		f.grants(10*ms, 1)
		f.refund(10*ms, 10*ms, 1)
		f.tune(10*ms, throttle.SlidingLog(1, 10*ms))
		f.refuses(9*ms, 1, 10*ms)
		f.grants(10*ms, 1)

		f = begin(t, s, bucket(10, 1))
		f.tune(time.Second, bucket(20, 1))
		f.tune(500*ms, bucket(30, 1))
		f.refuses(700*ms, 1, time.Second)
	}},
	{"a limit that moved in the list keeps its count", func(t *testing.T, s Suite) {
		f := begin(t, s, throttle.FixedWindow(10, time.Minute), bucket(100, 5))
		f.grants(0, 5)
		f.tune(0, bucket(100, 5), throttle.FixedWindow(10, time.Minute))
		f.refuses(0, 1, 10*ms)
		f.grants(50*ms, 5)
		f.refuses(100*ms, 1, time.Minute)
	}},
	{"a limit added beside others begins with what they counted", func(t *testing.T, s Suite) {
		f := begin(t, s, throttle.SlidingLog(10, time.Second))
		f.grants(0, 10)
		f.tune(0, throttle.SlidingLog(500, time.Minute), throttle.SlidingLog(10, time.Second))
		f.refuses(0, 1, time.Second)
	}},
	{"a larger limit grants nothing extra at once, and slows nothing", func(t *testing.T, s Suite) {
		for _, per := range []time.Duration{time.Minute, 24 * time.Hour} {
			more := windowsOf(1001, per)
			for i, l := range windowsOf(1000, per) {
				f := begin(t, s, l)
				f.grants(0, 10)
				f.tune(0, more[i])
				if n := f.line(0, 0); n != 990 {
					t.Errorf("from %v to %v: %d left at once, want the 990 at hand before", l, more[i], n)
				}
				interval := (per / 990).Truncate(ms) + 2*ms
				f.grants(interval, 1)
			}
		}
	}},
	{"what comes back of a larger limit is at hand again", func(t *testing.T, s Suite) {
		more := windowsOf(200, time.Minute)
		for i, l := range windowsOf(100, time.Minute) {
			f := begin(t, s, l)
			f.tune(0, more[i])
			f.take(ms, throttle.Request{N: 100})
			f.settle(ms, ms, 100, 40)
			if n := f.line(ms, ms); n != 60 {
				t.Errorf("from %v to %v: %d left, want the 60 that came back", l, more[i], n)
			}
		}
	}},
}

// windowsOf returns the limits that count in windows.
func windowsOf(permits int, per time.Duration) []throttle.Limit {
	return []throttle.Limit{throttle.FixedWindow(permits, per), throttle.SlidingLog(permits, per), throttle.SlidingWindow(permits, per)}
}

// opensAfter is when a limit whose permits were spent at midnight grants the next one.
func opensAfter(l throttle.Limit) time.Duration {
	if l.Algorithm == throttle.AlgorithmSlidingWindow {
		return l.Per + 1
	}
	return l.Per
}
