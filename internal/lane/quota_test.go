package lane

import (
	"testing"
	"time"

	"github.com/weirgo/weir/internal/learn"
	"github.com/weirgo/weir/throttle"
)

// Calls overtake each other, and answers of a window that has ended come late: neither
// makes more of a quota than is left.
func TestQuotaIsWhatTheFewestLeftSay(t *testing.T) {
	start := throttle.InstantOf(time.Unix(1_700_000_000, 0))
	type reading struct {
		at, reset time.Duration
		left      float64
	}
	tests := []struct {
		name     string
		readings []reading
		flying   int
		at       time.Duration
		want     int
	}{
		{"the fewest is left", []reading{{0, time.Minute, 7}, {0, time.Minute, 9}}, 2, time.Second, 5},
		{"a new window is whole", []reading{{0, time.Minute, 0}}, 2, 61 * time.Second, 8},
		{"of which its answers tell", []reading{{0, time.Minute, 0}, {61 * time.Second, 59 * time.Second, 6}}, 2, 62 * time.Second, 4},
		{"and late answers do not", []reading{{0, time.Minute, 0}, {59 * time.Second, time.Second, 0}, {61 * time.Second, time.Second, 0}}, 0, 62 * time.Second, 10},
		{"a window that began a second early", []reading{{0, time.Minute, 0}, {59 * time.Second, time.Minute, 6}}, 0, 59 * time.Second, 6},
	}
	for _, test := range tests {
		q := new(quotas)
		for id := range test.flying {
			q.board(start.Add(test.at), uint64(id+1))
		}
		for _, r := range test.readings {
			now := start.Add(r.at)
			q.free(now)
			q.read(now, []learn.Quota{{Limit: 10, Remaining: r.left, Reset: r.reset, HasLimit: true, HasRemaining: true, HasReset: true}})
		}
		if got := q.free(start.Add(test.at)); got != test.want {
			t.Errorf("%s: %d may depart, want %d", test.name, got, test.want)
		}
	}
}
