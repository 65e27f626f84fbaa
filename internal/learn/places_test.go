package learn

import (
	"testing"
	"time"

	"github.com/weirgo/weir/throttle"
)

// Others fill the vendor and leave again: the reported free places are soon used, or the lane's share of them.
func TestReportedRoomInFlightIsTakenAgain(t *testing.T) {
	for _, share := range []float64{1, 0.5} {
		s := New(Setting{Share: share})
		now := throttle.InstantOf(time.Unix(1_700_000_000, 0))
		ordinal := int64(0)
		answer := func(flying int, left float64, refused bool) {
			now = now.Add(time.Second)
			ordinal++
			f := Fact{Departed: now, Landed: now.Add(time.Second), Ordinal: ordinal, Granted: ordinal, Flying: flying, Waited: true, Refused: refused}
			f.Quotas = []Quota{{Unit: "concurrent-requests", Limit: 12, Remaining: left, HasLimit: true, HasRemaining: true}}
			s = observed(s, &f, f.Landed)
		}
		most := func() int { return s.Plan(now.Add(time.Second), ordinal).Most }
		answer(1, 11, false)
		answer(2, 0, true)
		if most() != 1 {
			t.Fatalf("%d may be in flight after one of two was refused: %v", most(), &s)
		}
		for range 12 {
			answer(most(), 12-float64(most()), false)
		}
		if float64(most()) < 6*share {
			t.Errorf("%d may be in flight after twelve answers that reported room for 12, of which %v is the lane's: %v", most(), share, &s)
		}
	}
}

// A vendor that reports a reset beside the calls in flight has another limit too. A refusal while
// places are left begins an episode, and does not count as a spent window.
func TestReportedBoundOfCallsInFlightHidesNoOtherLimit(t *testing.T) {
	s := New(Setting{})
	now := throttle.InstantOf(time.Unix(1_700_000_000, 0))
	answer := func(n int64, refused bool) {
		now = now.Add(10 * time.Millisecond)
		f := Fact{Departed: now, Landed: now.Add(5 * time.Millisecond), Ordinal: n, Granted: n, Flying: 1, Waited: true, Refused: refused}
		f.Quotas = []Quota{{Unit: "concurrent-requests", Limit: 12, Remaining: 11, HasLimit: true, HasRemaining: true, Reset: time.Second, HasReset: true}}
		s = observed(s, &f, f.Landed)
	}
	for n := range int64(40) {
		answer(n+1, false)
	}
	if answer(41, true); !s.Episode {
		t.Errorf("a refusal while eleven of twelve places are left teaches nothing: %v", &s)
	}
}

// Others have all places that the vendor reports: a call alone in flight probes for one, more and
// more rarely, but at least once a second. No rate is learned from that.
func TestReportedPlacesThatOthersHaveAreNoRate(t *testing.T) {
	s := New(Setting{})
	now := throttle.InstantOf(time.Unix(1_700_000_000, 0))
	answer := func(n int64, left float64, refused bool) {
		f := Fact{Departed: now, Landed: now.Add(10 * time.Millisecond), Ordinal: n, Granted: n, Flying: 1, Waited: true, Refused: refused}
		f.Quotas = []Quota{{Unit: "concurrent-requests", Limit: 12, Remaining: left, HasLimit: true, HasRemaining: true}}
		now = f.Landed
		s = observed(s, &f, now)
	}
	for n := int64(1); n <= 10; n++ {
		answer(n, 11, false)
	}
	for n := int64(11); n <= 40; n++ {
		answer(n, 0, true)
		p := s.Plan(now, n)
		if gap := p.Hold.Sub(now); !p.Probe || p.Most != 1 || gap <= 0 || gap > time.Second {
			t.Fatalf("refusal %d: plan %+v, want one call within a second, and not at once", n-10, p)
		}
		now = max(now, p.Hold)
	}
	for n := int64(41); n <= 60; n++ {
		answer(n, 11, false)
	}
	if p := s.Plan(now, 60); p.Rate != 0 || p.Hold > now || p.Most < 3 {
		t.Errorf("plan %+v after the others left, want three or more in flight and no rate: %v", p, &s)
	}
}

// A vendor has eight places. Calls overtake each other on the way, so the first refused one left
// with twelve in flight, and a later one with eight of eleven. Both show the vendor's bound, not a
// rate.
func TestOvertakenRefusalsLowerTheBound(t *testing.T) {
	p := Places{Cap: 12}
	p.try(&Fact{Flying: 12})
	p.Cap = 11
	mode, asks := p.refused(&Fact{Flying: 8, Ordinal: 40, Granted: 43, Refused: true}, Trial, 1)
	if mode != Trial || asks || p.Ceil != 7 {
		t.Errorf("mode %d, asks %v, %v, want a trial of 7 that continues", mode, asks, p)
	}
}

// With fewer than five in flight the rate of a vendor that counts a rate is hidden: one call
// in flight with answers after 30 ms leaves 33/s, which 50/s never refuses.
func TestTrialOfFewPlacesIsARate(t *testing.T) {
	p := Places{Cap: 7, Ceil: 7}
	mode, asks := p.refused(&Fact{Flying: 4, Ordinal: 40, Granted: 40, Refused: true}, Trial, 1)
	if mode != Rate || !asks || p.Banned != throttle.Instant(1).Add(2*time.Second) {
		t.Errorf("mode %d, asks %v, banned until %v, want a rate and a ban of 2 s", mode, asks, p.Banned)
	}
}

// All calls departed with ten in flight, and were served. A refusal with ten is then a rate's, and the next trial comes four times as late as the previous.
func TestRefusalWithTheUsualInFlightIsARate(t *testing.T) {
	p := Places{Cap: 10, Ceil: 12}
	for range 100 {
		p.note(&Fact{Flying: 10})
	}
	for _, wait := range []time.Duration{2, 8, 32, 60, 60} {
		mode, asks := p.refused(&Fact{Flying: 10, Refused: true}, Trial, 1)
		if mode != Rate || !asks || p.Banned != throttle.Instant(1).Add(wait*time.Second) {
			t.Fatalf("mode %d, asks %v, banned until %v, want a rate and a ban of %d s", mode, asks, p.Banned, wait)
		}
	}
}

// While a rate is searched, the ninth call in flight is refused four times, and none with fewer. So
// calls in flight are tried, unless a time was reported or a ban applies.
func TestPacedLaneFindsThePlaces(t *testing.T) {
	refusal := &Fact{Flying: 9, Refused: true}
	flying := 9.0
	met := func(p *Places, times int, now throttle.Instant) (crowded bool) {
		for range times {
			for range 20 {
				p.note(&Fact{Flying: 7})
			}
			crowded = p.crowded(refusal, flying, now)
		}
		return crowded
	}
	if p := new(Places); met(p, 3, 1) || !met(p, 1, 1) {
		t.Errorf("three refusals were enough, or four were not: %+v", p)
	}
	if p := (&Places{Banned: 10}); met(p, 8, 9) || !met(p, 4, 10) {
		t.Errorf("the ban was not obeyed, or outlasted: %+v", p)
	}
	flying = 6.9 // the rate rose since those left that are answered, and two of nine with it
	if p := new(Places); met(p, 8, 1) {
		t.Errorf("calls in flight that rise with the rate were taken for a full vendor: %+v", p)
	}
	flying, refusal.Until = 9, 5
	if p := new(Places); met(p, 8, 1) {
		t.Errorf("a refusal that reports a time was taken for a full vendor: %+v", p)
	}
}

// A bound that was served for long, with one more refused, survives a random refusal, and others
// taking all places. Then a refused call that was alone starts no search for a rate. The same
// refusal ends an unproven bound.
func TestProvenBoundOutlastsOthers(t *testing.T) {
	p := Places{Cap: 8, Ceil: 8, Run: proof}
	full, alone := &Fact{Flying: 8, Refused: true}, &Fact{Flying: 1, Ordinal: 1, Granted: 1, Refused: true}
	if mode, asks := p.refused(full, Flight, 1); mode != Flight || asks || p.Ceil != 8 {
		t.Errorf("after one refusal: mode %d, asks %v, %+v", mode, asks, p)
	}
	p.Run = patience
	mode := p.grow(&Fact{Flying: 8}, Flight)
	if mode, _ = p.refused(&Fact{Flying: 9, Refused: true}, mode, 1); mode != Flight || p.Ceil != 8 {
		t.Fatalf("one more was tried in vain: mode %d, %+v", mode, p)
	}
	for range patience {
		mode = p.grow(&Fact{Flying: 8}, mode)
	}
	higher := p
	p.Run, p.Step = 0, 0
	if mode, asks := p.refused(full, mode, 1); mode != Trial || !asks {
		t.Errorf("a proven bound was refused: mode %d, asks %v, want a trial", mode, asks)
	}
	if mode, asks := p.refused(alone, Trial, 1); mode != Trial || !asks {
		t.Errorf("a call alone was refused: mode %d, asks %v, want a trial", mode, asks)
	}
	p.Proven = false
	if mode, _ := p.refused(alone, Trial, 1); mode != Rate {
		t.Errorf("an unproven bound remains: mode %d", mode)
	}
	for range proof { // the ninth, which was refused, is served now: the vendor counts a rate
		higher.grow(&Fact{Flying: 9}, Flight)
	}
	if higher.Run, higher.Step = 0, 0; higher.Ceil < 10 {
		t.Fatalf("no more were tried: %+v", higher)
	}
	if mode, _ := higher.refused(full, Flight, 1); mode != Rate {
		t.Errorf("a bound that was exceeded since remains: mode %d", mode)
	}
}

// The first refused calls of processes that share a lane seem to be alone, because no others have
// landed: a probe that is refused then shows no rate. In one process it does.
func TestFirstProbeOfAFleetShowsNoRate(t *testing.T) {
	for shared, want := range map[bool]Mode{true: Trial, false: Rate} {
		s := New(Setting{Shared: shared})
		s.Mode, s.Episode, s.Probing = Trial, true, true
		s.probeRefused(&Fact{Flying: 1, Ordinal: 2, Granted: 2, Refused: true}, 1)
		if s.Mode != want {
			t.Errorf("shared %v: mode %d, want %d", shared, s.Mode, want)
		}
	}
}
