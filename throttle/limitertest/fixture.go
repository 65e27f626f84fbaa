package limitertest

import (
	"testing"
	"time"

	"github.com/weirgo/weir/throttle"
)

// midnight is a multiple of a day, where every window begins.
const midnight throttle.Instant = 1_767_225_600_000_000_000

// A fixture calls one limiter and fails in the words of the rule.
type fixture struct {
	testing.TB
	suite   Suite
	limiter throttle.Limiter
}

func begin(t testing.TB, s Suite, limits ...throttle.Limit) fixture {
	return fixture{t, s, s.Make(limits...)}
}

// after is the instant at a time after midnight.
func after(d time.Duration) throttle.Instant { return midnight.Add(d) }

func (f fixture) take(now time.Duration, r throttle.Request) throttle.Instant {
	f.Helper()
	if r.Since == 0 {
		r.Since = after(now)
	}
	granted, err := f.limiter.Take(after(now), r)
	if err != nil {
		f.Fatalf("Take(%v, %+v) = %v", now, r, err)
	}
	if !f.suite.whole(granted.At) {
		f.Fatalf("Take(%v, %+v) = %v, want whole ticks of %v", now, r, granted.At.Sub(midnight), f.suite.Tick)
	}
	return granted.At
}

// grants takes n permits one by one, all of which must be granted.
func (f fixture) grants(now time.Duration, n int) {
	f.Helper()
	for i := range n {
		if at := f.take(now, throttle.Request{N: 1}); at > after(now) {
			f.Fatalf("Take(%v, 1) number %d = %v, want a permit", now, i+1, at.Sub(midnight))
		}
	}
}

// refuses takes n permits at once, which must be granted at the first tick from the given time on,
// and not now.
func (f fixture) refuses(now time.Duration, n int, until time.Duration) {
	f.Helper()
	want := f.suite.first(after(until))
	if at := f.take(now, throttle.Request{N: n}); at != want {
		f.Fatalf("Take(%v, %d) = %v, want %v", now, n, at.Sub(midnight), want.Sub(midnight))
	}
}

// line takes the permits due at the instant now, for a line since another instant.
func (f fixture) line(now, since time.Duration) int {
	f.Helper()
	for n := 0; ; n++ {
		if n > 10_000 {
			f.Fatalf("more than %d left at %v", n, now)
		}
		if f.take(now, throttle.Request{N: 1, Since: after(since)}) > after(now) {
			return n
		}
	}
}

// pause pauses the limiter for a while.
func (f fixture) pause(now, until time.Duration) {
	f.Helper()
	f.limiter.Reconcile(after(now), throttle.Fact{Until: after(until)})
}

func (f fixture) tune(now time.Duration, limits ...throttle.Limit) {
	f.Helper()
	if err := f.limiter.Tune(after(now), limits...); err != nil {
		f.Fatalf("Tune(%v) = %v", limits, err)
	}
}

func (f fixture) refund(now, at time.Duration, n int) {
	f.Helper()
	f.limiter.Refund(after(now), throttle.Grant{At: after(at)}, throttle.Request{N: n})
}

func (f fixture) settle(now, at time.Duration, n, actual int) {
	f.Helper()
	f.limiter.Settle(after(now), throttle.Grant{At: after(at)}, throttle.Request{N: n}, throttle.Request{N: actual})
}

const ms = time.Millisecond

func bucket(n int, burst int) throttle.Limit { return throttle.TokenBucket(n, time.Second, burst) }

// A rule is a sentence and its smallest history.
type rule struct {
	text string
	test func(t *testing.T, s Suite)
}
