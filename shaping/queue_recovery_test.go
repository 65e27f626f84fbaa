package shaping_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// limitsOf returns the limit of every algorithm at one rate.
func limitsOf(permits int, per time.Duration) []throttle.Limit {
	first := throttle.FixedWindow(permits, per).Aligned(throttle.AlignFirstUse)
	return []throttle.Limit{
		throttle.TokenBucket(permits, per, 10), throttle.GCRA(permits, per, 20), throttle.LeakyBucket(permits, per),
		throttle.FixedWindow(permits, per), first, throttle.SlidingLog(permits, per), throttle.SlidingWindow(permits, per),
	}
}

// recoverySets returns sets of two and three limits over every algorithm, all of which allow 50
// calls a second while a day's 20,000 last.
func recoverySets() [][]throttle.Limit {
	second, minute, day := limitsOf(50, time.Second), limitsOf(3000, time.Minute), limitsOf(20_000, 24*time.Hour)[3:]
	var sets [][]throttle.Limit
	for i, s := range second {
		for k, m := range minute {
			sets = append(sets, []throttle.Limit{s, m}, []throttle.Limit{s, m, day[(i+k)%len(day)]})
		}
		for _, d := range day {
			sets = append(sets, []throttle.Limit{s, d}, []throttle.Limit{minute[i], d})
		}
	}
	return sets
}

// A recovery is an endless line over one queue, and its departures.
type recovery struct {
	queue *shaping.Queue
	left  atomic.Int64
	all   sync.WaitGroup
	stop  context.CancelFunc
}

// begin starts n callers that come again as soon as they have left.
func begin(q *shaping.Queue, callers int) *recovery {
	return beginIn(q, callers, func(ctx context.Context) context.Context { return ctx })
}

// beginIn is begin with callers in another context, derived from the one that ends.
func beginIn(q *shaping.Queue, callers int, in func(context.Context) context.Context) *recovery {
	ctx, cancel := context.WithCancel(context.Background())
	r := &recovery{queue: q, stop: cancel}
	ctx = in(ctx)
	for range callers {
		r.all.Go(func() {
			for q.Wait(ctx) == nil {
				r.left.Add(1)
			}
		})
	}
	return r
}

// during returns the departures in a time from now on.
func (r *recovery) during(d time.Duration) int64 {
	before := r.left.Load()
	time.Sleep(d)
	return r.left.Load() - before
}

func (r *recovery) end() {
	r.stop()
	r.all.Wait()
}

// A paused line is back at its rate ten seconds after the pause.
func TestPausedLineIsBackAtItsRate(t *testing.T) {
	for i, limits := range recoverySets() {
		if i%9 > 0 && testing.Short() {
			continue // to the race detector they are the same
		}
		for _, pause := range []time.Duration{2 * time.Second, 200 * time.Millisecond} {
			recovers(t, pause, limits)
		}
	}
}

func recovers(t *testing.T, pause time.Duration, limits []throttle.Limit) {
	t.Helper()
	t.Run(fmt.Sprint(limits, " paused ", pause), func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			r := begin(newQueue(t, limits...), 8)
			time.Sleep(50*time.Second + time.Millisecond)
			r.queue.Pause(pause)
			time.Sleep(pause + 10*time.Second)
			whole := time.Minute
			if limits[0].Per == time.Second {
				whole /= 3 // no window is spent ahead
			}
			if n, least := r.during(whole), int64(45*whole.Seconds()); n < least {
				t.Errorf("%v: %d left in %v, ten seconds after a pause of %v, want at least %d", limits, n, whole, pause, least)
			}
			r.end()
		})
	})
}

func TestRecoverySetsCoverEveryAlgorithm(t *testing.T) {
	seen := make(map[string]bool)
	for _, limits := range recoverySets() {
		for _, l := range limits {
			seen[fmt.Sprint(l.Algorithm, l.Per)] = true
		}
	}
	if len(seen) != 6+6+3 {
		t.Errorf("%d kinds of limits, want those of a second, a minute and a day", len(seen))
	}
}
