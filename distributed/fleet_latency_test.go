package distributed_test

import (
	"slices"
	"testing"
	"time"

	"github.com/weirgo/weir/distributed"
	"github.com/weirgo/weir/internal/redistest"
	"github.com/weirgo/weir/throttle"
)

// Callers who need not wait for the limit barely notice that Redis dies. Each waits for a reply
// until its deadline at most, and not at all once the loss is known.
func TestR1KilledRedisAddsLittleLatency(t *testing.T) {
	testLatency(t, (*redistest.Server).Kill, func(s *redistest.Server) { s.Restart() })
}

func TestR22StoppedRedisAddsItsDeadline(t *testing.T) {
	testLatency(t, (*redistest.Server).Stop, (*redistest.Server).Continue)
}

func testLatency(t *testing.T, fault, heal func(*redistest.Server)) {
	t.Helper()
	t.Parallel()
	server := redistest.Start(t)
	f := newFleet(t, plan{members: 1, config: config{
		Redis:  place{Addrs: []string{server.Addr()}},
		Limits: []throttle.Limit{throttle.TokenBucket(100_000, time.Second, 1000)},
		OnLoss: distributed.FailOpen, Callers: -1, Arrivals: 1000,
	}})
	f.steady()
	rounds := 1
	if long {
		rounds = 5
	}
	var before, during, open, back []time.Duration
	for range rounds {
		from := now()
		time.Sleep(moment)
		died := now()
		before = append(before, f.between(from, died)...)
		fault(server)
		time.Sleep(2 * moment)
		await(t, "a departure after its death", func() bool { return len(f.between(died, now())) > 0 })
		healed := now()
		during = append(during, f.between(died, healed)...)
		open = append(open, f.between(died.Add(moment), healed)...)
		heal(server)
		began := time.Now()
		await(t, "the store to be found", func() bool { return !f.states()[0].Lost })
		back = append(back, time.Since(began))
		time.Sleep(moment / 2)
	}
	for _, waits := range [][]time.Duration{before, during, open, back} {
		slices.Sort(waits)
	}
	t.Logf("before: %s", quantiles(before))
	t.Logf("after its death: %s", quantiles(during))
	t.Logf("%v after it: %s", moment, quantiles(open))
	t.Logf("shared again: %s", quantiles(back))
	if most := during[len(during)-1]; most > patience {
		t.Errorf("a caller waited %v, want the deadline of %v at most, on an idle machine", most, distributed.DefaultDeadline)
	}
	if most := back[len(back)-1]; most > patience {
		t.Errorf("shared again after %v, want 2s, on an idle machine", most)
	}
}

// between returns the waits of calls that arrived in a window.
func (f *fleet) between(from, to throttle.Instant) []time.Duration {
	var all []time.Duration
	for _, d := range f.journal.all() {
		if came := d.At.Add(-d.Waited); from <= came && came < to {
			all = append(all, d.Waited)
		}
	}
	return all
}
