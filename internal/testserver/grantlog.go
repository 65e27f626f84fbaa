package testserver

import "time"

// A grantLog is the state of a sliding log: the instant of every permit of the
// last Per.
type grantLog struct {
	limit  Limit
	grants []time.Duration
}

// forget drops permits older than Per.
func (g *grantLog) forget(now time.Duration) {
	old := 0
	for old < len(g.grants) && now-g.grants[old] >= g.limit.Per {
		old++
	}
	g.grants = g.grants[old:]
}

func (g *grantLog) wait(now time.Duration, cost int) time.Duration {
	if cost > g.limit.Permits {
		return untold
	}
	g.forget(now)
	excess := len(g.grants) + cost - g.limit.Permits
	if excess <= 0 {
		return 0
	}
	return g.grants[excess-1] - now + g.limit.Per
}

func (g *grantLog) spend(now time.Duration, cost int) {
	for range cost {
		g.grants = append(g.grants, now)
	}
}

func (g *grantLog) done(int) {}

func (g *grantLog) standing(now time.Duration) Standing {
	g.forget(now)
	s := Standing{Limit: g.limit, Remaining: max(0, g.limit.Permits-len(g.grants))}
	if n := len(g.grants); n > 0 {
		s.Reset = g.grants[n-1] - now + g.limit.Per
		s.Next = g.grants[0] - now + g.limit.Per
	}
	return s
}

func (g *grantLog) resume(old meter) {
	if o, ok := old.(*grantLog); ok {
		g.grants = o.grants
	}
}
