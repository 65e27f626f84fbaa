package learn

import (
	"math"

	"github.com/weirgo/weir/throttle"
)

// leastTune is the least change of the rate, as a share of it, that tunes a limiter: so a search takes four steps or more.
const leastTune = leastWidth / 4

// A Plan is a state's demand on the queue and the limiter until the next fact.
type Plan struct {
	Rate     float64          // permits per second, evenly spaced; zero: no rate
	Most     int              // most calls in flight; zero: no bound
	Since    int64            // Most concerns only departures after this ordinal; zero: all
	Hold     throttle.Instant // no departure before it
	Sure     throttle.Instant // no departure before it either, even if the call of Asks is never answered
	Pause    throttle.Instant // no departure before it, whatever quotas are reported
	Asks     bool             // Hold is later than Sure because the answer to the last departure is missing
	Probe    bool             // one call at a time until an answer
	Reported bool             // reported quotas count, so a new plan is needed after each departure
	Bounded  bool             // reported quotas set the pace
	Even     float64          // permits per second with which the remaining permits last until quotas are whole; zero: no quota is reported
}

// Plan returns the plan for now. Granted is the lane's latest ordinal.
func (s *State) Plan(now throttle.Instant, granted int64) Plan {
	p := Plan{Hold: s.Until}
	if s.Episode && s.Probing || !s.Episode && s.Mode == Rate {
		p.Hold = max(p.Hold, s.Next)
	}
	p.Sure, p.Pause = p.Hold, p.Hold
	if s.believes() {
		return p
	}
	switch {
	case s.Mode == Rate:
		p.Rate = s.shared(s.R)
	case s.Mode == Flight:
		p.Most = max(1, int(s.Cap*s.Setting.part()))
	case s.Mode != Start || s.Setting.Configured == 0:
		p.Most = max(1, int(s.Cap))
	}
	if s.Episode && s.Probing {
		p.Rate, p.Most, p.Since, p.Probe = s.RefR, 1, s.Cut, true
	}
	for i := range s.Ceilings {
		if t := &s.Ceilings[i]; t.binds(s) {
			t.plan(s, now, granted+s.ahead(t), &p)
		}
	}
	if p.Rate > 0 {
		p.Rate = max(p.Rate, slowest)
	}
	return p
}

// Foresees reports whether reported quotas also set the plan of a later instant: a rising level
// continues to rise, and a window whose reset is later does not end before.
func (s *State) Foresees(now, later throttle.Instant) (ok bool) {
	for i := range s.Ceilings {
		switch t := &s.Ceilings[i]; {
		case !t.binds(s) || t.flying():
		case t.fills(), t.Slope == 0 && t.Reset > later:
			ok = true
		case t.Slope == 0 && t.Reset > now:
			return false
		}
	}
	return ok
}

// slowest is the least rate of a plan: however wrong an estimate is, the vendor is probed once a day.
const slowest = 1.0 / (24 * 3600)

// Changed reports whether p.Rate differs enough from the rate of the plan in force to tune the limiter.
func (p Plan) Changed(old Plan) bool {
	return math.Abs(p.Rate-old.Rate) > old.Rate*leastTune
}
