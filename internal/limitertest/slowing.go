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
