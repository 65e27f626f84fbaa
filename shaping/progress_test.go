package shaping_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// A bubble's clock stands still between two readings, so a paused line is also tested in real time:
// within three seconds it departs at half of its rate, or in one of the next seconds on a machine
// that stops.
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
	best, slowest := make([]int64, len(lines)), int64(0)
	for second := 0; second < 6 && slowest < 25; second++ {
		before := make([]int64, len(lines))
		for i, r := range lines {
			before[i] = r.left.Load()
		}
		time.Sleep(time.Second)
		for i, r := range lines {
			best[i] = max(best[i], r.left.Load()-before[i])
		}
		slowest = slices.Min(best)
	}
	for i, r := range lines {
		if best[i] < 25 {
			t.Errorf("%v: %d left in a second, two seconds after a pause of %v, want at least 25", sets[i/len(pauses)], best[i], pauses[i%len(pauses)])
		}
		r.end()
	}
}

// paused returns a line at its rate that was just paused for d.
func paused(q *shaping.Queue, pause time.Duration) *recovery {
	r := begin(q, 8)
	time.Sleep(50 * time.Millisecond)
	q.Pause(pause)
	return r
}

// A line with precise pacing departs at its rate and never early, also after a pause and a change
// of its limit. Cancelled callers leave at once.
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

// Callers that all run too late for their own permits depart, and never faster than the rate. Two
// hundred take two seconds. A busy machine voids more permits, and has ten times as long: in a
// bubble TestCallersThatAlwaysWakeLateLeave requires half of the rate.
func TestLateCallersKeepTheirRateInRealTime(t *testing.T) {
	const rate, calls, tolerance = 100, 200, 20 * time.Millisecond
	for _, late := range []time.Duration{21 * time.Millisecond, 47 * time.Millisecond} {
		q := newQueue(t, throttle.LeakyBucket(rate, time.Second))
		start := time.Now()
		r := beginIn(q, 16, func(ctx context.Context) context.Context { return shaping.Sleeper(ctx, q, late) })
		for r.left.Load() < calls && time.Since(start) < 20*time.Second {
			time.Sleep(10 * time.Millisecond)
		}
		left := r.left.Load()
		took := time.Since(start)
		r.end()
		if most := 1 + int64((took+tolerance).Seconds()*rate); left < calls || left > most {
			t.Errorf("late by %v, %d left within %v, want at least %d and at most %d", late, left, took, calls, most)
		}
		if q.State().Stale == 0 {
			t.Errorf("late by %v, no permit was void: no test", late)
		}
	}
}
