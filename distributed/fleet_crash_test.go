package distributed_test

import (
	"testing"
	"time"

	"github.com/weirgo/weir/throttle"
)

// Replicas are killed and restarted: their permits in hand are lost, and none is granted twice.
func TestKilledReplicasGrantNothingTwice(t *testing.T) {
	t.Parallel()
	testKilled(t, config{})
}

// The same with replicas that prefetch permits.
func TestKilledReplicasThatPrefetchGrantNothingTwice(t *testing.T) {
	t.Parallel()
	testKilled(t, config{
		Limits: []throttle.Limit{throttle.TokenBucket(1000, time.Second, 200)}, Callers: -1, Arrivals: 200, Prefetch: 50 * time.Millisecond,
	})
}

func testKilled(t *testing.T, c config) {
	t.Helper()
	f := newFleet(t, plan{processes: 4, config: c})
	f.steady()
	for range 4 {
		i := f.random.IntN(len(f.processes))
		f.processes[i].Kill()
		f.pass(time.Duration(f.random.Int64N(int64(moment))))
		f.processes[i].Restart()
	}
	f.pass(moment)
	f.judge()
}

// Whole replicas are stopped, and their permits in hand are stale when they continue.
func TestStoppedReplicasSpendNoStalePermits(t *testing.T) {
	t.Parallel()
	f := newFleet(t, plan{processes: 4})
	f.steady()
	for range 3 {
		i := f.random.IntN(len(f.processes))
		one, other := f.processes[i], f.processes[(i+1)%len(f.processes)]
		one.Stop()
		f.pass(time.Duration(f.random.Int64N(int64(moment))))
		other.Stop()
		f.pass(time.Duration(f.random.Int64N(int64(moment))))
		one.Continue()
		other.Continue()
		f.pass(moment / 2)
	}
	f.judge()
}

// A replica that runs a fifth of the time, in pieces, wastes little of the shared rate.
func TestFrozenReplicasWasteLittle(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name              string
		processes, frozen int
	}{
		{"one of four", 4, 1},
		{"all of four", 4, 4},
		{"one alone", 1, 1},
	} {
		if testing.Short() && test.name == "one of four" {
			continue // each process takes a part of a second under the race detector
		}
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, plan{processes: test.processes, config: config{
				Limits: []throttle.Limit{throttle.TokenBucket(100, time.Second, 20)},
			}})
			f.steady()
			var thaws []func()
			for _, p := range f.processes[:test.frozen] {
				thaws = append(thaws, p.Freeze(80*time.Millisecond, 100*time.Millisecond))
			}
			f.pass(moment)
			from := now()
			f.pass(3 * time.Second)
			to := now()
			got := float64(f.journal.count(from, to)) / to.Sub(from).Seconds()
			t.Logf("%.1f departures per second of 100, 95 and more on an idle machine", got)
			await(t, "a departure", func() bool { return f.journal.count(from, now()) > 0 })
			for _, thaw := range thaws {
				thaw()
			}
			f.judge()
		})
	}
}
