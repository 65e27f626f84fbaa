package learn

import (
	"math"

	"github.com/weirgo/weir/throttle"
)

const (
	atOnce       = 0.5  // share of the permits that is kept at most until the rise is known
	farthest     = 3600 // seconds for which single calls read a level if no reset is reported: few windows are longer
	mostGrow     = 8    // times as far apart is each single call at most. Row "20/s burst 10, IETF, reset full, at once"
	leastGrow    = 1.05 // times as far apart is each single call at least
	leastReaders = 4    // permits kept for single calls if the end of a window is not sure; fewer show no rise
	mostReaders  = 8    // permits kept at most, once windows were seen
	manyReaders  = 20   // permits kept before, and a tenth of a greater quota
	few          = 4    // permits by which a quota is greater than what is on its way twice, if C bounds a level that rises
	evenly       = 1.05 // of the rate of a log: what is left is used up within twenty windows
	unread       = 8    // answers without a reading, after which a quota sets no pace
	leastGap     = 1e-4 // seconds between single calls
	answers      = 1    // seconds for which the next call waits for an answer
	asking       = 8    // round trips for which it does if processes share the lane
)

// readers returns how many permits are kept for single calls that read the level, because
// nobody knows how it rises, or when its window ends.
func (t *Ceiling) readers() float64 {
	switch {
	case t.timed() && (t.Ends > 0 || t.Held):
		return 0
	case t.Stands && t.Period > 0:
		return min(max(leastReaders, t.size()/10), mostReaders, atOnce*t.Top)
	}
	return min(max(manyReaders, t.size()/10), atOnce*t.Top)
}

// schedule sets when the next single call reads the level: so much later each time that
// the permits that are left last until the window ends.
func (t *Ceiling) schedule(s *State, f *Fact, left float64) {
	if t.Slope > 0 || left > t.readers() {
		t.Gap = 0
		return
	}
	if t.Gap > 0 && f.Departed < t.Asked { // it left before
		return
	}
	t.Asked = f.Landed
	if t.Gap == 0 {
		t.Gap = max(s.RTT, leastGap)
		if t.ended(f.Departed) {
			t.Gap = max(t.Gap, (1-early)*t.Period/2)
		}
		return
	}
	horizon := float64(farthest)
	if ahead := t.end().Sub(f.Departed).Seconds(); ahead > 0 {
		horizon = ahead
	} else if t.Period > 0 {
		horizon = t.Period / 4
	}
	grow := math.Pow(max(1, horizon/t.Gap), 1/max(left, 1))
	if left < 1 { // it may be refused
		grow = 2
	}
	t.Gap *= min(max(grow, leastGrow), mostGrow)
}

// reserve returns how many permits are kept for calls of others and for
// readings that come late.
func (t *Ceiling) reserve(rtt float64) float64 {
	size := t.size()
	keep := max(3, 0.1*size)
	if t.Slope > 0 {
		keep = max(keep, min(size/3, 0.1*t.Slope), t.Slope*rtt)
	}
	return min(keep, size/3)
}

// plan adds to p what the ceiling allows.
func (t *Ceiling) plan(s *State, now throttle.Instant, granted int64, p *Plan) {
	if t.flying() {
		if p.Most == 0 || s.Mode != Rate && float64(p.Most) > t.Limit {
			p.Most = int(t.Limit)
		}
		return
	}
	p.Told = true
	rate, hold, asks := t.pace(s, now, granted)
	if s.Last.Ordinal-t.Last.Ordinal > unread { // another quota is reported now: this one holds until its reset if it is spent
		if t.left(now, granted) >= 1 || !t.timed() || t.Reset <= now {
			return
		}
		rate, asks = 0, false
	}
	if rate > 0 && (p.Rate == 0 || rate < p.Rate) {
		p.Rate, p.Bounded = rate, true
	}
	p.Hold = max(p.Hold, hold)
	if asks {
		p.Asks = true
	} else {
		p.Sure = max(p.Sure, hold)
	}
}

// pace returns the rate that the ceiling allows, zero for any, and the instant
// before which nothing may leave. If asks is true, that instant is put off
// until a call on its way is answered.
func (t *Ceiling) pace(s *State, now throttle.Instant, granted int64) (rate float64, hold throttle.Instant, asks bool) {
	left := t.left(now, granted)
	if t.Slope > 0 {
		rate, hold = t.paced(s, now, left)
		if over := t.end(); t.Ends > 0 && t.timed() && over > t.At && hold > over { // one asks whether it rose at once
			rate, hold = 0, over
		}
		if flying := t.Slope * s.RTT; !s.Setting.Shared && granted > t.Heard && t.C-float64(granted) < 1 && t.size() > 2*flying+few {
			return rate, now.Add(seconds(answers)), true
		}
		return rate, hold, false
	}
	ahead := t.end().Sub(now).Seconds()
	if (s.Setting.Spread && left >= t.reserve(s.RTT) || s.Setting.Shared && t.Stands && left >= 1) && ahead > 0 {
		return left / ahead, 0, false
	}
	keep, unheard := t.readers(), granted > t.Heard
	next := s.round(t.Last.At, max(t.Gap, s.RTT, leastGap), t.Jump)
	switch {
	case t.fresh(now) && left >= 1 || min(left, t.sure(now, granted)) >= keep+1:
		return 0, 0, false
	case unheard: // its answer says more
		wait := float64(answers)
		if s.Setting.Shared {
			wait = max(0.1, asking*s.RTT)
		}
		return 0, now.Add(seconds(wait)), true
	case t.ended(now): // one asks how the next window stands
		return 0, 0, false
	case t.Stands && ahead > 0 && (t.Ends > 0 || left < 1 || !t.timed()): // it ends with the window
		return 0, min(t.end().Add(seconds(max(0.020, s.RTT/2))), t.At.Add(seconds(farthest))), false
	}
	return 0, next, false
}

// paced is pace for a level that rises: at its slope, and what brings the level to its
// reserve.
func (t *Ceiling) paced(s *State, now throttle.Instant, left float64) (rate float64, hold throttle.Instant) {
	keep := t.reserve(s.RTT)
	if t.size() < t.Slope*s.RTT { // fewer than are in flight at that rate (Little's law): the level says nothing
		return t.Slope, 0
	}
	spell, slope := max(0.05, 4*s.RTT), t.Slope
	if left > keep && s.Setting.Shared {
		spell = max(0.2, spell)
	}
	if s.Setting.Shared && t.Blur > settled*slope && t.Blur < slope { // permits are granted ahead, before the next reading corrects it
		slope -= t.Blur
	}
	rate = max(t.Slope/2, slope+(left-keep)/spell)
	if t.Even > 0 {
		rate = min(rate, evenly*t.Even)
	}
	if left < 1 {
		hold = now.Add(seconds(min((1-left)/t.Slope, 60)))
	}
	return rate, hold
}
