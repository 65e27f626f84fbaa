package learn

import (
	"cmp"

	"github.com/weirgo/weir/throttle"
)

const (
	answers   = 1   // seconds for which the next call awaits an answer. Test "SingleCallsReadTheLevel"
	unhurried = 1.5 // times the time for which permits are granted ahead of readings: a faster correction swings. Test "SlowBucketIsSharedEvenly"
	inTime    = 32  // round trips: in a longer window the last permits depart a few at a time
	untimed   = 60  // seconds over which the permits left would be spread if the window is unknown: a guess
	riseWait  = 60  // seconds: longest wait for a permit of a rising level, as its slope may be wrong
)

// Bound reports whether readings bound departures, because the rise of a level is unknown yet. It
// also returns the least ceiling of the quotas, and how many of the permits left of the scarcest one
// are kept for single calls that read it. A quota that has n more left keeps n fewer of those.
func (s *State) Bound() (ceiling, kept float64, ok bool) {
	ceiling, least, most := float64(mostCalls), float64(mostCalls), float64(-mostCalls)
	for i := range s.Ceilings {
		if t := &s.Ceilings[i]; t.binds(s) && !t.flying() && !s.believes() {
			ceiling, least = min(ceiling, t.C), min(least, t.V)
			if !t.fills() {
				most, ok = max(most, t.readers(s)-t.V), true
			}
		}
	}
	return ceiling, max(0, least+most), ok
}

// plan adds the ceiling's bounds to p.
func (t *Ceiling) plan(s *State, now throttle.Instant, granted int64, p *Plan) {
	if t.flying() {
		if t.Limit > 0 && (p.Most == 0 || float64(p.Most) > t.Limit) {
			p.Most = int(t.Limit)
		}
		return
	}
	p.Reported = true
	rate, hold, asks := t.pace(s, now, granted)
	hold = min(hold, t.Last.At.Add(seconds(farthest))) // what is spent may be back, and a reset may be wrong
	even, left, ahead := t.Slope, max(t.left(now, granted), 1), t.end().Sub(t.Last.At).Seconds()
	if t.end() > 0 && t.end() <= now { // the window has ended
		left, ahead = t.Top, 0
	}
	if !t.fills() {
		even = left / cmp.Or(max(0, ahead), t.Full, t.Window, t.Period, untimed)
	}
	p.Even = min(cmp.Or(p.Even, even), even)
	if part := s.Setting.part(); part < 1 && !t.Stands && t.Found > 0 && (rate == 0 || rate > part*t.Found) {
		rate = part * t.Found
	}
	if rate > 0 && (p.Rate == 0 || rate < p.Rate) {
		p.Rate, p.Bounded = rate, true
	}
	p.Hold = max(p.Hold, hold)
	if p.Asks = p.Asks || asks; !asks {
		p.Sure = max(p.Sure, hold)
	}
}

// pace returns the rate that the ceiling allows, zero for any, and the instant of the next departure. If asks is true, that
// instant waits for the answer of a call in flight. A window is spent up to its readers: while C has room, calls depart at
// once. Then each waits for the answer before it. A known end is awaited, and an unknown one is looked for.
func (t *Ceiling) pace(s *State, now throttle.Instant, granted int64) (rate float64, hold throttle.Instant, asks bool) {
	left, flights := t.left(now, granted), float64(granted-s.ahead(t)-t.Answered) // calls after the newest answered one
	unanswered := flights > 0
	if t.fills() {
		rate, hold = t.paced(s, now, left, granted)
		if flying := t.Slope * s.RTT; !s.Setting.Shared && unanswered && t.C-float64(granted) < 1 && t.size() > 2*flying+few*t.Call {
			return rate, now.Add(seconds(answers)), true
		}
		return rate, hold, false
	}
	ahead := t.end().Sub(now).Seconds()
	if s.Setting.Spread && left >= t.reserve(s.RTT) && ahead > 0 {
		return left / ahead, 0, false
	}
	keep, room := t.readers(s), t.C-float64(granted)
	spent := !unanswered && left < keep+1 || left < 1 && t.Whole && s.RTT > answers/2.0 // only the readers are left; a slow answer is not awaited
	sure := t.Ends > 0 || t.Turns > 0 && t.Whole || left < 1 && (t.Whole || t.timed())  // its end is believed
	switch {
	case room >= keep+1 && (ahead < inTime*s.RTT || s.Setting.Shared || !t.Stands || flights <= room/2): // in a long window half of C's room is left for answers in flight: if nodes disagree, they show it in time. Rows "two nodes, first 300/5s"
		return 0, 0, false
	case t.Stands && ahead > 0 && spent && sure: // the next call departs when the window ends
		return 0, t.end().Add(seconds(max(ResetGuard.Seconds(), s.RTT/2))), false
	case unanswered: // its answer says more
		return 0, now.Add(seconds(answers)), true
	case left >= keep+1: // answers overtook each other: the next one says how much of it is sure
		return 0, 0, false
	case left < 1 && t.Stands && !t.Whole && t.back() > 0:
		return 0, t.back().Add(seconds(max(ResetGuard.Seconds(), s.RTT/2))), false
	case left < t.Call && t.Found > 0: // by then one is there, if it goes on to rise
		return 0, max(t.look(s, left), t.Last.At.Add(seconds(min((t.Call-left)/t.Found, riseWait)))), false
	}
	return 0, t.look(s, left), false
}

// paced is pace for a rising level: at its slope, plus the rate that brings the level to its reserve in a spell of four
// round trips, and 50 ms at least. A fleet takes 200 ms at least, because it corrects the rate late.
func (t *Ceiling) paced(s *State, now throttle.Instant, left float64, granted int64) (rate float64, hold throttle.Instant) {
	keep := t.reserve(s.RTT)
	if t.size() < t.Slope*s.RTT { // fewer than are in flight at that rate (Little's law): the level proves nothing
		return t.Slope, 0
	}
	spell, slope := max(0.05, 4*s.RTT), t.Slope
	if s.Setting.Shared {
		spell = max(0.2, spell, unhurried*float64(granted-t.Last.Ordinal)/t.Slope)
	}
	if s.Setting.Shared && t.Blur > settled*slope && t.Blur < slope { // permits are granted before the next reading corrects the slope
		slope -= t.Blur
	}
	rate = max(t.Slope/2, slope+(left-keep)/spell)
	if s.Setting.part() < 1 && t.Found == 0 && t.V-float64(t.Last.Ordinal) >= t.size()/2 { // only a level that falls shows how fast it would rise
		rate = max(rate, 2*t.Slope)
	}
	if left < 1 {
		hold = now.Add(seconds(min((1-left)/t.Slope, riseWait)))
	}
	return rate, hold
}

// reserve returns how many permits a rising level keeps for calls of others and for late readings: three calls, a tenth of
// the quota, or the permits of a tenth of a second or a round trip.
func (t *Ceiling) reserve(rtt float64) float64 {
	return min(max(3*t.Call, 0.1*t.size(), 0.1*t.Slope, t.Slope*rtt), t.size()/3)
}

// ahead returns how many numbers beyond one the next call takes, if the quota can have as many left.
func (s *State) ahead(t *Ceiling) int64 {
	return min(s.Ahead, max(0, int64(t.size()-t.reserve(s.RTT))-1))
}
