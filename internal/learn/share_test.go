package learn

import (
	"testing"

	"github.com/weirgo/weir/throttle"
)

// The first estimate is rough, whatever its stated width: the lane takes a share only of a rate
// that two in a row agree on.
func TestShareIsOfARateThatTwoEstimatesShow(t *testing.T) {
	s := New(Setting{Share: 0.5})
	for _, c := range []struct{ w, u, before, want float64 }{
		{500, 0.2, 0, 0}, {110, 0.2, 500, 0}, {100, 0.2, 105, 0}, {100, 0.1, 120, 0}, {100, 0.1, 105, 90}, {80, 0.1, 100, 90},
	} {
		s.W, s.U = c.w, c.u
		if s.found(c.before); s.Whole != c.want {
			t.Errorf("after %v and %v, with a width of %v, the whole rate is %v, want %v", c.before, c.w, c.u, s.Whole, c.want)
		}
	}
}

// Refusals every two seconds show that the share is too much, although calls are served in between.
func TestShareIsSearchedAnewAfterRefusals(t *testing.T) {
	s := New(Setting{Share: 0.5})
	s.Mode, s.W, s.U, s.R, s.Whole, s.RTT = Rate, 100, 0.1, 90, 400, 0.02
	for i := range mostMissed {
		if s.Whole == 0 {
			t.Fatalf("the rate is searched anew after %d refusals, want %d", i, mostMissed)
		}
		s.again()
		for n := range int64(160) {
			f := Fact{Ordinal: n, Waited: true, Departed: throttle.Instant(n * 12e6)}
			s.grow(&f, 0)
		}
		s.missed()
	}
	if s.Whole != 0 {
		t.Errorf("the lane still takes its share of %v/s after %d refusals in 8 s", s.Whole, mostMissed)
	}
}
