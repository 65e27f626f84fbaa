package distributed_test

import (
	"math"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/weirgo/weir/throttle"
)

// spread is how much later one replica dates a permit than another. The reply's way over the
// loopback interface takes well below a millisecond. A process that shares two processors may be
// suspended while it reads one.
const spread = 10 * time.Millisecond

// tick is how far rounding may shift Redis's permits, whose instants are exact.
const tick = 10 * time.Microsecond

// judge ends the fleet and judges all departures: as the vendor saw them, and by the exact dates
// from Redis.
func (f *fleet) judge(spells ...spell) {
	f.t.Helper()
	f.stop()
	f.verdict(spells...)
	f.t.Logf("%d permits void, %d unknown", f.void, f.unknown)
}

// verdict judges the departures so far.
func (f *fleet) verdict(spells ...spell) {
	f.t.Helper()
	if stray := f.journal.stray(spells); stray > 0 {
		f.t.Logf("%d departures under the policy for a loss though no fault was made", stray)
	}
	at := f.journal.instants(func(d departure) bool { return !d.Local || d.foreseen(spells) })
	x := f.x()
	if late, most := f.journal.most(departure.late, shared), throttle.Tolerance(f.plan.Limits...); late > most {
		f.t.Errorf("a departure %v after the instant of its permit, want at most the tolerance of %v", late, most)
	}
	for _, l := range f.plan.Limits {
		judgeLimit(f.t, l, at, x, spells...)
	}
	if !f.plan.Skewed { // Redis uses this machine's clock
		f.judgePromises(spells)
	}
	f.judgeLocal()
	f.t.Logf("X is %v", x)
}

// x returns the permit tolerance plus the spread, or a larger spread measured on this machine. It
// can be measured because Redis and the replicas share a clock.
func (f *fleet) x() time.Duration {
	sameClock := func(d departure) bool { return !d.Local && d.behind() < patience } // granted well before a step
	return throttle.Tolerance(f.plan.Limits...) + max(spread, f.journal.most(departure.behind, sameClock))
}

// judgePromises judges when permits were due by the clock of Redis, however late the machine let
// calls depart. A bucket keeps its bound exactly, and window counts hold within the tolerance.
func (f *fleet) judgePromises(spells []spell) {
	f.t.Helper()
	due := f.journal.dues(shared)
	spells = slices.DeleteFunc(slices.Clone(spells), func(s spell) bool { return s.below > 0 })
	late := throttle.Tolerance(f.plan.Limits...)
	counted := make([]throttle.Instant, len(due))
	for i, at := range due {
		counted[i] = at.Add(late)
	}
	f.t.Log("as promised:")
	for _, l := range f.plan.Limits {
		if counts(l) {
			judgeLimit(f.t, l, counted, late+tick, spells...)
		} else {
			judgeLimit(f.t, l, due, tick, spells...)
		}
	}
}

// counts reports whether the limit counts in windows.
func counts(l throttle.Limit) bool {
	switch l.Algorithm {
	case throttle.AlgorithmFixedWindow, throttle.AlgorithmSlidingLog, throttle.AlgorithmSlidingWindow:
		return true
	default:
		return false
	}
}

// judgeLocal judges what each replica granted alone: never more than its share, whatever the
// machine did to its connection. Once the replicas know of each other, the share divides by their
// number, until Redis has forgotten them.
func (f *fleet) judgeLocal() {
	f.t.Helper()
	if len(f.processes) > 0 || f.forgot {
		return
	}
	for i := range f.members {
		local := func(d departure) bool { return d.Local && d.Replica == i && d.At > f.known }
		if len(f.plan.Limits) == 1 {
			bound{rate: f.lossRate(), burst: float64(f.lossBurst()), x: f.journal.most(departure.late, local) + spread}.judge(f.t, "local share of replica "+strconv.Itoa(i), f.journal.instants(local))
		}
	}
}

// judgeDark judges a time in which all replicas were cut off: s R W + N replaces the other bounds.
// A permit spent before that time does not count, however late its call departed.
func (f *fleet) judgeDark(from, to throttle.Instant) {
	f.t.Helper()
	in := func(d departure) bool { return from <= d.Charged && d.At <= to }
	n := f.replicas()
	bound{rate: float64(n) * f.lossRate(), burst: float64(n * f.lossBurst()), x: f.journal.most(departure.late, in) + spread}.judge(f.t, "all cut off", f.journal.instants(in))
}

// judgeLimit judges by the promise of the limit's algorithm, plus extra permits anywhere. Windows
// and logs count a departure at the instant of its permit, at most x before it.
func judgeLimit(t *testing.T, l throttle.Limit, at []throttle.Instant, x time.Duration, spells ...spell) {
	t.Helper()
	more := 0
	for _, s := range spells {
		more += int(math.Ceil(s.more + max(0, s.rate)*s.to.Sub(s.from).Seconds()))
	}
	switch l.Algorithm {
	case throttle.AlgorithmFixedWindow:
		beyond, most := homeless(l, at, x)
		t.Logf("%v: %d of them, at most %d in a window, and %d/%d beyond", l, len(at), most, beyond, more)
		if beyond > more {
			t.Errorf("%v: %d departures beyond what windows hold, want at most %d", l, beyond, more)
		}
	case throttle.AlgorithmSlidingLog, throttle.AlgorithmSlidingWindow:
		allowed := l.Permits + more
		if l.Algorithm == throttle.AlgorithmSlidingWindow {
			allowed += l.Permits // for adverse traffic; the algorithm's own tests know better
		}
		if x >= l.Per {
			t.Logf("%v: this machine is too slow to tell, by %v", l, x)
			return
		}
		most := densest(at, l.Per-x)
		t.Logf("%v: %d of them, at most %d/%d in any %v", l, len(at), most, allowed, l.Per-x)
		if most > allowed {
			t.Errorf("%v: %d departures in some %v, want at most %d", l, most, l.Per-x, allowed)
		}
	default:
		bound{rateOf(l), float64(burstOf(l)), x, spells}.judge(t, l.String(), at)
	}
}

// rateOf returns the permits per second of a limit.
func rateOf(l throttle.Limit) float64 { return float64(l.Permits) / l.Per.Seconds() }

// burstOf returns the most permits at once of a limit.
func burstOf(l throttle.Limit) int {
	switch l.Algorithm {
	case throttle.AlgorithmTokenBucket, throttle.AlgorithmGCRA:
		return max(l.Burst, 1)
	case throttle.AlgorithmLeakyBucket:
		return 1
	default:
		return l.Permits
	}
}
