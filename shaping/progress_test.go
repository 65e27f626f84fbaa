package shaping_test

import (
	"testing"
	"time"

	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// A bubble's clock stands still between two readings, so a line that was paused
// also comes back in real time: within three seconds, half of its rate leaves.
func TestPausedLineIsBackAtItsRateInRealTime(t *testing.T) {
	second, minute, day := throttle.TokenBucket(50, time.Second, 10), throttle.SlidingLog(3000, time.Minute), throttle.FixedWindow(20_000, 24*time.Hour)
	var lines []*recovery
	sets := [][]throttle.Limit{
		{second, day},
		{throttle.LeakyBucket(50, time.Second), day},
		{second, minute},
		{second, minute, day},
		{throttle.SlidingWindow(50, time.Second), minute, day},
	}
	pauses := []time.Duration{300 * time.Millisecond, time.Millisecond}
	for _, limits := range sets {
		for _, pause := range pauses {
			lines = append(lines, paused(newQueue(t, limits...), pause))
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
			t.Errorf("%v: %d left in a second, two seconds after a pause of %v, want at least 25", sets[i/len(pauses)], n, pauses[i%len(pauses)])
		}
		r.end()
	}
}

// paused returns a line at its rate that was paused just now, for so long.
func paused(q *shaping.Queue, pause time.Duration) *recovery {
	r := begin(q, 8)
	time.Sleep(50 * time.Millisecond)
	q.Pause(pause)
	return r
}

// A line with precise pacing departs at its rate, also after a pause and a change
// of its limit, never early, and cancelled callers go at once.
func TestPreciselyPacedLineKeepsItsRateInRealTime(t *testing.T) {
	q := newQueue(t, throttle.LeakyBucket(500, time.Second))
	q.PrecisePacing = true
	defer q.Close()
	start := time.Now()
	r := begin(q, 8)
	time.Sleep(200 * time.Millisecond)
	q.Pause(200 * time.Millisecond)
	paused := r.left.Load()
	if err := q.Tune(throttle.LeakyBucket(1000, time.Second)); err != nil {
		t.Fatal(err)
	}
	for until := time.Now().Add(5 * time.Second); r.left.Load()-paused < 500 && time.Now().Before(until); {
		time.Sleep(10 * time.Millisecond)
	}
	left := r.left.Load()
	took := time.Since(start)
	r.end()
	if late := left - paused; late < 500 {
		t.Errorf("%d left in five seconds after a pause, want at least 500 of 5000", late)
	}
	if most := int64(1000*took.Seconds()) + 11; left > most {
		t.Errorf("%d left within %v, want at most %d", left, took, most)
	}
}
