package gate

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/weirgo/weir/internal/course"
	"github.com/weirgo/weir/internal/flight"
	"github.com/weirgo/weir/internal/learn"
	"github.com/weirgo/weir/throttle"
)

// A Gate is the limiter of a lane: the store's limiter and, in front of it, a list of
// vetoes. A call departs if all of them and the limiter allow it.
type Gate struct {
	throttle.Limiter
	flights *flight.Table
	started time.Time                           // when the gate read the wall clock
	store   atomic.Pointer[throttle.StoreState] // as last sent by the limiter; nil: no store

	vetoes  []veto // in the order in which they are asked
	pause   pause
	bound   bound
	ledgers *course.Ledgers
	course  *course.Course // nil: the lane does not learn
	asks    atomic.Bool    // the bound or the ledgers are asked for each call

	heldTo throttle.Instant // until when vetoes hold calls; Never: until one lands; zero: they hold none
	opened throttle.Instant // since when they hold none
	wake   func()           // wakes the callers in line; set before the first Take
}

// A veto may hold calls. It is asked with the lock of the lane's flights held.
type veto interface {
	// Ask returns since when a call may depart. After now, it is until when the call is
	// held, and why. The error rejects the call. Nothing is spent.
	Ask(t flight.Turn) (throttle.Forecast, error)
	// Board counts a call that departs, and returns when its permits count as charged.
	// After now, the call may not depart, and is not counted.
	Board(t flight.Turn) throttle.Instant
	// Leave takes back what Board has counted.
	Leave(t flight.Turn)
	// Room returns how many of n calls in line may depart, as far as is known.
	Room(now throttle.Instant, n int) int
}

// NewGate returns the gate in front of a limiter. If the course is nil, the lane does not
// learn. If the ledgers are nil, no quota holds its calls. The lane's callers wait through pauses of up to maxPause.
func NewGate(limiter throttle.Limiter, c *course.Course, s *course.Ledgers, maxPause time.Duration) *Gate {
	if s == nil {
		s = course.NewLedgers(c, nil, false, false)
	}
	g := &Gate{Limiter: limiter, course: c, ledgers: s, flights: s.Flights, started: time.Now(), wake: func() {}}
	g.pause = pause{flights: g.flights, longest: max(maxPause, maxPause+pauseLag)}
	g.list()
	return g
}

func (g *Gate) list() {
	g.vetoes = append(g.vetoes[:0], &g.pause)
	if g.Bounded() {
		g.vetoes = append(g.vetoes, &g.bound)
	}
	if g.ledgers.Hold() {
		g.vetoes = append(g.vetoes, g.ledgers)
	}
	if g.course != nil {
		g.vetoes = append(g.vetoes, g.course)
	}
	g.asks.Store(g.Bounded() || g.ledgers.Hold())
}

// calm reports whether nothing holds a call: calls are only counted.
func (g *Gate) calm() bool {
	return !g.asks.Load() && !g.pause.shut.Load() && g.course.Calm()
}

// Take implements [throttle.Limiter]. While the gate is calm, a departure costs the
// limiter's Take and one compare-and-swap.
func (g *Gate) Take(now throttle.Instant, r throttle.Request) (throttle.Grant, error) {
	if g.calm() {
		granted, err := g.Limiter.Take(now, r)
		switch {
		case err != nil, granted.At > now && !g.pause.long(now, granted.At):
			return granted, err
		case granted.At > now:
		case r.ID == 0 || g.course.Depart(now):
			return granted, nil
		default: // others departed meanwhile
			g.Limiter.Refund(now, granted, r)
		}
	}
	g.flights.Lock()
	defer g.flights.Unlock()
	return g.ask(now, r)
}

// Held implements [store.Vetoer]. A veto that rejects r does not hold it: Take returns the error.
func (g *Gate) Held(now throttle.Instant, r throttle.Request) throttle.Instant {
	if g.calm() {
		return 0
	}
	g.flights.Lock()
	defer g.flights.Unlock()
	_, held, err := g.held(now, r)
	if err != nil {
		return 0
	}
	return held
}

// ask is Take with the vetoes, under the lock.
func (g *Gate) ask(now throttle.Instant, r throttle.Request) (throttle.Grant, error) {
	t, held, err := g.held(now, r)
	if err != nil || held > now {
		return throttle.Grant{At: held}, err
	}
	granted, err := g.Limiter.Take(now, t.Request)
	switch {
	case err != nil:
		return granted, err
	case granted.At > now:
		if g.pause.long(now, granted.At) && g.update(now) {
			held, err := g.pause.Ask(t)
			return throttle.Grant{At: held.At}, err
		}
		return granted, nil
	case r.ID == 0:
		return granted, nil
	}
	t.Grant = granted
	if g.ledgers.Hold() || g.pause.shut.Load() || g.course.Steers() { // it has an entry
		t.Call = g.flights.Board(now, t.ID)
	}
	for i, v := range g.vetoes {
		charged := v.Board(t)
		if charged > now { // it is not allowed any more
			g.leave(t, g.vetoes[:i])
			return throttle.Grant{At: charged}, nil
		}
		granted.At = max(granted.At, charged)
	}
	return granted, nil
}

// held asks the vetoes, under the lock. It returns the turn that they allow, or until when one
// holds it.
func (g *Gate) held(now throttle.Instant, r throttle.Request) (t flight.Turn, until throttle.Instant, err error) {
	g.recheck(now)
	t = flight.Turn{Request: r, Now: now}
	// A call is charged no earlier than all vetoes allowed it: credit for a late timer excludes
	// time in which something else held the call. A permit that is dated earlier by the whole
	// tolerance is void as soon as its caller wakes up.
	opened := g.opened
	if g.heldTo > 0 {
		opened = min(g.heldTo, now)
	}
	t.Since = max(t.Since, opened)
	for _, v := range g.vetoes {
		held, err := v.Ask(t)
		if err != nil || held.At > now {
			g.heldTo = held.At
			return t, held.At, err
		}
		t.Since = max(t.Since, held.At)
	}
	g.opened, g.heldTo = opened, 0
	return t, 0, nil
}

// leave takes back a departure that some vetoes have counted, the last one first.
func (g *Gate) leave(t flight.Turn, boarded []veto) {
	for _, v := range slices.Backward(boarded) {
		v.Leave(t)
	}
	g.flights.Leave(t.ID)
	g.Limiter.Refund(t.Now, t.Grant, t.Request)
}

// Refund implements [throttle.Limiter].
func (g *Gate) Refund(now throttle.Instant, granted throttle.Grant, r throttle.Request) {
	if r.ID == 0 {
		g.Limiter.Refund(now, granted, r)
		return
	}
	g.flights.Lock()
	defer g.flights.Unlock()
	g.leave(flight.Turn{Request: r, Now: now, Grant: granted, Call: g.flights.Find(r.ID)}, g.vetoes)
}

// Forecast implements [throttle.Limiter]. A bound must be certain, so only a pause counts: learned
// limits are guesses, and calls in flight may end at any time. The vetoes only give the reason.
func (g *Gate) Forecast(now throttle.Instant, r throttle.Request) throttle.Forecast {
	forecast := g.Limiter.Forecast(now, r)
	if g.calm() {
		return forecast
	}
	g.flights.Lock()
	defer g.flights.Unlock()
	g.recheck(now)
	for _, v := range g.vetoes {
		held, err := v.Ask(flight.Turn{Request: r, Now: now, Forecast: true})
		switch {
		case held.At <= now:
		case held.Reason == throttle.ReasonPause && (err != nil || held.At > forecast.At):
			held.At = max(held.At, forecast.At) // a call that is rejected waits for no limit
			return held
		case forecast.At <= now:
			forecast.Reason, forecast.Limit = held.Reason, held.Limit
			return forecast
		}
	}
	return forecast
}

// Expect returns the instant until which the vetoes are expected to hold r, learned limits
// included: unlike Forecast, it is a guess. It is zero if they do not hold r, or only calls
// in flight do.
func (g *Gate) Expect(now throttle.Instant, r throttle.Request) (at throttle.Instant) {
	if g.calm() {
		return 0
	}
	g.flights.Lock()
	defer g.flights.Unlock()
	for _, v := range g.vetoes {
		held, _ := v.Ask(flight.Turn{Request: r, Now: now, Forecast: true})
		if held.Reason != throttle.ReasonConcurrency {
			at = max(at, held.At)
		}
	}
	return at
}

// Store returns how the limits are shared through a store, as the limiter reported it
// last; nil: they are not.
func (g *Gate) Store() *throttle.StoreState { return g.store.Load() }

// Landed applies the answer to a call, or its lack. Most calls teach nothing, and no other call
// awaits their end: then it reads no clock.
func (g *Gate) Landed(ctx context.Context, clock func() throttle.Instant, a *course.Answer) {
	room := g.course.Landed(ctx, clock, a) || g.pause.shut.Load()
	if !room && g.flights.Kept() == 0 {
		return
	}
	now := clock()
	g.flights.Lock()
	c := g.flights.Land(now, a.ID)
	if a.Served && c.Probe > 0 && c.Probe == g.pause.closing { // a probe has a good answer
		g.pause.shut.Store(false)
	}
	room = room || g.heldTo > 0
	g.flights.Unlock()
	if room {
		g.wake()
	}
}

// Reconcile implements [throttle.Limiter]. A pause that is over by hand opens the gate. As
// after every closing, one call goes first.
func (g *Gate) Reconcile(now throttle.Instant, f throttle.Fact) {
	if f.Resumed {
		g.course.Resume(now) // first: other processes look for it once the limiter has published the end
	}
	g.Limiter.Reconcile(now, f)
	switch {
	case f.Resumed: // not before: as long as the limiter is paused, others close the gate again
		g.flights.Lock()
		g.open()
		g.flights.Unlock()
	case g.pause.shut.Load():
		g.Update(now)
	}
}

// Tune implements [throttle.Limiter].
func (g *Gate) Tune(now throttle.Instant, limits ...throttle.Limit) error {
	if len(limits) == 0 { // one or the other bounds calls at any time
		g.course.Configure(now, limits)
	}
	if err := g.Limiter.Tune(now, limits...); err != nil {
		return err
	}
	g.course.Configure(now, limits)
	g.flights.Lock()
	defer g.flights.Unlock()
	g.ledgers.Configure(limits)
	g.list()
	return nil
}

// Tolerance implements [throttle.Limiter].
func (g *Gate) Tolerance() time.Duration {
	tolerance := g.Limiter.Tolerance()
	if learned := g.course.Tolerance(); learned > 0 {
		tolerance = min(tolerance, learned)
	}
	return tolerance
}

// State implements [throttle.Limiter].
func (g *Gate) State(now throttle.Instant) throttle.State {
	s := g.Limiter.State(now)
	s.Whole = s.Whole && g.course.Known() == learn.Known{} && g.InFlight() == 0
	if !g.pause.shut.Load() {
		return s
	}
	g.flights.Lock()
	defer g.flights.Unlock()
	s.Whole = false
	if g.pause.closedTo > now {
		s.Paused = max(s.Paused, g.pause.closedTo.Sub(now))
	}
	return s
}
