package reserve

import "github.com/weirgo/weir/throttle"

// State implements [throttle.Limiter], by the last reply: at most a
// second before the last call.
func (l *Limiter) State(now throttle.Instant) throttle.State {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	store := l.stats
	store.Lost, store.Cause = l.Lost, l.Cause
	store.Replicas, store.Differs = l.known.alive, l.known.differs
	s := throttle.State{
		// What the replicas have used is with the store, and outlives this.
		Whole:  now >= l.paused && l.hand.count() == 0 && !l.Underway && !l.Lost && len(l.reports) == 0 && !l.outage.owes(),
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

// Inspect returns how many permits are in hand, how many of those may still be spent, and how
// many reports are to be sent. It is for tests.
func (l *Limiter) Inspect() (inHand, usable, reports int) {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	later := l.hand[l.hand.from(l.clock.Now().Add(-l.tolerance)):]
	return l.hand.count(), later.count(), len(l.reports) + len(l.flight.reports)
}
