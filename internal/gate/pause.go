package gate

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/weirgo/weir/internal/flight"
	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// ErrPaused is matched by the error for a request whose lane is closed, because
// the server asked for a longer pause than callers wait through.
var ErrPaused = errors.New("lane is paused")

// LongestPause is the longest time for which a lane stays closed without a probe. A server with one
// wrong header must not keep its clients away for longer.
const LongestPause = time.Hour

// pauseLag is how much longer a pause may look in another process than it is, because it is dated
// by the arrival of its message. Vendors send whole seconds, so no pause that callers wait through
// in one process is rejected in another.
const pauseLag = time.Second

// A pause is the veto of a closed gate. The gate closes when a refusal asks for a longer pause than
// callers wait through, and rejects all calls until that has ended. The shared limiter may report
// another process's refusal. From then on one call at a time is admitted, until one has a good
// answer.
type pause struct {
	flights  *flight.Table
	longest  time.Duration // longest pause of the limiter that callers wait through
	shut     atomic.Bool   // the gate is closed, or waits for a good answer
	closedTo throttle.Instant
	closing  uint64 // times that it closed: calls that departed since are its probes
	limited  bool   // the limiter was paused when it was last asked
}

// long reports whether an instant at which the limiter is to be asked again may be the
// end of a long pause.
func (p *pause) long(now, at throttle.Instant) bool {
	return at != throttle.Never && at.Sub(now) > p.longest
}

// close closes the gate until an instant, unless it is closed for longer.
func (p *pause) close(until throttle.Instant) {
	if until <= p.closedTo {
		return
	}
	p.closedTo = until
	p.closing++
	p.shut.Store(true)
}

// Ask implements veto. After the pause, the next call may depart once the last probe in
// flight has landed, or is overdue.
func (p *pause) Ask(t flight.Turn) (throttle.Forecast, error) {
	if !p.shut.Load() {
		return throttle.Forecast{}, nil
	}
	if t.Now < p.closedTo {
		wait := &shaping.Error{Err: ErrPaused, Wait: p.closedTo.Sub(t.Now), Reason: throttle.ReasonPause}
		return throttle.Forecast{At: p.closedTo, Reason: throttle.ReasonPause}, wait
	}
	probing, until := p.flights.Recent(t.Now, flight.Patience, func(c *flight.Call) bool { return c.Probe == p.closing })
	if probing > 0 {
		return throttle.Forecast{At: until, Reason: throttle.ReasonConcurrency}, nil
	}
	return throttle.Forecast{}, nil
}

// Board implements veto.
func (p *pause) Board(t flight.Turn) throttle.Instant {
	if t.Call != nil && p.shut.Load() {
		t.Call.Probe = p.closing
	}
	return 0
}

// Leave implements veto.
func (p *pause) Leave(flight.Turn) {}

// Room implements veto.
func (p *pause) Room(_ throttle.Instant, n int) int { return n }

// CloseTo closes the gate until an instant: all calls are rejected, and then one is
// admitted. Good answers to calls that are in flight do not open the gate.
func (g *Gate) CloseTo(until throttle.Instant) {
	g.flights.Lock()
	defer g.flights.Unlock()
	g.pause.close(until)
}

// update applies the limiter's pause, perhaps from another process. It closes the gate if the
// limiter is paused for longer than callers wait, and reports whether it is. It opens a
// closed gate if the limiter was paused and is no longer. The caller holds the lock.
func (g *Gate) update(now throttle.Instant) (closed bool) {
	s := g.Limiter.State(now)
	g.store.Store(s.Store)
	if closed = s.Paused > g.pause.longest; closed {
		g.pause.close(now.Add(s.Paused))
	} else if g.pause.limited && s.Paused == 0 && g.pause.closedTo > now {
		g.open()
	}
	g.pause.limited = s.Paused > 0
	return closed
}

// open ends the time for which all calls are rejected, and for which reported quotas hold them. The
// caller holds the lock.
func (g *Gate) open() {
	g.pause.closedTo = 0
	g.ledgers.Forget()
}

// recheck opens a closed gate if the limiter is no longer paused: nobody says so for a limiter that
// must be asked. The caller holds the lock.
func (g *Gate) recheck(now throttle.Instant) {
	if now < g.pause.closedTo {
		g.update(now)
	}
}

// Update applies the limiter's pause, or its end, perhaps from another process.
func (g *Gate) Update(now throttle.Instant) {
	g.flights.Lock()
	defer g.flights.Unlock()
	g.update(now)
}

// ClosedFor returns for how long from now all calls are rejected.
func (g *Gate) ClosedFor(now throttle.Instant) time.Duration {
	g.flights.Lock()
	defer g.flights.Unlock()
	g.update(now)
	return max(0, g.pause.closedTo.Sub(now))
}
