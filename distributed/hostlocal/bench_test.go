package hostlocal_test

import (
	"testing"
	"time"

	"github.com/weirgo/weir/distributed/hostlocal"
	"github.com/weirgo/weir/throttle"
)

// BenchmarkDecision is a decision of one process alone, and of two in turn.
func BenchmarkDecision(b *testing.B) {
	for _, test := range []struct {
		name      string
		processes int
	}{{"alone", 1}, {"in turn", 2}} {
		b.Run(test.name, func(b *testing.B) {
			dir := private(b)
			limiters := make([]throttle.Limiter, test.processes)
			for i := range limiters {
				store := &hostlocal.Store{Dir: dir}
				defer store.Close()
				l, err := store.Limiter("bench", throttle.TokenBucket(1_000_000_000, time.Second, 1_000_000))
				if err != nil {
					b.Fatal(err)
				}
				limiters[i] = l
			}
			i := 0
			for b.Loop() {
				i++
				now := throttle.InstantOf(time.Now())
				if g, err := limiters[i%len(limiters)].Take(now, throttle.Request{N: 1}); err != nil || g.At > now {
					b.Fatal(g, err)
				}
			}
		})
	}
}
