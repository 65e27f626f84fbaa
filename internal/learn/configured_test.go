package learn

import (
	"testing"
	"time"

	"github.com/weirgo/weir/throttle"
)

// A scribe tells a state of one answer after the other, each 10 ms after the last.
type scribe struct {
	State
	now     throttle.Instant
	ordinal int64
}

func (s *scribe) answer(refused bool, quotas ...Quota) {
	s.ordinal++
	s.now = s.now.Add(10 * time.Millisecond)
	f := Fact{Departed: s.now, Landed: s.now.Add(5 * time.Millisecond), Ordinal: s.ordinal, Granted: s.ordinal, Flying: 1, Waited: true, Refused: refused, Quotas: quotas}
	s.State = Observe(s.State, &f, f.Landed)
}

// told is a quota of a minute's window.
func told(limit, left float64) Quota {
	return Quota{Limit: limit, Remaining: left, Reset: 30 * time.Second, HasLimit: true, HasRemaining: true, HasReset: true}
}

func hundred() *scribe {
	return &scribe{State: New(Setting{Configured: 100, Burst: 10}), now: throttle.InstantOf(time.Unix(1_700_000_000, 0))}
}

// Before the first refusal nothing slows a configured lane, whatever is told; after
// it, the lane is slowed.
func TestConfiguredLaneIsLoweredByRefusal(t *testing.T) {
	s := hundred()
	for i := range 200 {
		s.answer(false, told(60, max(0, float64(60-i))))
		if p := s.Plan(s.now, s.ordinal); p.Rate != 0 || p.Hold != 0 || p.Most != 0 {
			t.Fatalf("the plan after %d answers is %+v, want none", i+1, p)
		}
	}
	s.answer(true)
	if p := s.Plan(s.now, s.ordinal); (p.Rate == 0 || p.Rate >= 100) && !p.Probe {
		t.Errorf("the plan after a refusal is %+v, want less than the configured 100/s", p)
	}
}

// After a refusal a quota of which little is left slows the lane with the third reading
// that agrees with those before it; readings that contradict each other do not.
func TestConfiguredLaneIsLoweredByThreeReadings(t *testing.T) {
	tests := []struct {
		name string
		left [3]float64
		want bool // after the third
	}{
		{"agreeing", [3]float64{4, 3, 2}, true},
		{"contradicting", [3]float64{599, 200, 2}, false},
	}
	for _, test := range tests {
		s := hundred()
		for range 20 {
			s.answer(false)
		}
		s.answer(true)
		for range 20 {
			s.answer(false)
		}
		for i, left := range test.left {
			s.answer(false, told(600, left))
			p := s.Plan(s.now, s.ordinal)
			if want := test.want && i == 2; p.Bounded != want {
				t.Errorf("%s: after reading %d the quota holds: %v, want %v", test.name, i+1, p.Bounded, want)
			}
		}
	}
}

// After calls were served for long enough, the rate in force is the configured one
// again, but for the little by which the learner tries for more.
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
