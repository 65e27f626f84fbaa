package distributed

import (
	"time"

	"github.com/weirgo/weir/throttle"
)

// State implements [throttle.Limiter], by what the store told last: at most a
// second before the last call.
func (l *limiter) State(now throttle.Instant) throttle.State {
	l.mu.Lock()
	defer l.mu.Unlock()
	store := l.stats
	store.Lost, store.Cause = l.outage.on, l.outage.cause
	store.Replicas, store.Differs = l.known.alive, l.known.differs
	s := throttle.State{
		// What the replicas have used is with the store, and outlives this.
		Whole:  now >= l.paused && l.hand.count() == 0 && !l.flight.underway && !l.outage.on && len(l.reports) == 0 && !l.outage.owes(),
		Limits: make([]throttle.LimitState, len(l.configured())),
		Store:  &store,
	}
	if now < l.paused {
		s.Paused = l.paused.Sub(now)
	}
	for i := range s.Limits {
		s.Limits[i] = l.known.state(now, i, &l.limitSet)
	}
	return s
}

// owed returns the intervals of a bucket that were owed, some time after it was
// told.
func (t limitReply) owed(since time.Duration) float64 {
	if t.unit == 0 {
		return 0
	}
	return t.intervals(time.Duration(t.owedMicros)*time.Microsecond-since) + float64(t.owedFrac)/float64(t.unit)
}

// intervals returns how many intervals of a bucket a time is.
func (t limitReply) intervals(d time.Duration) float64 {
	if t.unit == 0 {
		return 0
	}
	return float64(d) / 1000 * float64(t.den) / float64(t.unit)
}

// burstOf returns the most permits at once of a whole limit.
func burstOf(l throttle.Limit) int {
	switch l.Algorithm {
	case throttle.AlgorithmLeakyBucket:
		return 1
	case throttle.AlgorithmTokenBucket, throttle.AlgorithmGCRA:
		return max(l.Burst, 1)
	default:
		return l.Permits
	}
}
