package limitertest

import (
	"testing"
	"time"

	"github.com/weirgo/weir/throttle"
)

// slowing are the rules of what a refusal slows, and of how that ends.
var slowing = []rule{
	{"a refusal slows no limit that is longer than a minute", func(t *testing.T, s Suite) {
		for _, per := range []time.Duration{2 * time.Minute, time.Hour, 24 * time.Hour} {
			for _, l := range []throttle.Limit{
				throttle.FixedWindow(100, per), throttle.SlidingLog(100, per), throttle.SlidingWindow(100, per),
				throttle.TokenBucket(100, per, 50), throttle.LeakyBucket(100, per),
			} {
				slowsNot(begin(t, s, l), l)
			}
		}
	}},
	{"a cut window spaces its permits at its share of the rate", func(t *testing.T, s Suite) {
		for _, l := range windowsOf(10, time.Second) {
			f := begin(t, s, l)
			f.cut(0)
			f.grants(5*time.Second, 1)
			f.refuses(5*time.Second, 1, 5*time.Second+142_857_143)
			f.grants(6*time.Second, 1)
			f.refuses(6*time.Second, 1, 6*time.Second+142_857_143)
			if at := f.take(20*time.Second, throttle.Request{N: 10}); at > after(20*time.Second) {
				t.Errorf("limit %v: a cost of all permits waits until %v", l, at.Sub(midnight))
			}
		}
	}},
	{"a window of which more is used than a cut leaves is not closed by it", func(t *testing.T, s Suite) {
		for _, l := range windowsOf(10, time.Minute) {
			f := begin(t, s, l)
			f.grants(0, 8)
			f.cut(0)
			f.grants(0, 1)
			f.refuses(0, 1, 8_571_428_572)
			f.grants(9*time.Second, 1)
			f.refuses(9*time.Second, 1, opensAfter(l))
		}
	}},
	{"a step of the recovery begins no interval anew", func(t *testing.T, s Suite) {
		for _, l := range windowsOf(30, time.Minute) {
			f := begin(t, s, l)
			f.cut(0)
			f.grants(0, 1)
			n := 1
			for now := time.Second; now <= 8*time.Second; now += 100 * ms {
				f.limiter.Reconcile(after(now), throttle.Fact{Departed: after(now)})
				n += f.take1(now)
			}
			if n < 4 {
				t.Errorf("limit %v: %d left in the eight seconds of a recovery to one every two, want at least 4", l, n)
			}
		}
	}},
	{"a recovered window has all that it has left at hand", func(t *testing.T, s Suite) {
		for _, l := range windowsOf(100, time.Minute) {
			f := begin(t, s, l)
			f.grants(0, 10)
			f.cut(0)
			for second := 1; second <= 6; second++ {
				now := time.Duration(second) * time.Second
				f.limiter.Reconcile(after(now), throttle.Fact{Departed: after(now)})
			}
			if n := f.line(6*time.Second, 6*time.Second); n != 90 {
				t.Errorf("limit %v: %d left of 90 once the rate was whole again", l, n)
			}
		}
	}},
	{"a pause of a cut window keeps the cut", func(t *testing.T, s Suite) {
		for _, l := range windowsOf(10, time.Second) {
			f := begin(t, s, l)
			f.cut(0)
			f.grants(0, 1)
			f.pause(0, 2*time.Second)
			f.refuses(0, 1, 2*time.Second)
			f.grants(2*time.Second, 1)
			f.refuses(2*time.Second, 1, 2*time.Second+142_857_143)
		}
	}},
	{"other limits while the rate is cut are cut", func(t *testing.T, s Suite) {
		for _, l := range windowsOf(10, time.Second) {
			f := begin(t, s, throttle.FixedWindow(20, time.Second))
			f.cut(0)
			f.tune(5*time.Second, l)
			f.grants(5*time.Second, 1)
			f.refuses(5*time.Second, 1, 5*time.Second+142_857_143)
		}
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

// opensAfter is when a limit whose permits left at midnight has the next one.
func opensAfter(l throttle.Limit) time.Duration {
	if l.Algorithm == throttle.AlgorithmSlidingWindow {
		return l.Per + 1
	}
	return l.Per
}

// take1 asks for one permit and returns how many left.
func (f fixture) take1(now time.Duration) int {
	f.Helper()
	if f.take(now, throttle.Request{N: 1}) <= after(now) {
		return 1
	}
	return 0
}

// slowsNot has a long limit refused in each way: what it grants is what it
// would have granted, but that a pause is kept and voids what a bucket saved.
func slowsNot(f fixture, l throttle.Limit) {
	f.Helper()
	saved := 100
	switch l.Algorithm {
	case throttle.AlgorithmTokenBucket:
		saved = 50
	case throttle.AlgorithmLeakyBucket:
		saved = 1
	}
	f.cut(0)
	if n := f.line(0, 0); n != saved {
		f.Errorf("limit %v: %d left after a refusal without a time, want %d", l, n, saved)
	}
	next := f.take(0, throttle.Request{N: 1})
	if bucket := saved < 100; bucket && next != f.suite.first(after(l.Per/100)) {
		f.Errorf("limit %v: a refusal without a time moved the next permit to %v", l, next.Sub(midnight))
	}

	f.limiter = f.suite.Make(l)
	f.pause(0, 10*time.Second)
	f.refuses(9*time.Second, 1, 10*time.Second)
	want := 100
	if saved < 100 {
		want = 1
	}
	if n := f.line(10*time.Second, 10*time.Second); n != want {
		f.Errorf("limit %v: %d left at the end of a pause, want %d", l, n, want)
	}
}
