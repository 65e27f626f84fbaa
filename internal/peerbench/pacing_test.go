package peerbench

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// BenchmarkPacing lets workers wait for permits in a loop, as fast as they come, and compares the
// instants at which they depart with the schedule. It reports the rate reached as a share of the
// limit. It also reports how late departures were against the earliest schedule that all of them
// meet: for a contender that falls behind, lateness adds up. It also reports the CPU time that the
// process took, as a share of one CPU; that needs /proc.
func BenchmarkPacing(b *testing.B) {
	for _, load := range []struct{ rate, workers int }{{100, 64}, {1_000, 1}, {1_000, 64}, {10_000, 1}, {10_000, 64}} {
		for _, who := range []string{"weir", "weir-precise", "xtime", "uber", "failsafe"} {
			b.Run(fmt.Sprintf("rate=%d/workers=%d/who=%s", load.rate, load.workers, who), func(b *testing.B) {
				decide := evenly(who, load.rate, time.Second)
				used := ticks()
				at := departures(b, decide, b.N+1, load.workers)
				used = ticks() - used
				paced(b, at, time.Second/time.Duration(load.rate))
				b.ReportMetric(float64(used)/at[b.N].Seconds(), "%CPU")
			})
		}
	}
}

// departures returns when the callers departed, in order.
func departures(b *testing.B, decide decision, n, workers int) []time.Duration {
	ctx := deadline(b)
	at := make([]time.Duration, n)
	var calls atomic.Int64
	var all sync.WaitGroup
	b.ResetTimer()
	started := time.Now()
	for range workers {
		all.Go(func() {
			for i := calls.Add(1) - 1; i < int64(n); i = calls.Add(1) - 1 {
				if err := decide(ctx); err != nil {
					b.Error(err)
					return
				}
				at[i] = time.Since(started)
			}
		})
	}
	all.Wait()
	b.StopTimer()
	slices.Sort(at)
	return at
}

// paced reports the figures of departures.
func paced(b *testing.B, at []time.Duration, interval time.Duration) {
	n := len(at) - 1
	late := lateness(at, interval)
	b.ReportMetric(100*float64(n)*float64(interval)/float64(at[n]-at[0]), "%rate")
	b.ReportMetric(micros(late[n/2]), "late-p50-us")
	b.ReportMetric(micros(late[n*99/100]), "late-p99-us")
	b.ReportMetric(micros(late[n]), "late-max-us")
}

// lateness returns in ascending order how far departures are behind the earliest schedule with no
// departure ahead of it.
func lateness(at []time.Duration, interval time.Duration) []time.Duration {
	late := make([]time.Duration, len(at))
	for i, t := range at {
		late[i] = t - time.Duration(i)*interval
	}
	slices.Sort(late)
	first := late[0]
	for i := range late {
		late[i] -= first
	}
	return late
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

func TestLatenessAgainstSchedule(t *testing.T) {
	const ms = time.Millisecond
	at := []time.Duration{5 * ms, 6 * ms, 9 * ms, 8 * ms, 10 * ms}
	slices.Sort(at)
	want := []time.Duration{0, 0, ms, ms, ms}
	if got := lateness(at, ms); !slices.Equal(got, want) {
		t.Errorf("lateness(%v) = %v, want %v", at, got, want)
	}
}
