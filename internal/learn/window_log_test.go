package learn

import (
	"testing"
	"time"
)

// A lane spends 16 permits of a log: twelve of them one every second, and then single ones. After
// 63 s four are back, so the log is of a minute, and the lane spends them. Every second departure
// was kept: the next call departs when that permit is back.
func TestLogGivesBackWhatWasSpent(t *testing.T) {
	s, ordinal := New(Setting{}), int64(0)
	var last *Fact
	call := func(at time.Duration, left float64) {
		ordinal++
		last = reports(ordinal, at, 16, left)
		s = observed(s, last, last.Landed)
	}
	for i, at := range [...]time.Duration{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 25, 40, 50, 59} {
		call(at*time.Second, float64(15-i))
	}
	for i := range 4 {
		call(63*time.Second+time.Duration(i)*2*time.Millisecond, float64(3-i))
	}
	for spent := 5 * time.Second; spent < 12*time.Second; spent += 2 * time.Second {
		hold := s.Plan(last.Landed, ordinal).Hold.Sub(begun)
		if back := time.Minute + spent; hold < back || hold > back+100*time.Millisecond {
			t.Fatalf("after call %d: held until %v, want soon after %v", ordinal, hold, back)
		}
		call(hold, 1)
		call(hold+2*time.Millisecond, 0)
	}
}
