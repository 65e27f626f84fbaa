package shaping_test

import (
	"testing"
	"time"

	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// A bubble's clock stands still between two readings, so a line that was refused
// also comes back in real time: within three seconds, half of its rate leaves.
func TestRefusedLineIsBackAtItsRateInRealTime(t *testing.T) {
	second, minute, day := throttle.TokenBucket(50, time.Second, 10), throttle.SlidingLog(3000, time.Minute), throttle.FixedWindow(20_000, 24*time.Hour)
	var lines []*recovery
	sets := [][]throttle.Limit{
		{second, day},
		{throttle.LeakyBucket(50, time.Second), day},
		{second, minute},
		{second, minute, day},
		{throttle.SlidingWindow(50, time.Second), minute, day},
	}
	tolds := []time.Duration{300 * time.Millisecond, 0}
	for _, limits := range sets {
		for _, told := range tolds {
			lines = append(lines, refused(newQueue(t, limits...), told))
		}
	}
	time.Sleep(300*time.Millisecond + 2*time.Second)
	before := make([]int64, len(lines))
	for i, r := range lines {
		before[i] = r.left.Load()
	}
	time.Sleep(time.Second)
	for i, r := range lines {
		if n := r.left.Load() - before[i]; n < 25 {
			t.Errorf("%v: %d left in a second, two seconds after a refusal for %v, want at least 25", sets[i/len(tolds)], n, tolds[i%len(tolds)])
		}
		r.end()
	}
}

// refused returns a line at its rate that was refused just now, for so long.
func refused(q *shaping.Queue, told time.Duration) *recovery {
	r := begin(q, 8)
	time.Sleep(50 * time.Millisecond)
	refusal := throttle.Fact{Departed: q.Now(), Refused: true}
	if told > 0 {
		refusal.Until = q.Now().Add(told)
	}
	q.Reconcile(refusal)
	return r
}
