package learn

import (
	"math"
	"testing"
	"time"

	"github.com/weirgo/weir/throttle"
)

// A lane that begins in the middle of a minute sees the first window end early. The next end is
// probed at a longer round length.
func TestFirstWindowMayHaveBegunBefore(t *testing.T) {
	for _, test := range []struct {
		seen time.Duration // of the first window
		want float64       // seconds until the next end
	}{
		{19 * time.Second, 30},
		{10 * time.Second, 10}, // it began with the first call
		{43 * time.Second, 60},
	} {
		s := New(Setting{})
		for i := range int64(9) {
			f := reports(i+1, test.seen*time.Duration(i)/10, 60, float64(29-i))
			s = observed(s, f, f.Landed)
		}
		f := reports(10, test.seen, 60, 59)
		s = observed(s, f, f.Landed)
		if got := s.Ceilings[0].Period; got != test.want {
			t.Errorf("a window that was seen for %v is taken to last %v s, want %v", test.seen, got, test.want)
		}
	}
}

// A log of 100 in 10 s gives back at 20 s what was spent at 10 s, and at 22 s the seven that were
// spent at 12 s. That is no window of two seconds.
func TestFewPermitsThatComeBackEarlyAreALogs(t *testing.T) {
	s, ordinal := New(Setting{}), int64(0)
	call := func(at, left float64) {
		ordinal++
		f := reports(ordinal, seconds(at), 100, left)
		s = observed(s, f, f.Landed)
	}
	spend := func(at float64, from, to int) {
		for left := from; left >= to; left-- {
			call(at+float64(from-left)/1000, float64(left))
		}
	}
	spend(0, 99, 10)
	call(5, 9)
	spend(10, 89, 7)
	spend(12, 6, 0)
	spend(20, 82, 0)
	for _, at := range [...]float64{21, 21.9} {
		call(at, 0)
	}
	if call(22.003, 6); s.Ceilings[0].Period != 10 {
		t.Errorf("a log of 10 s is taken for a window of %v s", s.Ceilings[0].Period)
	}
}

// A window whose reset names another instant each time has no known end. It has not ended, so what is left of it
// is all there is: one permit, for a minute.
func TestAMovingResetEndsNoWindow(t *testing.T) {
	s := New(Setting{})
	now := throttle.Instant(20 * time.Second)
	s.Ceilings[0] = Ceiling{Key: 1, Top: 100, V: 1, Last: Mark{At: now - 1}, Stands: true, Ending: Ending{Reset: now + 9, Full: 60, Moves: mostMoves, Jump: Mark{1, 1}}}
	if even := s.Plan(now, 0).Even; math.Abs(even*60-1) > 1e-9 {
		t.Errorf("the rest of the window lasts at %g a minute, want 1", 60*even)
	}
}
