package hostlocal_test

import (
	"testing"
	"time"

	"github.com/weirgo/weir/distributed/hostlocal"
	"github.com/weirgo/weir/throttle"
)

// A request too large for another process's limit is charged the most that this limit ever grants,
// without what it keeps and reserves.
func TestForeignLimitsAreChargedWhatTheyGrant(t *testing.T) {
	strict := throttle.TokenBucket(10, time.Hour, 10)
	for name, test := range map[string]struct {
		limit throttle.Limit
		left  int
	}{
		"whole":     {strict, 0},
		"kept":      {strict.Keeping("60%"), 0},
		"reserved":  {strict.Reserving("4"), 4},
		"in a log":  {throttle.SlidingLog(10, time.Hour).Keeping("2").Reserving("1"), 1},
		"in a line": {throttle.LeakyBucket(1000, time.Second), -49},
	} {
		dir := private(t)
		a := hostlocal.NewAt(dir, "k", throttle.TokenBucket(100, time.Second, 100))
		b := hostlocal.NewAt(dir, "k", test.limit)
		for _, l := range []throttle.Limiter{b, a} {
			if _, err := l.Take(midnight, throttle.Request{}); err != nil {
				t.Fatal(err)
			}
		}
		later := midnight.Add(time.Second) // the newest process's limit was empty
		if g, err := a.Take(later, throttle.Request{N: 50}); err != nil || g.At > later {
			t.Errorf("%s: 50 permits beside %v: %v, %v, want a grant", name, test.limit, g.At.Sub(later), err)
		}
		if left := int(b.State(later).Limits[0].Headroom); left != test.left {
			t.Errorf("%s: %d permits are left, want %d", name, left, test.left)
		}
		_, _ = a.(throttle.Remote).Close(), b.(throttle.Remote).Close()
	}
}
