package sim

import "testing"

// The bounds for random vendors that report what is left: the results when the test was written,
// less a margin for 100 draws. The goal is 99 % of both, and none stuck.
const (
	leastFew  = 0.9
	leastMost = 0.78
	mostStuck = 0.06
)

func TestRandomReportingVendors(t *testing.T) {
	t.Parallel()
	var sum Reported
	for seed := range max(uint64(20), 100/scale) {
		v := RandomReporting(seed + 1).JudgeReporting()
		if v.Early > 0 || v.Used == 0 {
			t.Errorf("%d departures before a reported time, %.3f used: %v", v.Early, v.Used, v.Draw)
		}
		sum.Add(v)
	}
	n := float64(sum.All.N)
	if float64(sum.All.Few) < leastFew*n || float64(sum.All.Most) < leastMost*n || float64(sum.All.Stuck) > mostStuck*n {
		t.Errorf("of random vendors that report what is left: %v", sum.All)
	}
}
