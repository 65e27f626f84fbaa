package sim

import (
	"cmp"
	"testing"
	"time"
)

// Each of these vendors once left a lane with almost nothing of the possible calls.
func TestNobodyIsStuck(t *testing.T) {
	t.Parallel()
	ms := time.Millisecond
	rule := func(k Kind, n int, per time.Duration) Rule { return Rule{Kind: k, Permits: n, Per: per} }
	tests := []struct {
		name string
		run  Scenario
		rate float64
		used float64 // at least; zero: Stuck
	}{
		{
			"a reported bucket shrinks to a burst of one",
			Scenario{
				Vendor: vendor(bucket(3050, time.Minute, 3)), Style: Policy, Service: 3 * ms, Exponential: true, Way: 1100 * time.Microsecond, Jitter: 0.8, Workers: 14,
			}.over(72*time.Second, 102*time.Second).changing(becomes(42*time.Second, bucket(1977, time.Minute, 1))),
			33, 0,
		},
		{
			"many calls in flight when the search for a rate is refused",
			Scenario{
				Vendor: vendor(rule(Log, 13, time.Second), rule(Log, 984, time.Minute)), Style: Delta, Service: 2 * ms, Way: ms, Jitter: 0.6, Workers: 103,
			}.over(7*time.Minute, 10*time.Minute).changing(becomes(4*time.Minute, rule(Log, 49, time.Second), rule(Log, 4294, time.Minute))),
			49, 0,
		},
		{
			"a bucket of one that refused probes empty further",
			Scenario{
				Vendor: Vendor{Rules: []Rule{bucket(51, time.Minute, 1)}, RefusalsCount: true}, Service: 39 * ms, Way: 1500 * time.Microsecond, Jitter: 0.2, Workers: 8,
			}.over(2*time.Minute, 4*time.Minute),
			0.85, 0,
		},
		{
			"a window that counts the last one on, twice running",
			Scenario{
				Vendor: vendor(rule(Sliding, 302, 30*time.Second), rule(FirstUse, 86, time.Second)), Style: LiarHigh, Service: 92 * ms, Way: 36 * ms, Jitter: 0.2, Workers: 67,
			}.over(90*time.Second, 3*time.Minute),
			10, 0,
		},
		{
			"two windows, of which the longer falls",
			Scenario{
				Vendor: vendor(rule(Log, 22, time.Second), rule(Sliding, 651, 30*time.Second)), Style: RetryMillis, Service: 5 * ms, Way: 300 * time.Microsecond, Jitter: 0.8, Workers: 43,
			}.over(4*time.Minute, 6*time.Minute).changing(becomes(142*time.Second, rule(Log, 16, time.Second), rule(Sliding, 198, 30*time.Second))),
			6.6, 0,
		},
		{
			"calls in flight fall to one, and overtake each other",
			Scenario{
				Vendor: vendor(rule(Flight, 3, 0)), Style: Gateway, Service: 93 * ms, Exponential: true, Way: 6400 * time.Microsecond, Jitter: 0.5, Workers: 15,
			}.over(90*time.Second, 2*time.Minute).changing(becomes(time.Minute, rule(Flight, 1, 0))),
			9.3, 0.2, // a bound of one reports nothing, and is learned as a rate
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for seed := range uint64(5) {
				d := Draw{Seed: seed + 1, Run: tt.run, Rate: tt.rate}
				if used, _ := d.Play(); used < cmp.Or(tt.used, Stuck) {
					t.Errorf("seed %d: served %.3f of the possible calls", d.Seed, used)
				}
			}
		})
	}
}

// A vendor reports garbage, and then correct values: within one of its windows the lane is at its
// full rate.
func TestGarbageChangesNothingForLongerThanAWindow(t *testing.T) {
	t.Parallel()
	truth := Delta
	for _, rule := range []Rule{bucket(200, time.Second, 20), {Kind: Fixed, Permits: 600, Per: time.Minute}, {Kind: Log, Permits: 300, Per: 30 * time.Second}} {
		for seed := range max(1, uint64(5/scale)) {
			res := Run(Scenario{
				Vendor: vendor(rule), Style: Garbage, Service: 5 * time.Millisecond, Way: time.Millisecond, Jitter: 0.3, Workers: 64,
				Changes: []Change{{At: 2 * time.Minute, Style: &truth}},
				From:    2*time.Minute + rule.Per, Until: 5*time.Minute + rule.Per,
			}, seed+1)
			if used := float64(res.Served) / (rule.PerSecond() * 180); used < 0.95 || res.Early > 0 {
				t.Errorf("%+v, seed %d: served %.3f of the possible calls, %d before a reported time", rule, seed+1, used, res.Early)
			}
		}
	}
}

// becomes is a change of the rules.
func becomes(at time.Duration, rules ...Rule) Change {
	v := vendor(rules...)
	return Change{At: at, Vendor: &v}
}
