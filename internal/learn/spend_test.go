package learn

import (
	"testing"
	"time"
)

// While nobody knows how a level rises, the last permits are spent by single calls, each of
// which waits for the answer to the one before, but not without end.
func TestSingleCallsReadTheLevel(t *testing.T) {
	s := hundred()
	s.Setting = Setting{}
	s.answer(false, minute(20, 2))
	p := s.Plan(s.now, s.ordinal+1)
	if !p.Asks || p.Hold <= s.now || p.Hold > s.now.Add(answers*time.Second) {
		t.Errorf("beside a call without an answer: %+v", p)
	}
	if p := s.Plan(s.now.Add(time.Hour), s.ordinal); p.Hold > s.now.Add(time.Hour) {
		t.Errorf("an hour later, with 2 left and nothing in flight: held for %v", p.Hold.Sub(s.now.Add(time.Hour)))
	}
}

// Of 190 calls in ten seconds and 500,000 a day, as HubSpot reports them
// (https://developers.hubspot.com/docs/developer-tooling/platform/usage-guidelines), the fewest are left of the
// first. A tenth of the day is kept of the day's rest, and not of the other one: processes that share the lane
// would send one call at a time for good.
func TestEachQuotaKeepsItsOwnReserve(t *testing.T) {
	answered := func(quotas ...Quota) *State {
		s := New(Setting{Shared: true})
		for i := range int64(5) {
			f := reports(i+1, time.Duration(i)*10*time.Millisecond, 190, float64(189-i))
			f.Quotas = nil
			for _, q := range quotas {
				q.Remaining -= float64(i)
				f.Quotas = append(f.Quotas, q)
			}
			s = observed(s, f, f.Landed)
		}
		return &s
	}
	window := Quota{Limit: 190, Remaining: 189, Window: 10 * time.Second, HasLimit: true, HasRemaining: true, HasWindow: true}
	day := Quota{Name: "daily", Limit: 500_000, Remaining: 430_000, Window: 24 * time.Hour, HasLimit: true, HasRemaining: true, HasWindow: true}
	_, alone, _ := answered(window).Bound()
	if _, kept, ok := answered(window, day).Bound(); !ok || kept != alone {
		t.Errorf("%.0f of the window's 185 permits are kept beside the day's quota, want %.0f as without it", kept, alone)
	}
	if _, kept, ok := new(New(Setting{})).Bound(); kept != 0 || ok {
		t.Errorf("a lane without a reading keeps %.0f, bound %v, want none", kept, ok)
	}
}
