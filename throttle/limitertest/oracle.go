package limitertest

import (
	"fmt"
	"math/bits"
	"slices"
	"time"

	"github.com/weirgo/weir/throttle"
)

// A departure is one grant of a limiter.
type departure struct {
	at    throttle.Instant // when it left
	grant throttle.Grant   // returned by Take
	n     []int64          // permits of each limit, less those that came back
	asked []int64          // permits of each limit in the request
	over  bool             // no departure: an earlier call cost this much more
	era   int              // how often the limits had been replaced before
}

// A ledger is the log of departures, in the order of decisions, and the reports to the limiter.
type ledger struct {
	limits     []throttle.Limit // of the first era
	tick       time.Duration    // by which an instant is rounded
	tolerance  time.Duration    // the longest of all eras
	departures []departure

	// returned reports that a permit came back: it may have begun a window of first use. A limiter
	// cannot always know which later departure began it, nor call back later grants. Rules of their
	// own judge such windows, and the histories without refunds.
	returned bool
}

// broken returns the sentence of the first bound that the departures broke
// under the limits of an era, or "".
func (g *ledger) broken(era int, limits []throttle.Limit) string {
	for i, l := range limits {
		if (era > 0 || g.returned) && l.Align == throttle.AlignFirstUse {
			continue // its windows may have begun before the change
		}
		var log []entry
		for _, d := range g.departures {
			if d.era == era && d.asked[i] > 0 {
				log = append(log, entry{d.at, d.n[i], d.over})
			}
		}
		if s := g.brokenBy(l, log); s != "" {
			return fmt.Sprintf("limit %v: %s", l, s)
		}
	}
	return ""
}

// An entry is a number of permits of one limit. An overspend counts for the departures after it,
// and breaks nothing itself.
type entry struct {
	at   throttle.Instant
	n    int64
	over bool
}

// brokenBy judges one limit. The log is in the order of decisions.
func (g *ledger) brokenBy(l throttle.Limit, log []entry) string {
	switch l.Algorithm {
	case throttle.AlgorithmFixedWindow:
		return brokenWindow(l, log)
	case throttle.AlgorithmSlidingLog:
		return brokenSpan(l, log)
	case throttle.AlgorithmSlidingWindow:
		return brokenEstimate(l, log)
	default:
		return g.brokenRate(l, log)
	}
}

// brokenRate searches every interval between two departures. One tick is the
// rounding of an instant.
func (g *ledger) brokenRate(l throttle.Limit, log []entry) string {
	log = slices.Clone(log)
	slices.SortStableFunc(log, func(a, b entry) int { return int(max(min(a.at-b.at, 1), -1)) })
	for i := range log {
		sum, most := int64(0), int64(max(l.Burst, 1))
		for j := i; j < len(log); j++ {
			sum += log[j].n
			if l.Algorithm == throttle.AlgorithmLeakyBucket {
				most = max(most, log[j].n)
			}
			span := log[j].at.Sub(log[i].at)
			if !log[j].over && !atMost(sum-most, int64(l.Per), int64(span+g.tolerance+g.tick), int64(l.Permits)) {
				return fmt.Sprintf("%d permits left in %v from %d on, more than %d + T/i with the tolerance of %v",
					sum, span, log[i].at, most, g.tolerance)
			}
		}
	}
	return ""
}

// atMost reports a x b <= c x d, exactly.
func atMost(a, b, c, d int64) bool {
	if a <= 0 {
		return true
	}
	if c < 0 {
		return false
	}
	high, low := bits.Mul64(uint64(a), uint64(b))
	most, rest := bits.Mul64(uint64(c), uint64(d))
	return high < most || high == most && low <= rest
}

func brokenWindow(l throttle.Limit, log []entry) string {
	if l.Align == throttle.AlignFirstUse {
		return brokenFirstUse(l, log)
	}
	used := make(map[int64]int64)
	for _, e := range log {
		k := windowOf(e.at, l.Per)
		if used[k] += e.n; used[k] > int64(l.Permits) && !e.over {
			return fmt.Sprintf("%d permits left in the window of %d", used[k], e.at)
		}
	}
	return ""
}

func brokenFirstUse(l throttle.Limit, log []entry) string {
	var end throttle.Instant
	used := int64(0)
	for i, e := range log {
		if i == 0 || e.at >= end {
			windows := 1 + int64(e.at.Sub(end)/l.Per) // that paid the overspend, one begun and the others not
			end, used = e.at.Add(l.Per), max(used-windows*int64(l.Permits), 0)
		}
		used += e.n
		if !e.over && used > int64(l.Permits) {
			return fmt.Sprintf("%d permits left in the window that ends at %d", used, end)
		}
	}
	return ""
}

// windowOf returns the number of the window since the epoch.
func windowOf(at throttle.Instant, per time.Duration) int64 {
	k := int64(at) / int64(per)
	if at < 0 && int64(at)%int64(per) != 0 {
		k--
	}
	return k
}

func brokenSpan(l throttle.Limit, log []entry) string {
	for i, last := range log {
		sum := inSpan(l, log, last.at)
		for _, e := range log[i:] { // later overspends do not count for it
			if e.over && e.at == last.at {
				sum -= e.n
			}
		}
		if sum > int64(l.Permits) && !last.over {
			return fmt.Sprintf("%d permits left in the span that ends at %d", sum, last.at)
		}
	}
	return ""
}

// inSpan returns the permits that left in the span that ends at an instant.
func inSpan(l throttle.Limit, log []entry, end throttle.Instant) int64 {
	sum := int64(0)
	for _, e := range log {
		if e.at <= end && e.at > end.Add(-l.Per) {
			sum += e.n
		}
	}
	return sum
}

func brokenEstimate(l throttle.Limit, log []entry) string {
	for i := range log {
		if estimate := estimateOf(l, log[:i], log[i].at) + log[i].n; estimate > int64(l.Permits) && !log[i].over {
			return fmt.Sprintf("the weighted estimate was %d at %d", estimate, log[i].at)
		}
	}
	return ""
}

// estimateOf returns the two counters' estimate, in whole permits.
func estimateOf(l throttle.Limit, log []entry, at throttle.Instant) int64 {
	k, this, before := windowOf(at, l.Per), int64(0), int64(0)
	for _, e := range log {
		switch windowOf(e.at, l.Per) {
		case k:
			this += e.n
		case k - 1:
			before += e.n
		}
	}
	left := int64(l.Per) - (int64(at) - k*int64(l.Per))
	high, low := bits.Mul64(uint64(before), uint64(left))
	weight, _ := bits.Div64(high, low, uint64(l.Per))
	return this + int64(weight)
}

// allows reports whether the limit's definition lets n permits leave at the instant
// now, after the departures so far. A negative slack makes it that much stricter, a
// positive one more lenient.
func (g *ledger) allows(i int, now throttle.Instant, n int64, slack time.Duration) bool {
	l := g.limits[i]
	switch l.Algorithm {
	case throttle.AlgorithmFixedWindow, throttle.AlgorithmSlidingLog, throttle.AlgorithmSlidingWindow:
		return g.allowsWindow(i, now, n)
	}
	most := int64(max(l.Burst, 1))
	ahead := n
	if l.Algorithm == throttle.AlgorithmLeakyBucket {
		ahead = 1
	}
	// Since each counted departure, the permits charged from it on, and n more, were saved or
	// earned.
	sum := ahead
	for k := len(g.departures) - 1; k >= 0; k-- {
		d := g.departures[k]
		sum += d.n[i]
		if d.n[i] > 0 && !atMost(sum-most, int64(l.Per), int64(now.Sub(d.grant.At)+slack), int64(l.Permits)) {
			return false
		}
	}
	return true
}

// leaves returns how many permits of limit i a request must leave at an instant.
func (g *ledger) leaves(i int, now throttle.Instant, r throttle.Request) int64 {
	l := g.limits[i]
	reserved := int64(l.Reserved())
	switch {
	case r.Urgent:
		return 0
	case l.Algorithm == throttle.AlgorithmFixedWindow:
		left := int64(l.Per) - (int64(now) - windowOf(now, l.Per)*int64(l.Per))
		high, low := bits.Mul64(uint64(reserved), uint64(left))
		released, _ := bits.Div64(high, low, uint64(l.Per))
		return int64(released)
	}
	return reserved
}

func (g *ledger) allowsWindow(i int, now throttle.Instant, n int64) bool {
	l := g.limits[i]
	var log []entry
	for _, d := range g.departures {
		if d.n[i] > 0 {
			log = append(log, entry{d.at, d.n[i], false})
		}
	}
	switch l.Algorithm {
	case throttle.AlgorithmSlidingWindow:
		return estimateOf(l, log, now)+n <= int64(l.Permits)
	case throttle.AlgorithmSlidingLog:
		return inSpan(l, log, now)+n <= int64(l.Permits)
	default:
		return brokenWindow(l, append(log, entry{now, n, false})) == ""
	}
}
