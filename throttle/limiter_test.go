package throttle_test

import (
	"math"
	"testing"
	"time"

	"github.com/weirgo/weir/throttle"
)

func TestInstantsSaturate(t *testing.T) {
	const first = throttle.Instant(math.MinInt64 + 1)
	for _, c := range []struct {
		i    throttle.Instant
		d    time.Duration
		want throttle.Instant
	}{
		{5, -7, -2},
		{throttle.Never - 1, 1, throttle.Never},
		{throttle.Never - 1, time.Hour, throttle.Never},
		{first, -time.Hour, first},
	} {
		if got := c.i.Add(c.d); got != c.want {
			t.Errorf("%d.Add(%d) = %d, want %d", c.i, c.d, got, c.want)
		}
	}
	for _, c := range []struct {
		i, j throttle.Instant
		want time.Duration
	}{
		{5, 7, -2},
		{throttle.Never, first, math.MaxInt64},
		{first, throttle.Never, math.MinInt64},
	} {
		if got := c.i.Sub(c.j); got != c.want {
			t.Errorf("%d.Sub(%d) = %d, want %d", c.i, c.j, got, c.want)
		}
	}
}

func TestWindowsLieOnMultiplesBeforeTheEpochToo(t *testing.T) {
	l := throttle.NewAt(throttle.FixedWindow(1, time.Second))
	for i, want := range []throttle.Instant{-1_500_000_000, -1_000_000_000} {
		if at, _ := l.Take(-1_500_000_000, throttle.Request{N: 1}); at != want {
			t.Errorf("permit %d = %d, want %d", i+1, at, want)
		}
	}
}
