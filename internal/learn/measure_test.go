package learn

import (
	"testing"
	"time"

	"github.com/weirgo/weir/throttle"
)

// Calls leave in waves of 64, every 300 ms: 213/s. The refused one left between two
// waves, when the pace seemed to be a third of that. More was served than that, so
// the estimate is not sure of it, and the search that follows is a short one.
func TestRoughPaceIsNoSureEstimate(t *testing.T) {
	s := New(Setting{})
	ordinal := int64(0)
	leave := func(at throttle.Instant, flying int, refused bool) Fact {
		ordinal++
		f := Fact{Departed: at, Landed: at.Add(300 * time.Millisecond), Ordinal: ordinal, Granted: ordinal, Flying: flying, Waited: true, Refused: refused}
		if refused {
			f.Landed = at.Add(5 * time.Millisecond)
			f.Until = f.Landed.Add(200 * time.Millisecond)
		}
		return f
	}
	now := throttle.InstantOf(time.Unix(1_700_000_000, 0))
	for range 8 {
		for range 64 {
			f := leave(now, 64, false)
			s = Observe(s, &f, f.Landed)
		}
		now = now.Add(300 * time.Millisecond)
	}
	f := leave(now, 20, true)
	s = Observe(s, &f, f.Landed)
	f = leave(now.Add(210*time.Millisecond), 1, false)
	s = Observe(s, &f, f.Landed)
	if s.Mode != Rate || s.U < 0.2 {
		t.Errorf("learned %v, want a rate within 0.2 of itself at best", &s)
	}
}
