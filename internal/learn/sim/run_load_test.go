package sim

import (
	"testing"
	"time"
)

// A lane with less demand than the vendor's limit learns nothing from that. Its estimate does not
// sink to the demand, so waits stay short. It does not search for more, so hardly any call is
// refused.
func TestLowDemandIsNoLimit(t *testing.T) {
	t.Parallel()
	for _, share := range []float64{0.3, 0.6} {
		for seed := uint64(1); seed <= max(1, 5/scale); seed++ {
			s := Scenario{
				Vendor: vendor(bucket(50, time.Second, 1)), Service: 5 * time.Millisecond, Way: 500 * time.Microsecond, Jitter: 0.5,
				Open: share * 50, From: time.Minute, Until: 6 * time.Minute,
			}
			if res := Run(s, seed); res.P99 > time.Second || res.Refused*130 > res.Served {
				t.Errorf("seed %d: at %.1f of the vendor's rate, 99 of 100 calls took up to %v, and %d were refused of %d", seed, share, res.P99, res.Refused, res.Served)
			}
		}
	}
}

// If the demand rises above the rate in force, the lane searches for more at once.
func TestRisingDemandIsServed(t *testing.T) {
	t.Parallel()
	for seed := uint64(1); seed <= max(1, 5/scale); seed++ {
		s := Scenario{
			Vendor: vendor(bucket(50, time.Second, 1)), Service: 5 * time.Millisecond, Way: 500 * time.Microsecond, Jitter: 0.5,
			Open: 10, Later: 45, LaterAt: 3 * time.Minute, From: 4 * time.Minute, Until: 6 * time.Minute,
		}
		if res := Run(s, seed); float64(res.Served) < 0.9*45*120 {
			t.Errorf("seed %d: %d served in two minutes at 45/s", seed, res.Served)
		}
	}
}

// Windows whose end a refusal reports are used, however that time is rounded.
func TestReportedWindowsAreUsed(t *testing.T) {
	t.Parallel()
	tests := []struct {
		rule Rule
		used float64
	}{
		{Rule{Kind: Log, Permits: 12, Per: time.Second}, 0.82},
		{Rule{Kind: Log, Permits: 47, Per: time.Second}, 0.85},
		{Rule{Kind: Log, Permits: 82, Per: time.Second}, 0.85},
		{Rule{Kind: Sliding, Permits: 22, Per: 30 * time.Second}, 0.75},
		{Rule{Kind: FirstUse, Permits: 16, Per: time.Minute}, 0.85},
	}
	for _, style := range []Style{RetrySecs, RetryMillis} {
		for i, test := range tests {
			if i%scale != 0 {
				continue
			}
			sum := 0.0
			settle := max(30*time.Second, 3*test.rule.Per)
			s := Scenario{
				Vendor: vendor(test.rule), Style: style, Service: 30 * time.Millisecond, Way: time.Millisecond, Jitter: 0.5, Workers: 24,
			}.over(settle, 3*settle)
			for seed := range uint64(5) {
				sum += float64(Run(s, seed+1).Served) / (test.rule.PerSecond() * (s.Until - s.From).Seconds())
			}
			if sum/5 < test.used {
				t.Errorf("%v: of %v %d/%v %.3f is used, want %.2f", style, test.rule.Kind, test.rule.Permits, test.rule.Per, sum/5, test.used)
			}
		}
	}
}

// After minutes of a call every few seconds the first refusal of a flood shows the vendor's rate, and not theirs.
func TestFloodAfterRareCallsIsServed(t *testing.T) {
	t.Parallel()
	const rare, flood, whole = 0.1, 10 * time.Minute, 13 * time.Minute
	for i, rule := range []Rule{bucket(80, time.Minute, 2), bucket(60, time.Minute, 60), bucket(10, time.Second, 10), {Kind: Fixed, Permits: 60, Per: time.Minute}} {
		if i%scale != 0 {
			continue
		}
		for _, late := range []time.Duration{0, 30 * time.Millisecond} {
			for _, times := range []float64{1.3, 4} {
				sum := 0.0
				for seed := range uint64(5) {
					s := Scenario{
						Vendor: vendor(rule), Service: 80 * time.Millisecond, Way: 2 * time.Millisecond, Jitter: 0.5, Late: late,
						Open: rare, Later: times * rule.PerSecond(), LaterAt: flood, From: flood, Until: whole,
					}
					sum += float64(Run(s, seed+1).Served) / (rule.PerSecond() * (whole - flood).Seconds()) / 5
				}
				if sum < 0.85 {
					t.Errorf("%v, calls at %.1f times the rate, facts after %v: %.2f used in three minutes, want 0.85 at least", rule, times, late, sum)
				}
			}
		}
	}
}

// A single worker is slow by itself, so few of its calls wait. After the limit has risen, it is
// still served as fast as it can send.
func TestWorkerAloneFollowsARise(t *testing.T) {
	t.Parallel()
	up, sum := vendor(bucket(100, time.Second, 1)), 0.0
	const seeds = max(1, 5/scale)
	for seed := range uint64(seeds) {
		s := Scenario{
			Vendor: vendor(bucket(8, time.Second, 1)), Service: 95 * time.Millisecond, Exponential: true, Way: 2 * time.Millisecond, Jitter: 0.5,
			Workers: 1, From: 3 * time.Minute, Until: 10 * time.Minute, Changes: []Change{{At: 2 * time.Minute, Vendor: &up}},
		}
		sum += float64(Run(s, seed+1).Served) / 420 / seeds
	}
	if sum < 7.5 {
		t.Errorf("a worker that could have ten answers a second gets %.2f", sum)
	}
}

// A vendor with slow answers that reports what is left, but no reset, counts calls in time, not in
// flight.
func TestSlowBucketWithoutResetIsUsed(t *testing.T) {
	t.Parallel()
	for seed := uint64(1); seed <= max(1, 3/scale); seed++ {
		s := Scenario{
			Vendor: vendor(bucket(40, time.Second, 10)), Style: Resetless, Service: 500 * time.Millisecond, Way: time.Millisecond, Jitter: 0.3, Workers: 40,
		}.over(30*time.Second, 90*time.Second)
		if used := float64(Run(s, seed).Served) / 40 / 60; used < 0.9 {
			t.Errorf("seed %d: %.2f of 40/s is used", seed, used)
		}
	}
}

// A vendor that blocks for five seconds was once down for ten minutes. That is no block, so a limit
// that rises later is found.
func TestOutageIsNoBlock(t *testing.T) {
	t.Parallel()
	blocks := func(r Rule) *Vendor { return &Vendor{Rules: []Rule{r}, Block: 5 * time.Second} }
	usual, more := blocks(bucket(10, time.Second, 10)), blocks(bucket(20, time.Second, 10))
	out := vendor(bucket(1, 24*time.Hour, 1))
	for seed := uint64(1); seed <= max(1, 3/scale); seed++ {
		s := Scenario{
			Vendor: *usual, Service: 50 * time.Millisecond, Way: 5 * time.Millisecond, Jitter: 0.3, Workers: 16,
			Changes: []Change{{At: 10 * time.Minute, Vendor: &out}, {At: 20 * time.Minute, Vendor: usual}, {At: 40 * time.Minute, Vendor: more}},
			From:    41 * time.Minute, Until: 71 * time.Minute,
		}
		if used := float64(Run(s, seed).Served) / 20 / 1800; used < 0.7 {
			t.Errorf("seed %d: of a limit that rose to 20/s %.2f is used", seed, used)
		}
	}
}

// Others that take half of a bucket and stop can make its level jump and stay, as a window's does.
// But a window serves no more than it holds: no call waits for its end.
func TestBucketThatOthersLeaveIsNoWindow(t *testing.T) {
	t.Parallel()
	for _, row := range Table() {
		if row.Name != "strangers half, X-RateLimit, leave" {
			continue
		}
		for _, seed := range []uint64{54, 70, 79} {
			s := row.Play(seed)
			if m := row.Gate.Misses(s); len(m) > 0 {
				t.Errorf("seed %d misses %v: %+v", seed, m, s)
			}
		}
		return
	}
	t.Error("the row is not in the table")
}
