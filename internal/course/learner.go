package course

import (
	"context"
	"math"
	"time"

	"github.com/weirgo/weir/internal/learn"
	"github.com/weirgo/weir/internal/store"
	"github.com/weirgo/weir/throttle"
)

var _ store.Learner = (*Course)(nil)

const (
	kept     = 10 * time.Minute       // by the store, without calls
	farthest = 250 * time.Millisecond // plans reach no further, unless reported quotas allow it
)

// Propose implements [store.Learner].
func (c *Course) Propose(v store.FleetState) (w store.Entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.fleet
	f.see(v)
	f.local = c.Look().Ordinal()
	w, f.unsent = f.unsent, store.Entry{}
	if f.begun { // otherwise they were not counted
		for _, lapsed := range v.Canceled {
			w.Data = learn.Message{Lapsed: lapsed}.Append(w.Data)
		}
	}
	for i := range f.facts {
		if fact := &f.facts[i]; fact.Refused || v.Now.Add(-v.ClockOffset).Sub(fact.Landed) < stale {
			shift(v.ClockOffset, &fact.Departed, &fact.Landed, &fact.Until)
			w.Data = learn.Message{Fact: fact}.Append(w.Data)
		}
	}
	f.facts, f.lingers = f.facts[:0], 0
	if f.timer != nil {
		f.timer.Stop()
	}
	return w
}

// see notes the lane's state, and which part of its departures are here.
func (f *fleet) see(v store.FleetState) {
	if f.view.Ordinal == 0 && f.local < 8 {
		f.share = float64(max(v.Replicas, 1)) // nothing better is known
	}
	f.view = v
	all, own := v.Ordinal-f.base[0], f.local-f.base[1]
	if own < 8 || all <= 0 {
		return
	}
	f.share = max(1, float64(all)/float64(own))
	if own >= 64 {
		f.base = [2]int64{v.Ordinal - all/2, f.local - own/2}
	}
}

// Apply implements [store.Learner].
func (c *Course) Apply(message []byte, ordinal int64, at throttle.Instant) {
	c.mu.Lock()
	if c.fleet.braked = 0; !c.fleet.begun {
		c.fleet.begun, c.state = true, new(learn.New(c.setting))
	}
	c.state.Setting = c.setting
	c.state.Receive(message, ordinal, at)
	c.fleet.learned = at
	c.follow()
	now := at.Add(-c.fleet.view.ClockOffset)
	c.report(context.Background(), now)
}

// follow follows a state that has changed.
func (c *Course) follow() {
	if *c.state == learn.New(c.setting) { // nothing is learned, or all is forgotten
		c.reset()
		return
	}
	c.replan(c.fleet.view.Now.Add(-c.fleet.view.ClockOffset))
}

// Snapshot implements [store.Learner].
func (c *Course) Snapshot() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := learn.New(c.setting)
	if c.fleet.begun {
		s = *c.state
	}
	return s.Encode()
}

// Restore implements [store.Learner].
func (c *Course) Restore(learned []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fleet.begun, c.state = true, new(learn.New(c.setting))
	_ = c.state.Decode(learned) // of another version, or garbage: as new
	c.state.Setting = c.setting
	c.follow()
}

// planNext returns the plan for the next departure that the store grants. That leaves after the
// last one, which may be in the future, so the plan uses the vendor's quota as of then. The rest of
// a window is spread from the last departure on. Otherwise more permits would be promised than the
// window has time for, and some would depart in the next one.
func (c *Course) planNext(v store.FleetState) learn.Plan {
	granted := v.Ordinal
	if v.Last <= v.Now && c.fleet.unbound { // otherwise the store counts
		granted = c.granted(v.Now.Add(-v.ClockOffset))
	}
	for _, back := range v.Canceled { // the call that this plan is for gives them back
		granted -= back.Count
	}
	at := v.Last
	if !c.state.Foresees(v.Now, at) {
		at = min(at, v.Now.Add(farthest))
	}
	return c.state.Plan(max(v.Now, at), granted)
}

// Pacing implements [store.Learner].
func (c *Course) Pacing(v store.FleetState) store.Pacing {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.fleet
	f.see(v)
	if !f.begun {
		return store.Pacing{}
	}
	now := v.Now.Add(-v.ClockOffset)
	if c.state.Behind(v.Now) && now.Sub(f.stepped) > pulse {
		f.stepped = now
		c.say(learn.Message{})
	}
	p := c.planNext(v)
	if p.Changed(learn.Plan{Rate: f.rate}) {
		f.rate = p.Rate
	}
	c.replan(now)
	ceiling, reserve, bound := c.state.Bound()
	if f.unbound && bound { // the store has forgotten the ceiling
		f.unsent.Reading = store.Reading{Ordinal: c.state.Last.Ordinal, Left: int64(ceiling) - 1}
	}
	f.unbound, f.reserve = !bound, int(reserve)
	pace := store.Pacing{Counted: true, NotBefore: p.Sure, Probe: p.Probe, ProbeAfter: p.Since, Unbound: f.unbound, Reserve: f.reserve}
	if f.rate > 0 {
		pace.Interval = time.Duration(min(max(1, math.Round(1e9/f.rate)), math.MaxInt64/4))
	}
	if p.Even > 0 {
		pace.Even = time.Duration(min(1e9/p.Even, math.MaxInt64/4))
	}
	pace.TTL = max(kept, time.Duration(2e9*min(c.state.P, 1e6)))
	return pace
}
