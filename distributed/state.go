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
	store.Lost, store.Cause = l.out.lost, l.out.cause
	store.Replicas, store.Differs = l.alive, l.differs
	s := throttle.State{
		// What the replicas have used is with the store, and outlives this.
		Whole:     now >= l.paused && l.hand.count() == 0 && !l.flight.underway && !l.out.lost && len(l.reports) == 0,
		RateShare: 1,
		Limits:    make([]throttle.LimitState, len(l.own())),
		Store:     &store,
	}
	if now < l.paused {
		s.Paused = l.paused.Sub(now)
	}
	if l.share > 0 {
		s.RateShare = float64(l.share) / fullShare
	}
	for i, limit := range l.own() {
		s.Limits[i] = l.limitState(now, i, limit)
	}
	return s
}

func (l *limiter) limitState(now throttle.Instant, i int, limit throttle.Limit) throttle.LimitState {
	s := throttle.LimitState{Limit: limit, Next: max(l.next[i].Sub(now), 0), Headroom: float64(burstOf(limit))}
	if l.told == nil {
		return s
	}
	told := l.told[i]
	if l.counting(i) {
		s.Headroom, s.Utilization = float64(told.hand), float64(told.used)/float64(max(told.permits, 1))
		return s
	}
	since := max(now.Sub(l.toldAt), 0)
	owed := max(told.owed(since), 0)
	s.Headroom, s.Utilization = float64(told.burst)-owed, owed/float64(max(told.burst, 1))
	return s
}

// owed returns the intervals of a bucket that were owed, some time after it was
// told.
func (t limitReply) owed(since time.Duration) float64 {
	if t.unit == 0 {
		return 0
	}
	ticks := (float64(t.owedMicros)-float64(since)/1000)*float64(t.den) + float64(t.owedFrac)
	return ticks / float64(t.unit)
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

func (l *limiter) counting(i int) bool {
	switch l.limits[i].Algorithm {
	case throttle.AlgorithmFixedWindow, throttle.AlgorithmSlidingLog, throttle.AlgorithmSlidingWindow:
		return true
	default:
		return false
	}
}
