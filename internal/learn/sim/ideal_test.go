package sim

import (
	"math"
	"testing"
	"time"
)

// The ideal is known by arithmetic.
func TestKnownServesAllThatIsLeft(t *testing.T) {
	t.Parallel()
	const start = 1_700_000_005_000_000_000 // in the middle of a window of ten seconds
	ms := time.Millisecond
	rule := func(k Kind) Rule { return Rule{Kind: k, Permits: 100, Per: 10 * time.Second} }
	tests := []struct {
		name  string
		run   Scenario
		until time.Duration // zero: no end
		want  int
		took  time.Duration
	}{
		{"a bucket is drained: 20 at once, and 1,980 at 200/s", Scenario{Vendor: vendor(bucket(200, time.Second, 20)), Service: 5 * ms, Way: ms, Calls: 2000}, 0, 2000, 9907 * ms},
		{"five windows after the first use", Scenario{Vendor: vendor(rule(FirstUse)), Way: ms, Calls: 501}, 0, 501, 50*time.Second + 2*ms},
		{"a log", Scenario{Vendor: vendor(rule(Log)), Way: ms, Calls: 501}, 0, 501, 50*time.Second + 2*ms},
		{"five windows, the first half over", Scenario{Vendor: vendor(rule(Fixed)), Service: ms, Calls: 501}, 0, 501, 45*time.Second + ms},
		{"two workers of 100 ms each", Scenario{Vendor: vendor(bucket(200, time.Second, 20)), Service: 98 * ms, Way: ms, Workers: 2}, time.Second, 20, time.Second},
		{"the tighter of two rules", Scenario{Vendor: vendor(bucket(20, time.Second, 1), rule(FirstUse)), Service: ms}, 10*time.Second - ms, 100, 4951 * ms},
	}
	for _, tt := range tests {
		until := int64(math.MaxInt64)
		if tt.until > 0 {
			until = start + int64(tt.until)
		}
		got, took := tt.run.known(newDoor(tt.run.Vendor, start), start, until)
		if got != tt.want || (took-tt.took).Abs() > time.Microsecond {
			t.Errorf("%s: %d served in %v, want %d in %v", tt.name, got, took, tt.want, tt.took)
		}
	}
}
