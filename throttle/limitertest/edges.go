package limitertest

import (
	"testing"
	"time"

	"github.com/weirgo/weir/throttle"
)

// edges are the rules of the ends of windows and pauses, and of changes between algorithms.
var edges = []rule{
	{"a permit that comes back is at hand again in its window", func(t *testing.T, s Suite) {
		for _, l := range windowsOf(3, time.Second) {
			f := begin(t, s, l)
			f.grants(0, 3)
			f.refund(10*ms, 0, 1)
			f.grants(10*ms, 1)
			f.refuses(10*ms, 1, opensAfter(l))
		}
	}},
	{"underspend at the start of the window before lightens its weight", func(t *testing.T, s Suite) {
		f := begin(t, s, throttle.SlidingWindow(100, time.Minute))
		f.take(0, throttle.Request{N: 80})
		f.settle(61*time.Second, 0, 80, 50)
		if n := f.line(90*time.Second, 90*time.Second); n != 75 {
			t.Fatalf("%d left beside 50 at half their weight, want 75", n)
		}
	}},
	{"underspend of a window long over lets nothing extra out", func(t *testing.T, s Suite) {
		for i, l := range windowsOf(10, time.Second) {
			f := begin(t, s, l)
			f.take(0, throttle.Request{N: 5})
			f.take(3*time.Second, throttle.Request{N: 10})
			f.tune(3*time.Second, windowsOf(20, time.Second)[i])
			next := f.take(3*time.Second, throttle.Request{N: 1})
			f.settle(3*time.Second, 0, 5, 1)
			if at := f.take(3*time.Second, throttle.Request{N: 1}); at != next {
				t.Errorf("limit %v: the next goes at %v, want %v", l, at.Sub(midnight), next.Sub(midnight))
			}
		}
	}},
	{"a sliding window is not whole while the window before weighs", func(t *testing.T, s Suite) {
		f := begin(t, s, throttle.SlidingWindow(10, time.Second))
		f.grants(900*ms, 1)
		f.whole(1100*ms, false)
		f.whole(2*time.Second, true)
	}},
	{"what is paused is not whole", func(t *testing.T, s Suite) {
		for _, l := range windowsOf(10, time.Second) {
			f := begin(t, s, l)
			f.pause(0, 1500*ms)
			f.whole(1499*ms, false)
			f.whole(1500*ms, true)
		}
		f := begin(t, s, bucket(10, 5))
		f.pause(0, time.Second)
		f.whole(1399*ms, false) // four of five are to be earned again
		f.whole(1400*ms, true)
		f = begin(t, s)
		f.pause(0, time.Second)
		f.whole(999*ms, false)
		if st := f.limiter.State(after(999 * ms)); st.Paused != ms {
			t.Errorf("in a pause of a second the state is %+v", st)
		}
		f.whole(time.Second, true)
	}},
	{"a log that takes over from a window counts what that counted", func(t *testing.T, s Suite) {
		for _, l := range []throttle.Limit{throttle.FixedWindow(10, time.Minute), throttle.SlidingWindow(10, time.Minute)} {
			f := begin(t, s, l)
			f.grants(0, 6)
			f.tune(0, throttle.SlidingLog(10, time.Minute))
			f.grants(0, 4)
			f.refuses(0, 1, time.Minute)
		}
	}},
	{"a larger log still waits for what it no longer remembers", func(t *testing.T, s Suite) {
		f := begin(t, s, throttle.SlidingLog(10, time.Second))
		f.settle(0, 0, 0, 15)
		f.tune(0, throttle.SlidingLog(20, time.Second))
		f.refuses(0, 1, time.Second)
	}},
	{"a bucket that takes over from a window has what that had at hand, up to its burst", func(t *testing.T, s Suite) {
		for _, l := range windowsOf(10, time.Second) {
			f := begin(t, s, l)
			f.grants(500*ms, 4)
			f.tune(500*ms, bucket(10, 8))
			if n := f.line(500*ms, 500*ms); n != 6 {
				t.Errorf("from %v to a burst of 8: %d left, want the 6 at hand", l, n)
			}
			f.refuses(500*ms, 1, 600*ms)

			f = begin(t, s, l)
			f.tune(500*ms, bucket(10, 5))
			if n := f.line(500*ms, 500*ms); n != 5 {
				t.Errorf("from %v to a burst of 5: %d left of 10 at hand, want 5", l, n)
			}
		}
	}},
	{"a bucket that takes over from a used up window goes on at its rate, or with the window if that is sooner", func(t *testing.T, s Suite) {
		f := begin(t, s, throttle.FixedWindow(10, time.Minute))
		f.grants(0, 10)
		f.tune(0, bucket(10, 5))
		f.refuses(0, 1, 100*ms)

		f = begin(t, s, throttle.FixedWindow(10, time.Second))
		f.grants(950*ms, 10)
		f.tune(950*ms, bucket(10, 5))
		f.refuses(950*ms, 1, time.Second)
		f.grants(time.Second, 1)
		f.refuses(time.Second, 1, 1100*ms)
	}},
	{"what a larger window has more is free once it could have been let out", func(t *testing.T, s Suite) {
		for i, l := range windowsOf(10, time.Minute) {
			f := begin(t, s, l)
			f.tune(0, windowsOf(20, time.Minute)[i])
			if n := f.line(30*time.Second, 30*time.Second); n != 20 {
				t.Errorf("%v, doubled half a minute ago: %d left, want 20", l, n)
			}
		}
	}},
	{"debt is relieved before what the window used", func(t *testing.T, s Suite) {
		f := begin(t, s, throttle.FixedWindow(10, time.Second))
		f.grants(0, 10)
		f.settle(0, 0, 0, 15)
		f.settle(0, 0, 10, 5)
		f.refuses(0, 1, 2*time.Second) // the next window pays the 10 that are left
		f.settle(0, 0, 12, 0)
		f.grants(0, 2)
		f.refuses(0, 1, time.Second)
	}},
	{"debt stays through a change, and a smaller window owes what it cannot hold", func(t *testing.T, s Suite) {
		f := begin(t, s, throttle.FixedWindow(10, time.Second))
		f.grants(0, 10)
		f.settle(0, 0, 0, 10)
		f.tune(0, throttle.FixedWindow(20, time.Second))
		f.refuses(0, 1, time.Second)
		f.grants(time.Second, 20)

		f = begin(t, s, throttle.FixedWindow(10, time.Second))
		f.grants(0, 10)
		f.settle(0, 0, 0, 10)
		f.tune(0, throttle.SlidingLog(20, time.Second))
		f.refuses(0, 1, time.Second)

		f = begin(t, s, throttle.SlidingLog(20, time.Second))
		f.grants(0, 20)
		f.tune(0, throttle.FixedWindow(10, time.Second))
		f.refuses(0, 1, time.Second)
		f.grants(time.Second, 10)
	}},
	{"windows of another length begin anew with what is used", func(t *testing.T, s Suite) {
		for _, c := range [][2]throttle.Limit{
			{throttle.FixedWindow(10, time.Second), throttle.FixedWindow(10, time.Minute)},
			{throttle.SlidingWindow(10, time.Second), throttle.SlidingWindow(10, time.Minute)},
		} {
			f := begin(t, s, c[0])
			f.grants(0, 6)
			f.tune(0, c[1])
			f.grants(0, 4)
			f.refuses(0, 1, opensAfter(c[1]))
		}
	}},
}

// whole fails unless the limiter is as good as new, or not, at a time.
func (f fixture) whole(at time.Duration, want bool) {
	f.Helper()
	if st := f.limiter.State(after(at)); st.Whole != want {
		f.Errorf("at %v the state is %+v, want whole %v", at, st, want)
	}
}
