package learn

import (
	"testing"
	"time"

	"github.com/weirgo/weir/throttle"
)

// A vendor reports a bound of twelve calls in flight, and still counts some that are answered, on a
// slow machine. No rate is searched then, and the reported number is in flight again.
func TestReportedBoundOfCallsInFlightIsNoRate(t *testing.T) {
	s := New(Setting{})
	now := throttle.InstantOf(time.Unix(1_700_000_000, 0))
	ordinal := int64(0)
	answer := func(flying int, left float64, refused bool) {
		now = now.Add(2 * time.Millisecond)
		ordinal++
		f := Fact{Departed: now, Landed: now.Add(20 * time.Millisecond), Ordinal: ordinal, Granted: ordinal + int64(flying) - 1, Flying: flying, Waited: true, Refused: refused}
		f.Quotas = []Quota{{Unit: "concurrent-requests", Limit: 12, Remaining: left, HasLimit: true, HasRemaining: true}}
		s = observed(s, &f, f.Landed)
	}
	most := func() int { return s.Plan(now.Add(time.Second), ordinal).Most }
	for flying := 1; flying <= 12; flying++ {
		answer(flying, float64(12-flying), false)
	}
	for range 6 { // repeatedly, before many were served
		ordinal += 20 // it left after the last refusal came
		answer(min(9, most()), 0, true)
		for range 20 {
			answer(most(), 1, false)
		}
		if s.Mode == Rate {
			t.Fatalf("a rate is sought after a refusal for want of places in flight: %v", &s)
		}
	}
	for range 4000 {
		answer(most(), 1, false)
	}
	if most() != 12 {
		t.Errorf("%d calls may be in flight, 12 are reported: %v", most(), &s)
	}
	if ordinal += 20; most() == 12 { // the clock ticks on, and one comes too many
		if answer(12, 0, true); most() != 12 {
			t.Errorf("one refusal in thousands lowered the bound of calls in flight to %d", most())
		}
	}
}

// Readings of slow answers may show that the vendor counts calls in flight, though it does not say so. A refusal
// for want of places then bounds the calls in flight, and begins no search for a rate.
func TestPlacesThatReadingsShowAreNoRate(t *testing.T) {
	s, now, ordinal := New(Setting{}), throttle.InstantOf(time.Unix(1_700_000_000, 0)), int64(0)
	answer := func(flying int, left float64, refused bool) {
		now, ordinal = now.Add(2*time.Second), ordinal+1
		s = observed(s, &Fact{
			Departed: now, Landed: now.Add(2 * time.Second), Ordinal: ordinal, Granted: ordinal + int64(flying) - 1, Flying: flying, Waited: true, Refused: refused,
			Quotas: []Quota{{Remaining: left, HasRemaining: left >= 0}},
		}, now.Add(2*time.Second))
	}
	answer(1, -1, false)
	answer(4, -1, true) // without a reading
	for range 6 {
		for flying := 1; flying <= 5; flying++ {
			answer(flying, float64(5-flying), false)
		}
	}
	if s.Mode != Rate {
		t.Fatalf("no rate is sought after the first refusal: %v", &s)
	}
	ordinal += 20
	answer(6, 0, true)
	if most := s.Plan(now.Add(time.Hour), ordinal).Most; s.Mode != Flight || most != 5 {
		t.Errorf("%d calls may be in flight, want 5 and no rate: %v", most, &s)
	}
}

// The reported bound of one call in flight is believed, too.
func TestReportedBoundOfOneCallIsBelieved(t *testing.T) {
	s := New(Setting{})
	now := throttle.InstantOf(time.Unix(1_700_000_000, 0))
	for n := int64(1); n <= 8; n++ {
		f := Fact{Departed: now, Landed: now.Add(time.Millisecond), Ordinal: n, Granted: n, Flying: 1, Waited: true}
		f.Quotas = []Quota{{Unit: "concurrent-requests", Limit: 1, HasLimit: true, HasRemaining: true}}
		s = observed(s, &f, f.Landed)
		now = now.Add(time.Millisecond)
	}
	if p := s.Plan(now, 8); p.Most != 1 || p.Rate != 0 {
		t.Errorf("plan %+v, want one call in flight and no rate", p)
	}
}
