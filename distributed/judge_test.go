package distributed_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirgo/weir/throttle"
)

// spread is how much later than its permit's instant something departs at one
// replica than at another, beyond the permit tolerance: by the way of a reply
// from Redis, well below a millisecond on the loopback interface, and by how
// long a process that shares two processors does not run while it reads one.
const spread = 10 * time.Millisecond

// A spell is a time in which the vendor may see more than without a fault, or
// less: the rate changes by so many permits per second, and each window that
// touches the spell may hold so many more. Replicas below a number are cut off.
type spell struct {
	from, to throttle.Instant
	rate     float64
	more     float64
	below    int
}

// A bound is what the vendor may see in any window of departures: the rate
// times the window and X, and the burst, and what spells add.
type bound struct {
	rate, burst float64
	x           time.Duration // permit tolerance and spread
	spells      []spell
}

// allowed returns how much time has allowed since the epoch of the bound, at an
// instant on which a window begins or ends.
func (b bound) allowed(epoch, at throttle.Instant, ends bool) float64 {
	sum := b.rate * at.Sub(epoch).Seconds()
	for _, s := range b.spells {
		sum += s.rate * max(0, min(at, s.to).Sub(max(epoch, s.from)).Seconds())
		if ends && at >= s.from || !ends && at > s.to {
			sum += s.more
		}
	}
	return sum
}

// credit is what a window of no length may hold.
func (b bound) credit() float64 { return b.burst + b.rate*b.x.Seconds() }

// worst returns the window that exceeds the rate by most, and by how much. It
// looks at all of them in one pass: what a window holds beyond its allowance is
// a sum up to its end less one up to its beginning, of which the least so far is
// kept.
func (b bound) worst(at []throttle.Instant) (over float64, from, to throttle.Instant) {
	least, begin := math.Inf(1), throttle.Instant(0)
	over = math.Inf(-1)
	for i, t := range at {
		if before := float64(i) - b.allowed(at[0], t, false); before < least {
			least, begin = before, t
		}
		if o := float64(i+1) - b.allowed(at[0], t, true) - least; o > over {
			over, from, to = o, begin, t
		}
	}
	return over, from, to
}

// judge fails the test where some window holds more than the bound, and logs
// how near the worst came.
func (b bound) judge(t *testing.T, what string, at []throttle.Instant) {
	t.Helper()
	if len(at) == 0 {
		return
	}
	over, from, to := b.worst(at)
	t.Logf("%s: %d in %.2fs; worst %s; %.1f of %.1f above the rate", what, len(at), at[len(at)-1].Sub(at[0]).Seconds(), b.table(at), over, b.credit())
	if over > b.credit() {
		t.Errorf("%s: %d departures in %v from %v on, %.2f above the rate, want at most %.2f", what, count(at, from, to), to.Sub(from), from.Sub(at[0]), over, b.credit())
	}
}

// table returns the worst windows of some lengths and what is allowed in them.
func (b bound) table(at []throttle.Instant) string {
	var cells []string
	for _, w := range []time.Duration{100 * time.Millisecond, time.Second, 10 * time.Second} {
		if w > at[len(at)-1].Sub(at[0]) {
			break
		}
		most, allowed := 0, 0.0
		first := 0
		for i, t := range at {
			for at[first] <= t.Add(-w) {
				first++
			}
			if n := i + 1 - first; n > most {
				most = n
				allowed = b.credit() + b.allowed(at[0], t, true) - b.allowed(at[0], t.Add(-w), false)
			}
		}
		cells = append(cells, fmt.Sprintf("%v %d/%.0f", w, most, allowed))
	}
	return strings.Join(cells, ", ")
}

// count returns how many of the instants, in order, are in a window.
func count(at []throttle.Instant, from, to throttle.Instant) int {
	i, _ := slices.BinarySearch(at, from)
	j, _ := slices.BinarySearch(at, to+1)
	return max(j-i, 0)
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

// judgeLimit judges by what the limit's algorithm promises, with so many
// permits more wherever they fell. Windows and logs count a departure at the
// instant of its permit, at most x before it.
func judgeLimit(t *testing.T, l throttle.Limit, at []throttle.Instant, x time.Duration, spells ...spell) {
	t.Helper()
	more := 0
	for _, s := range spells {
		more += int(math.Ceil(s.more + max(0, s.rate)*s.to.Sub(s.from).Seconds()))
	}
	switch l.Algorithm {
	case throttle.AlgorithmFixedWindow:
		most := fullest(l, at, x)
		t.Logf("%v: %d of them, at most %d in a window, %d more allowed", l, len(at), most, more)
		if most > l.Permits+more {
			t.Errorf("%v: %d departures in a window, want at most %d", l, most, l.Permits+more)
		}
	case throttle.AlgorithmSlidingLog, throttle.AlgorithmSlidingWindow:
		allowed := l.Permits + more
		if l.Algorithm == throttle.AlgorithmSlidingWindow {
			allowed += l.Permits // for adverse traffic; the algorithm's own tests know better
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

// fullest returns how many departures the fullest aligned window must hold,
// where each counts at some instant up to x before it.
func fullest(l throttle.Limit, at []throttle.Instant, x time.Duration) int {
	window := func(i throttle.Instant) int64 { return int64(i) / int64(l.Per) }
	held, most := make(map[int64]int), 0
	for _, t := range at {
		w := window(t.Add(-x))
		for w < window(t) && held[w] >= l.Permits {
			w++
		}
		held[w]++
		most = max(most, held[w])
	}
	return most
}

// densest returns the most departures in any window of a length.
func densest(at []throttle.Instant, w time.Duration) int {
	most, first := 0, 0
	for i, t := range at {
		for at[first] <= t.Add(-w) {
			first++
		}
		most = max(most, i+1-first)
	}
	return most
}
