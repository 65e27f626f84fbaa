package distributed_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/weirgo/weir/distributed"
	"github.com/weirgo/weir/throttle"
)

// jain is Jain's index of fairness: 1 if all shares are equal, 1/n if one has everything. See R.
// Jain, D. Chiu and W. Hawe, DEC-TR-301, 1984.
func jain(shares []float64) float64 {
	sum, squares := 0.0, 0.0
	for _, s := range shares {
		sum += s
		squares += s * s
	}
	return sum * sum / (float64(len(shares)) * squares)
}

// One replica demands forty times its share, and the other seven a little more than theirs: each
// gets its share.
func TestAGreedyReplicaGetsItsShare(t *testing.T) {
	t.Parallel()
	f := newUnequalFleet(t, 1.4)
	f.pass(time.Second) // until the others have lines
	// The index is 0.99 or more on an idle machine; shares by demand would give 0.17. A busy
	// machine delays replicas, so they get six windows.
	var shares []float64
	for range 6 {
		from := now()
		f.pass(4 * time.Second)
		shares = f.shares(from, now())
		t.Logf("departures %v, Jain %.4f", shares, jain(shares))
		if jain(shares) >= 0.5 {
			break
		}
	}
	if j := jain(shares); j < 0.5 {
		t.Errorf("Jain's index of %v is %.4f, want at least 0.98 on an idle machine", shares, j)
	}
	f.judge()
}

// The other seven demand less than their share, and get all of it within a few turns.
func TestModestReplicasWaitAFewTurns(t *testing.T) {
	t.Parallel()
	f := newUnequalFleet(t, 0.6)
	from := now()
	f.pass(4 * time.Second)
	shares := f.shares(from, now())
	waits := f.waits(from, func(d departure) bool { return d.Replica > 0 })
	// In one turn of the line each replica gets a run, at most an eighth of the horizon's permits.
	turn := max(distributed.DefaultHorizon, 8*time.Second/rate)
	var lines []int
	for _, r := range f.members[1:] {
		lines = append(lines, r.queue.State().Waiting)
	}
	t.Logf("departures %v; waits of the seven: %s; a turn is %v; %v wait at the end", shares, quantiles(waits), turn, lines)
	greedy := f.waits(from, func(d departure) bool { return d.Replica == 0 })
	if mine, its := waits[len(waits)/2], greedy[len(greedy)/2]; mine >= its {
		t.Errorf("half of them wait %v, half of the greedy one's callers %v", mine, its)
	}
	f.judge()
}

// newUnequalFleet starts eight replicas: the first demands forty times its share, the others the
// given fraction of theirs.
func newUnequalFleet(t *testing.T, others float64) *fleet {
	t.Helper()
	c := patiently()
	c.Patience, c.Arrivals = time.Minute, 1
	f := newFleet(t, plan{config: c})
	for i := range 8 {
		c := f.way()
		if c.Arrivals = others * rate / 8; i == 0 {
			c.Arrivals = 40 * rate / 8
		}
		f.join(c)
	}
	f.steady()
	return f
}

// shares returns the departures of each replica in a window.
func (f *fleet) shares(from, to throttle.Instant) []float64 {
	all := make([]float64, len(f.members))
	for _, d := range f.journal.all() {
		if from <= d.At && d.At <= to {
			all[d.Replica]++
		}
	}
	return all
}

// waits returns the waits of departures after an instant, the shortest first.
func (f *fleet) waits(from throttle.Instant, of func(departure) bool) []time.Duration {
	var all []time.Duration
	for _, d := range f.journal.all() {
		if d.At >= from && of(d) {
			all = append(all, d.Waited)
		}
	}
	slices.Sort(all)
	return all
}

func quantiles(sorted []time.Duration) string {
	if len(sorted) == 0 {
		return "none"
	}
	return fmt.Sprintf("p50 %v, p99 %v, max %v of %d", sorted[len(sorted)/2], sorted[len(sorted)*99/100], sorted[len(sorted)-1], len(sorted))
}
