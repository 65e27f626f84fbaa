package learn

import "time"

// Traffic is the common facts of the lane's calls: how long an answer takes, and the actual pace of
// departures. The zero value knows nothing.
type Traffic struct {
	RTT   float64 // seconds from a departure until its fact is observed, smoothed
	Last  Mark    // the newest departure observed
	Slack float64 // share of calls without waiting callers, smoothed
	Pace  [2]Mark // two older departures, each at least eight calls after the previous
}

const (
	smoothTrip  = 8       // RFC 6298 section 2: an eighth of each round trip
	smoothSlack = 32      // calls
	mostSlack   = 0.2     // a higher bound would delay the rate's rise for a flood
	slack       = 0.1     // of the calls: then paces show the demand, not the vendor's limit. Test LowDemandIsNoLimit
	paceCalls   = 8       // the pace of fewer departures, a few milliseconds apart, is random
	unknownRate = 1.0 / 6 // calls per second for which a minute is idle, if no rate is known
	idleCalls   = 10      // calls that would have departed, and a second, without calls: the time shows no rate
)

// idle reports whether there were no calls for so long, at a rate, that earlier counts and the time
// since show no rate.
func idle(since time.Duration, rate float64) bool {
	return since.Seconds() > max(1, idleCalls/rate)
}

// lately returns how many calls departed before f since the last but one mark, and in how many seconds.
func (t *Traffic) lately(f *Fact) (n, d float64) {
	last := Mark{f.Ordinal, f.Departed}
	if last.Ordinal < t.Pace[1].Ordinal {
		last = t.Pace[1]
	}
	return float64(last.Ordinal - t.Pace[0].Ordinal), last.At.Sub(t.Pace[0].At).Seconds()
}

// pace returns the departures per second, silences included; zero if too few departed.
func (t *Traffic) pace(f *Fact) float64 {
	if n, d := t.lately(f); n >= paceCalls && d > 0 {
		return n / d
	}
	return 0
}

// leaving returns the departures per second before f. Many in flight at once show a burst (Little's law).
func (t *Traffic) leaving(f *Fact) float64 {
	burst := float64(f.Flying) / max(t.RTT, 1e-6)
	if n, d := t.lately(f); n >= 1 && d > 0 {
		return max(n/d, burst)
	}
	return burst
}
