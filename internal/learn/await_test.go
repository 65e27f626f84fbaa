package learn

import (
	"testing"
	"time"
)

// A reset is awaited from the first reading on, unless it is not exact: rounding can blur it, it moves, or the third
// window in a row reports only zero.
func TestExactResetsAreAwaited(t *testing.T) {
	type reading struct {
		at    time.Duration // of the call
		left  float64
		reset time.Duration // after the call
	}
	const minute = time.Minute
	for name, test := range map[string]struct {
		limit    float64
		readings []reading
		exact    bool
	}{
		"first reading":              {10, []reading{{0, 9, minute}}, true},
		"a second, always":           {10, []reading{{0, 9, time.Second}, {minute, 9, time.Second}}, false},
		"the same instant":           {10, []reading{{0, 9, minute}, {10 * time.Second, 8, 50 * time.Second}}, true},
		"another instant":            {10, []reading{{0, 9, minute}, {10 * time.Second, 8, minute}}, false},
		"the same instant again":     {10, []reading{{0, 9, minute}, {10 * time.Second, 8, minute}, {14 * time.Second, 7, 56 * time.Second}}, true},
		"two windows of zero":        {10, []reading{{0, 0, minute}, {2 * minute, 0, minute}}, true},
		"three windows of zero":      {10, []reading{{0, 0, minute}, {2 * minute, 0, minute}, {4 * minute, 0, minute}}, false},
		"three windows of one call":  {1, []reading{{0, 0, minute}, {2 * minute, 0, minute}, {4 * minute, 0, minute}}, true},
		"a permit after two of zero": {10, []reading{{0, 0, minute}, {2 * minute, 0, minute}, {4 * minute, 3, minute}}, true},
	} {
		s := New(Setting{Waits: true})
		var f *Fact
		for i, r := range test.readings {
			f = reports(int64(i+1), r.at, test.limit, r.left)
			f.Quotas[0].Reset, f.Quotas[0].HasReset = r.reset, true
			s.Read(f, 1, f.Landed)
		}
		if exact, wait := s.Awaits(f.Landed, &f.Quotas[0]); exact != test.exact || exact && wait != f.Quotas[0].Reset {
			t.Errorf("%s: exact %v, and %v to wait, want %v, %v", name, exact, wait, test.exact, f.Quotas[0].Reset)
		}
	}
}

// Until an exact reset as many numbers may depart as are left, and a call that costs more is held until just after it.
// Then the quota is whole again, without the calls in flight.
func TestRoomIsWhatIsLeftUntilTheReset(t *testing.T) {
	s := New(Setting{Waits: true})
	f := reports(1, 0, 10, 4)
	f.Quotas[0].Reset, f.Quotas[0].HasReset, f.Answered = time.Minute, true, 1
	s.Read(f, 1, f.Landed)
	end := f.Landed.Add(time.Minute + ResetGuard)
	if n, until := s.Room(f.Landed, 1, 0, 4); n != 4 || until != 0 {
		t.Errorf("a call of 4 beside %v left: until %v, want 4 left and no wait", n, until)
	}
	if n, until := s.Room(f.Landed, 1, 0, 5); n != 4 || until != end {
		t.Errorf("a call of 5 beside %v left: until %v, want 4 left, and %v", n, until, end)
	}
	if n, until := s.Room(end, 3, 2, 5); n != 8 || until != 0 {
		t.Errorf("after the reset, with 2 in flight: %v left, until %v, want 8 and no wait", n, until)
	}
}
