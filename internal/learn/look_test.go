package learn

import (
	"slices"
	"testing"
	"time"
)

// A quota of 100, first used 40 s before a minute by the wall clock, has 43 permits left and stands still. Each look costs
// one of them, so looks go to the ends of round windows, which began at the first use or by the clock.
func TestLooksGoToTheEndsOfRoundWindows(t *testing.T) {
	s, ordinal, left := New(Setting{}), int64(0), 100.0
	var last *Fact
	call := func(at time.Duration) {
		ordinal++
		left--
		last = reports(ordinal, at, 100, left)
		s = observed(s, last, last.Landed)
	}
	for left > 43 {
		call(time.Duration(ordinal) * 10 * time.Microsecond)
	}
	var looks []time.Duration
	for at := time.Duration(0); at < 6*time.Minute; {
		at = max(s.Plan(last.Landed, ordinal).Hold, last.Landed).Sub(begun)
		looks = append(looks, at.Round(10*time.Millisecond))
		call(at)
	}
	for _, end := range []time.Duration{1, 2, 5, 10, 15, 30, 40, 60, 100, 120, 300} {
		if late := end*time.Second + ResetGuard; !slices.Contains(looks, late) {
			t.Errorf("no look at %v: %v", late, looks)
		}
	}
	if left < 0 {
		t.Errorf("all permits were spent on looks: %v", looks)
	}
}

// A window that is reported to end in days is asked about once an hour: what is spent may be
// back, and the reset may be wrong.
func TestDistantResetIsAskedAbout(t *testing.T) {
	s := hundred()
	s.Setting = Setting{}
	for left := 99.0; left >= 0; left-- {
		q := minute(100, left)
		q.Reset, q.HasReset, q.Held = 72*time.Hour, true, true
		s.answer(left < 0, q)
	}
	q := minute(100, 0)
	q.Reset, q.HasReset = 72*time.Hour, true
	s.answer(true, q)
	if p := s.Plan(s.now.Add(time.Minute), s.ordinal); p.Hold <= s.now.Add(time.Minute) {
		t.Errorf("nothing is left for three days: a minute later %+v", p)
	}
	if now := s.now.Add(61 * time.Minute); s.Plan(now, s.ordinal).Hold > now {
		t.Errorf("nothing is left for three days: an hour later held for %v more", s.Plan(now, s.ordinal).Hold.Sub(now))
	}
}

// So is one whose spent quota bounds nothing, such as a plan that charges for what is beyond it.
func TestDistantResetIsAskedAboutByServedCalls(t *testing.T) {
	s := hundred()
	s.Setting = Setting{}
	for i := range 120 {
		q := minute(100, float64(max(99-i, 0)))
		q.Reset, q.HasReset = 12*24*time.Hour, true
		s.answer(false, q)
		if now := s.now.Add(time.Hour + time.Second); s.Plan(now, s.ordinal).Hold > now {
			t.Fatalf("call %d was served: an hour later held for %v more", i+1, s.Plan(now, s.ordinal).Hold.Sub(now))
		}
		if i > 99 {
			s.now = s.now.Add(time.Hour)
		}
	}
}
