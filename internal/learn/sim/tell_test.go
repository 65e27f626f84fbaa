package sim

import (
	"testing"
	"time"
)

// A vendor tells hostile values in turn, and then good ones: the rate is the full one
// a window later.
func TestGoodHeadersAfterHostileOnes(t *testing.T) {
	t.Parallel()
	styles := []Style{Garbage, LiarLow, LiarHigh, Coarse, Garbage, Epoch}
	s := base(vendor(Rule{Kind: Fixed, Permits: 300, Per: 5 * time.Second}), styles[0])
	for i := range styles {
		s.Changes = append(s.Changes, Change{At: time.Duration(i) * 5 * time.Second, Style: &styles[i]})
	}
	good := s.Changes[len(s.Changes)-1].At
	s = s.over(good+5*time.Second, good+25*time.Second)
	for seed := range uint64(5) {
		res := Run(s, seed+1)
		if res.Served < 1140 || res.Refused > 12 || res.Early > 0 {
			t.Errorf("seed %d: %d served of 1,200, %d refused, %d before a told time", seed+1, res.Served, res.Refused, res.Early)
		}
	}
}
