package lane

import (
	"slices"

	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// A probe is a call that departed since the gate was closed, and is in flight. It is
// known by the call's ID: the clock is
// read anew at each step of a call's way, so no instant tells it.
type probe struct {
	id    uint64
	since throttle.Instant
}

// probe is Take while the gate is closed and, after that, until a good answer.
func (g *gate) probe(now throttle.Instant, r throttle.Request) (throttle.Instant, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if now < g.closedTo {
		return 0, &shaping.Error{Err: ErrPaused, Wait: g.closedTo.Sub(now), Reason: throttle.ReasonPause}
	}
	if at := g.held(); at > now {
		return at, nil
	}
	at, err := g.take(now, r)
	if err == nil && at <= now && r.ID != 0 {
		g.probes = append(g.probes, probe{r.ID, now})
	}
	return at, err
}

// held returns when another probe may go. That is at once, unless the last one
// is still waited for.
func (g *gate) held() throttle.Instant {
	if n := len(g.probes); n > 0 {
		return g.probes[n-1].since.Add(unanswered)
	}
	return 0
}

// down takes a call out of the probes, and reports whether it was one.
func (g *gate) down(id uint64) bool {
	i := slices.IndexFunc(g.probes, func(p probe) bool { return p.id == id })
	if i < 0 {
		return false
	}
	g.probes = slices.Delete(g.probes, i, i+1)
	return true
}
