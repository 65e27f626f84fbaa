package lane

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/throttle"
)

// The line that a shadow plays through holds those who still wait in it, and not
// all who ever did.
func TestShadowForgetsWhoHasDeparted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := newShadow([]throttle.Limit{throttle.TokenBucket(1, time.Second, 1)}, 100)
		if err != nil {
			t.Fatal(err)
		}
		now := throttle.InstantOf(time.Now())
		for range 10_000 {
			for range 3 {
				s.Decide(now, throttle.Request{N: 1}, Held)
			}
			now = now.Add(3 * time.Second)
		}
		if len(s.line) > 200 || cap(s.line) > 1000 {
			t.Errorf("line of %d, room for %d, want no more than wait", len(s.line), cap(s.line))
		}
	})
}
