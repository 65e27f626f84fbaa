package learn

import (
	"testing"
	"time"
)

// An answer that reports more than the window that still runs can have left is an old one. It begins
// no window, so the reported reset is still believed. Three in a row are believed.
func TestAnOldReadingBeginsNoWindow(t *testing.T) {
	s := hundred()
	s.Setting = Setting{}
	s.answer(false, minute(100, 20))
	before := s.Ceilings[0]
	s.answer(false, minute(100, 90))
	if after := s.Ceilings[0]; after.V != before.V || after.Ends != before.Ends {
		t.Errorf("20 were left, then 90 in the same window: the level went from %.0f to %.0f, and %d ends were as reported, want %d", before.V, after.V, after.Ends, before.Ends)
	}
	for range oddly {
		s.answer(false, minute(100, 90))
	}
	if after := s.Ceilings[0]; after.V < before.V+60 {
		t.Errorf("90 were reported to be left again and again: the level went from %.0f to %.0f", before.V, after.V)
	}
}

// A bucket that is known to gain 200/s has not gained 12 permits within 5 ms. An answer that says so is
// an old one, and changes neither the level nor its slope.
func TestAnOldReadingFillsNoBucket(t *testing.T) {
	s := New(Setting{})
	now, left := begun, 20.0
	answer := func(left float64) Ceiling {
		now = now.Add(5 * time.Millisecond)
		at := s.Last.Ordinal + 1
		f := Fact{Departed: now, Landed: now.Add(4 * time.Millisecond), Ordinal: at, Granted: at, Answered: at - 1, Flying: 1, Waited: true}
		f.Quotas = []Quota{{Limit: 20, HasLimit: true, Remaining: left, HasRemaining: true}}
		s.Observe(&f, f.Landed)
		return s.Ceilings[0]
	}
	for range 13 { // at once
		left--
		now = now.Add(-5 * time.Millisecond)
		answer(left)
	}
	before := Ceiling{}
	for range 200 { // as fast as it fills
		before = answer(left)
	}
	if !before.fills() || before.Slope < 190 || before.Slope > 210 {
		t.Fatalf("the slope is %.0f/s give or take %.0f, want 200/s", before.Slope, before.Blur)
	}
	if after := answer(left + 12); after.V > before.V+2 || after.Slope != before.Slope {
		t.Errorf("12 more in 5 ms: the level went from %.0f to %.0f, and the slope to %.0f/s", before.V, after.V, after.Slope)
	}
}

// One answer that reports a billion permits does not keep a share of them for single calls: the
// lane would crawl for good, though nearly all of its quota is left.
func TestAHugeReadingIsForgotten(t *testing.T) {
	s := hundred()
	s.Setting = Setting{}
	s.answer(false, minute(100, 90))
	_, want, _ := s.Bound()
	s.answer(false, minute(100, 1e9))
	s.answer(false, minute(100, 88))
	if _, kept, _ := s.Bound(); kept > want {
		t.Errorf("after a billion were reported once, %.0f of 88 permits are kept, want %.0f at most", kept, want)
	}
}

// A vendor that reports zero on every answer, and serves, says nothing.
func TestZeroAlwaysHoldsNobody(t *testing.T) {
	s := hundred()
	s.Setting = Setting{}
	for range 10 {
		q := minute(100, 0)
		q.Reset, q.HasReset = time.Minute, true
		s.answer(false, q)
		if p := s.Plan(s.now, s.ordinal); p.Hold > s.now || p.Reported {
			t.Fatalf("zero left of 100 on every answer that is served: %+v", p)
		}
	}
}
