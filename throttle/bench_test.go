package throttle_test

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirgo/weir/throttle"
)

// benchmarks are limiters that always have a permit at hand, so that Take spends.
var benchmarks = []struct {
	name   string
	limits []throttle.Limit
}{
	{"none", nil},
	{"bucket", []throttle.Limit{throttle.TokenBucket(1_000_000_000, time.Second, 1000)}},
	{"bucket with a fraction", []throttle.Limit{throttle.TokenBucket(777_777_777, time.Second, 1_000_000)}},
	{"leaky", []throttle.Limit{throttle.LeakyBucket(1_000_000_000, time.Second)}},
	{"fixed", []throttle.Limit{throttle.FixedWindow(1<<31-1, time.Second)}},
	{"log", []throttle.Limit{throttle.SlidingLog(1000, time.Microsecond)}},
	{"sliding", []throttle.Limit{throttle.SlidingWindow(1<<31-1, time.Second)}},
	{"two buckets", []throttle.Limit{throttle.TokenBucket(1_000_000_000, time.Second, 1000), throttle.TokenBucket(1_000_000_000, 2*time.Second, 1_000_000_000)}},
	{"bucket and window", []throttle.Limit{throttle.TokenBucket(1_000_000_000, time.Second, 1000), throttle.FixedWindow(1<<31-1, time.Second)}},
	{"refused", []throttle.Limit{throttle.TokenBucket(7_777, 24*time.Hour, 1)}},
}

// BenchmarkTake is the decision with the reading of the clock; floor is the
// clock and one compare-and-swap.
func BenchmarkTake(b *testing.B) {
	base := time.Now()
	start := throttle.InstantOf(base)
	b.Run("floor", func(b *testing.B) {
		var word atomic.Int64
		for b.Loop() {
			now := int64(start.Add(time.Since(base)))
			word.CompareAndSwap(word.Load(), now)
		}
	})
	for _, c := range benchmarks {
		l, err := throttle.Local{}.Limiter("", c.limits...)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(c.name+"/1", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				now := start.Add(time.Since(base))
				_, _ = l.Take(now, throttle.Request{N: 1, Since: now})
			}
		})
		b.Run(c.name+"/64", func(b *testing.B) {
			b.ReportAllocs()
			b.SetParallelism(max(64/runtime.GOMAXPROCS(0), 1))
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					now := start.Add(time.Since(base))
					_, _ = l.Take(now, throttle.Request{N: 1, Since: now})
				}
			})
		})
	}
}

// BenchmarkFullLog asks a log of a million permits, each spent at a different instant.
func BenchmarkFullLog(b *testing.B) {
	const permits = 1_000_000
	limit := throttle.SlidingLog(permits, time.Minute)
	l := throttle.NewAt(limit)
	now := epoch
	fill := func() {
		for at := now; at <= now; now += 1000 {
			granted, _ := l.Take(now, throttle.Request{N: 1})
			at = granted.At
		}
	}
	fill()
	b.Run("state", func(b *testing.B) {
		for b.Loop() {
			l.State(now)
		}
	})
	b.Run("settle", func(b *testing.B) {
		for b.Loop() {
			now += 1000
			l.Settle(now, throttle.Grant{At: now.Add(-500 * time.Millisecond)}, throttle.Request{N: 1}, throttle.Request{N: 2})
			l.Settle(now, throttle.Grant{At: now.Add(-500 * time.Millisecond)}, throttle.Request{N: 2}, throttle.Request{N: 1})
		}
	})
	b.Run("tune", func(b *testing.B) {
		for b.Loop() {
			if err := l.Tune(now, limit); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func TestTakeAllocatesNothing(t *testing.T) {
	for _, c := range benchmarks {
		l := throttle.NewAt(c.limits...)
		now := epoch
		_, _ = l.Take(now, throttle.Request{N: 1})
		if n := testing.AllocsPerRun(100, func() {
			now += 1000
			_, _ = l.Take(now, throttle.Request{N: 1, Since: now})
		}); n != 0 && c.name != "log" { // whose room grows
			t.Errorf("%s: %v allocations in a Take", c.name, n)
		}
	}
}
