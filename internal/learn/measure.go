package learn

import (
	"cmp"
	"math"
)

// A sample is what was counted from the end of one episode to the end of the next.
type sample struct {
	began   Mark    // the call whose service ended the episode before; at first, the first departure
	refused Mark    // the first refused departure
	rate    float64 // in force at it
	burst   float64 // calls served before it, less the first one's own permit
	spent   float64 // seconds in which a fleet was served the burst: it knows late of a refusal, so permits fall due meanwhile; zero: unknown
	n       float64 // calls served
	t       float64 // seconds
	silence float64 // seconds from the first refused departure to the first served one
	probed  float64 // seconds of the silence in which probes were refused
	covered float64 // seconds of the silence in which calls were refused, or would have been because a time was reported
	asked   bool    // the vendor asked for a wait with the refusal
	rtt     float64 // seconds
	rough   bool    // the first burst may have been counted too high: by processes, some of whose calls had no ordinals
	idle    bool    // one call in ten departed while no caller waited; before the first estimate, calls were rare beside round trips
}

const (
	bucketGains = 8    // intervals of the rate, or bucketTrips: a longer silence is no bucket's. Rows "window 600/min"
	bucketTrips = 4    // round trips
	blockSame   = 0.3  // of a silence: two that differ by less are one block, as each probe comes 1.5 times later
	mostSilence = 0.8  // seconds: most that a silence without a reported time costs, as longer ones are seldom lost again. Row "window 600 to 1,200"
	shown       = 3    // X up to which the rate was near the estimate: later the limit has risen. Rows "30 s block on exhaustion", "strangers half, bare, leave"
	enough      = 8    // calls: with fewer, or in less than a second, a reported time bounds no rate
	farAbove    = 1.5  // times: a reported time may be longer than the overspent calls cost, so it bounds only a rate this far too high
	mostFall    = 4    // times: an estimate falls no further at once, because a block, or a window that others used up, shows no rate. Random vendors that block
	firstCalls  = 8    // calls: error of a first count, whose burst is uncertain. Row "flood of 60/s"
	leastBurst  = 8    // calls: a smaller burst may be calls that bunched on the way. Row "strangers half, bare, leave"
	wholePeriod = 0.98 // of a rate served for a whole period: a call at either end is uncertain
	margin      = 1.05 // of a rate that was served for a part of a search. Row "fleet drain, facts 20 ms late"
	longAfter   = 4    // times as long as the first burst took: in less time most of the counted calls are the burst. Row "fleet drain, Retry-After s, 20 ms"
	leastFull   = 0.4  // of a burst: the least level when a search reaches the vendor's rate. Row "drain configured 250 Retry-After s"
)

// long reports whether a silence is too long for a bucket of a rate.
func (m *sample) long(rate float64) bool {
	return rate > 0 && m.silence > max(bucketGains/rate, bucketTrips*m.rtt)
}

// measure makes a new estimate: the rate lies between the one served and the one refused.
//
//	1,980 calls in 10 s, then one refused at 230/s, with a reported wait of 1 s:
//	between 198 and 230/s, so W = 213/s and U = 0.075
func (r *Search) measure(m *sample) {
	first := !r.Measured
	switch r.Measured = true; {
	case first:
		r.B, r.Burst, r.Spent = m.burst, m.burst, m.spent
	case m.burst < r.B:
		r.B = max(0, m.burst-1)
	}
	switch { // a refusal blocks if two silences are alike, as far as probes show, and too long for a window of what was served at once
	case m.long(r.W) && math.Abs(m.silence-r.Pause) < blockSame*m.silence && r.Burst < r.W*m.silence/4:
		r.Block = m.silence
	case m.silence < (1-blockSame)*r.Block:
		r.Block = 0
	}
	r.Pause = m.silence
	lo, hi := r.bracket(m)
	// The vendor served no more than n until it last refused: a bound, too. A reported time alone bounds only a rate that was far too high.
	if most := m.n / max(1e-6, m.t-m.silence+m.covered); m.covered > 0 && r.X < shown && !m.idle &&
		(m.probed > 0 || m.covered > 1 && m.n >= enough && hi > farAbove*most) {
		hi = max(lo, min(hi, most))
	}
	r.W = max(math.Sqrt(lo*hi), r.W/mostFall)
	u := max((hi-lo)/(hi+lo), leastWidth, 1/(m.n+1))
	if first { // the rate in force was rough then, and more may have been served
		u = max(u, firstCalls/m.n, (m.n/m.t-hi)/(m.n/m.t+hi))
	}
	r.U = min(u, mostWidth)
	if (!first || m.silence > m.t/2) && m.long(r.W) { // a window was spent in the time counted, so its period is no longer
		r.P = min(cmp.Or(r.P, 4*m.silence), m.t)
	}
	switch r.G = max(0, m.silence-m.probed); {
	case r.Block > 0: // a longer silence is an outage, until another is as long
		r.G = min(m.silence, r.Block)
	case !m.asked:
		r.G = min(r.G, mostSilence)
	}
}

// bracket returns the bounds of the vendor's rate, before the time in which it refused counts. A full
// bucket serves its burst and what falls due until it refuses, at first and again in a search:
//
//	50 calls in 0.15 s, and 180 in 0.8 s since a mark: so 130 fell due in 0.65 s, 200/s
func (r *Search) bracket(m *sample) (lo, hi float64) {
	lo, hi = max(m.n/m.t, (m.n-r.B)/max(1e-6, m.t-m.silence+m.covered)), m.rate
	most := math.Inf(1)
	for _, mark := range r.Marks {
		n, d := float64(m.refused.Ordinal-mark.Ordinal), m.refused.At.Sub(mark.At).Seconds()
		if mark.Ordinal <= m.began.Ordinal || d <= longAfter*r.Spent {
			continue
		}
		if v := (n - r.Burst) / (d - r.Spent); v > lo {
			lo, most = v, margin*(n-leastFull*r.Burst)/(d-leastFull*r.Spent)
		}
	}
	if m.rough && r.U >= narrow && !m.asked && !r.windows() && r.X < shown {
		most = min(most, margin*lo) // the true burst is smaller, so the bucket was never full: calls were served as fast as it fills
	}
	if r.Burst >= leastBurst && !m.idle {
		hi = min(hi, most)
	}
	if r.windows() && r.X >= earlyX { // a refusal before shows that the period or the burst is wrong
		lo = max(lo, r.kept(m))
	}
	if m.idle && r.X >= earlyX { // the demand bounded the count, so the earlier lower bound still holds
		lo = max(lo, r.W*(1-r.U))
	}
	return min(lo, hi), hi
}

// kept returns the least rate of windows that refused after a search: the rate in force a period before, as it was served for
// all of a period, or what was served in that period and the silence after it; zero if the search is younger than that.
func (r *Search) kept(m *sample) float64 {
	var began Mark
	rate := 0.0
	for i, mark := range r.Marks {
		if mark.Ordinal > max(m.began.Ordinal, began.Ordinal) && m.refused.At.Sub(mark.At).Seconds() >= r.P {
			began, rate = mark, r.Rates[i]
		}
	}
	if rate == 0 {
		return 0
	}
	before := m.refused.At.Sub(began.At).Seconds() - r.P
	n := float64(m.refused.Ordinal-began.Ordinal) - rate*before
	return max(wholePeriod*rate, n/(r.P+m.covered))
}
