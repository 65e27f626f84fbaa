package learn

import "testing"

// A refusal that one quota explains is no evidence against another with plenty left: both still
// bound the lane.
func TestRefusalIsHeldAgainstNoOtherQuota(t *testing.T) {
	s := hundred()
	s.Setting = Setting{}
	two := func(left float64) []Quota {
		spent, plenty := minute(60, left), minute(1000, 900)
		spent.Name, plenty.Name = "minute", "hour"
		return []Quota{spent, plenty}
	}
	s.answer(false, two(1)...)
	s.answer(false, two(0)...)
	for range 2 * mostStrikes {
		s.answer(true, two(0)...)
	}
	for i := range 2 {
		if c := &s.Ceilings[i]; !c.binds(&s.State) {
			t.Errorf("ceiling %d does not bind after refusals that the first one explains: %+v", i, c)
		}
	}
}
