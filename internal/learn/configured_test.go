package learn

import (
	"testing"
	"time"

	"github.com/weirgo/weir/throttle"
)

// A scribe makes a state observe one answer after another, each 10 ms after the last.
type scribe struct {
	State
	now     throttle.Instant
	ordinal int64
}

func (s *scribe) answer(refused bool, quotas ...Quota) {
	s.ordinal++
	s.now = s.now.Add(10 * time.Millisecond)
	f := Fact{Departed: s.now, Landed: s.now.Add(5 * time.Millisecond), Ordinal: s.ordinal, Granted: s.ordinal, Flying: 1, Waited: true, Refused: refused, Quotas: quotas}
	s.State = observed(s.State, &f, f.Landed)
}

// minute is a quota of a minute's window.
func minute(limit, left float64) Quota {
	return Quota{Limit: limit, Remaining: left, Reset: 30 * time.Second, HasLimit: true, HasRemaining: true, HasReset: true}
}

func hundred() *scribe {
	return &scribe{State: New(Setting{Configured: 100, Burst: 10}), now: throttle.InstantOf(time.Unix(1_700_000_000, 0))}
}

// Before the first refusal nothing slows a configured lane, whatever is reported; after
// it, the lane is slowed.
func TestConfiguredLaneIsLoweredByRefusal(t *testing.T) {
	s := hundred()
	for i := range 200 {
		s.answer(false, minute(60, max(0, float64(60-i))))
		if p := s.Plan(s.now, s.ordinal); p.Rate != 0 || p.Hold != 0 || p.Most != 0 {
			t.Fatalf("the plan after %d answers is %+v, want the zero plan", i+1, p)
		}
	}
	s.answer(true)
	if p := s.Plan(s.now, s.ordinal); (p.Rate == 0 || p.Rate >= 100) && !p.Probe {
		t.Errorf("the plan after a refusal is %+v, want less than the configured 100/s", p)
	}
}

// Once a configured lane was refused, reported quotas bound its departures, from the first reading
// on.
func TestConfiguredLaneHoldsToAQuotaAfterARefusal(t *testing.T) {
	s := hundred()
	for range 20 {
		s.answer(false, minute(600, 2))
	}
	if p := s.Plan(s.now, s.ordinal+3); p.Hold > s.now {
		t.Errorf("before a refusal the quota holds calls until %v after now", p.Hold.Sub(s.now))
	}
	s.answer(true)
	s.now = s.now.Add(time.Second)
	s.answer(false, minute(600, 2))
	if p := s.Plan(s.now, s.ordinal+3); p.Hold <= s.now {
		t.Errorf("2 were reported left and 3 have departed: %+v holds no call", p)
	}
}

// After calls were served for long enough, the rate in force is the configured one again, except
// for the learner's small excess.
func TestConfiguredRateIsInForceAgain(t *testing.T) {
	s := hundred()
	s.answer(true)
	for range 20_000 {
		s.answer(false)
		if p := s.Plan(s.now, s.ordinal); p.Rate > 105 {
			t.Fatalf("the rate after %d answers is %.1f/s, above the configured 100/s", s.ordinal, p.Rate)
		}
	}
	if p := s.Plan(s.now, s.ordinal); p.Rate < 100 {
		t.Errorf("the rate after %d answers is %.1f/s, want the configured 100/s again", s.ordinal, p.Rate)
	}
}

// Configured limits that name no rate, such as those in tokens, leave the estimate finite.
func TestRateIsFoundBesideLimitsThatNameNone(t *testing.T) {
	s := hundred()
	s.Setting.Configured = AnyRate
	for i := range 400 {
		s.answer(i%40 == 39)
	}
	if p := s.Plan(s.now, s.ordinal); p.Rate <= 0 || p.Rate > 1000 {
		t.Errorf("after ten refusals at 100/s the rate is %v, want 1000/s at most", p.Rate)
	}
}

// Beside such limits, what is reported bounds departures from the first reading on.
func TestQuotaBesideLimitsThatNameNoRateHolds(t *testing.T) {
	s := hundred()
	s.Setting.Configured = AnyRate
	for range 20 {
		s.answer(false, minute(600, 2))
	}
	if p := s.Plan(s.now, s.ordinal+3); p.Hold <= s.now {
		t.Error("three calls more than the 2 that are left are not held")
	}
}
