package learn

import (
	"cmp"
	"math"
	"time"

	"github.com/weirgo/weir/throttle"
)

const (
	atOnce       = 0.5  // most of the permits that is kept until the rise is known. Row "16 in flight, X-RateLimit"
	farthest     = 3600 // seconds for which single calls read a level if no reset is reported: few windows are longer. A level is read as often in any case
	mostGrow     = 8    // times as far apart is each single call at most. Row "20/s burst 10, IETF, reset full, at once"
	leastGrow    = 1.2  // least growth of the gap between single calls
	firstGrow    = 4.0  // the same, before any window ends, if the level was never seen to rise. Row "log 5000/h, no limit, no reset"
	leastReaders = 4    // permits kept for single calls if the end of a window is uncertain; fewer show no rise
	mostReaders  = 8    // most permits kept, once a window was seen to end. Row "one in ten stale, fixed 600/min"
	manyReaders  = 20   // permits kept before, and a tenth of a greater quota. Row "begin, log 300/5s"
	stoodFor     = 0.9  // of the time since a level last rose: no window is shorter
	leastGap     = 1e-4 // seconds between single calls
	answers      = 1    // seconds for which the next call awaits an answer. Test "SingleCallsReadTheLevel"
	unhurried    = 1.5  // times as long as permits were granted after the newest reading: a faster answer to it swings. Test "SlowBucketIsSharedEvenly"
	inTime       = 32   // least round trips in a window whose last permits leave a few at a time
)

// readers returns how many permits are kept for single calls that read the level, because its rise,
// or the end of its window, is unknown.
func (t *Ceiling) readers(s *State) float64 {
	switch {
	case t.timed() && (t.Ends > 0 || t.Held || t.Whole && t.Turns > 0 && t.Period >= coarse): // no call looks for the end
		return 0
	case t.Stands && !t.Whole && t.Period > inTime*s.RTT: // a log, whose calls come back one by one
		return 1
	case t.Stands && (t.Period > 0 || t.Whole && t.Reset == 0): // all came back at once, as in no log
		return max(1, math.Floor(min(max(leastReaders*t.Call, t.size()/10), mostReaders*t.Call, atOnce*t.Top)/float64(int(1)<<t.Turns)))
	}
	return min(max(manyReaders*t.Call, t.size()/10), atOnce*t.Top)
}

// schedule sets the time since the level last rose.
func (t *Ceiling) schedule(s *State, left float64, here Level) {
	d, rose := here.At.Sub(t.Prev.At).Seconds(), here.Low-t.Prev.High
	if rose >= 1 && left >= 1 && t.Gap > 0 {
		t.Lull = max(t.Lull, t.Gap+d)
	}
	switch {
	case t.fills() || left > t.readers(s):
		t.Gap = 0
	case t.Gap > 0 && rose >= 1: // twice what a call takes is there by then
		t.Gap = 2 * t.Call * d / rose
	case t.Gap > 0:
		t.Gap += d
		return
	}
	t.Gap = max(t.Gap, s.RTT, leastGap)
}

// look returns when a single call reads the level next. The gap grows so that the permits left last until a
// window ends. A level of 43 since 12:00:00 is read at 12:00:30, at 12:01:00 and at 12:02:00.
func (t *Ceiling) look(s *State, left float64) throttle.Instant {
	late, grow := seconds(0.020+s.RTT/2), t.grow(left)
	soon, next := t.Last.At.Add(seconds(t.Gap*(grow-1))), t.Last.At.Add(seconds(t.Gap*(max(grow, 2)-1)))
	if back := t.back().Add(late); t.Window > 0 && back > t.Last.At { // whatever the vendor counts in that time
		soon, next = min(soon, back), min(next, back)
	}
	if end := t.end().Add(late); end > t.Last.At && (end <= next || t.Stands && t.rough()) {
		if t.rough() && left >= 1 { // it may have ended before, by the error of the rounding
			return max(end.Add(-rounding), t.Last.At.Add(max(rounding/mostReaders, end.Sub(t.Last.At)/time.Duration(left+1))))
		}
		return end
	}
	if s.Setting.part() < 1 { // the vendor has the rest left, so a look is not refused
		left = max(left, 1)
	}
	return t.guess(left, soon, next, late)
}

// grow returns the growth of the gap between single calls.
func (t *Ceiling) grow(left float64) float64 {
	horizon, least := cmp.Or(max(0, t.end().Sub(t.Last.At.Add(-seconds(t.Gap))).Seconds()), farthest), leastGrow
	if t.Gap < shortest/firstGrow && t.Blur == 0 && t.Period == 0 {
		least = firstGrow
	}
	grow := max(math.Pow(max(1, horizon/t.Gap), 1/max(left/t.Call, 1)), least)
	if left >= 1 || t.end() <= t.Last.At { // it is not refused, or the end of the refusals is unknown
		grow = min(grow, mostGrow)
	}
	if t.Lull > 0 && t.Reset == 0 { // it has risen after so long before
		grow = min(grow, max(2, t.Lull/t.Gap))
	}
	return grow
}

// guess returns when a window of the length that is reported, or of a round one, would end, if that
// is before next. It is no shorter than the level's age. If nothing is left, a look is refused, so
// the longest of these windows that ends soon comes first. All ends within the reported length.
func (t *Ceiling) guess(left float64, soon, next throttle.Instant, late time.Duration) throttle.Instant {
	if window := t.length(); window > 0 {
		soon, next = min(soon, t.Last.At.Add(window+late)), min(next, t.Last.At.Add(window+late))
	}
	since := t.Last.At.Add(-seconds(t.Gap)) // age of the level
	for _, unit := range append([]time.Duration{t.length()}, rounds[:]...) {
		if unit == 0 || left >= 1 && unit.Seconds() < stoodFor*t.Gap {
			continue
		}
		wall := (since - since%throttle.Instant(unit)).Add(unit + late)
		used := t.Jump.At.Add(unit + late)
		for _, end := range [...]throttle.Instant{min(wall, used), max(wall, used)} {
			switch {
			case end <= t.Last.At:
			case end <= soon && left < 1:
				return end
			default:
				next = min(next, end)
			}
		}
	}
	return next
}

// length returns a window's length as reported: a reset at a constant distance is a whole window ahead.
func (t *Ceiling) length() time.Duration {
	if t.Window == 0 && t.Moves >= mostMoves {
		return seconds(t.Full)
	}
	return seconds(t.Window)
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
	if !t.fills() { // a minute is a guess
		even = left / cmp.Or(max(0, ahead), t.Full, t.Window, t.Period, time.Minute.Seconds())
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

// pace returns the rate that the ceiling allows, zero for any, and the instant of the next
// departure. If asks is true, that instant waits for the answer of a call in flight.
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
	spent := !unanswered && left < keep+1 || left < 1 && t.Whole && s.RTT > answers/2.0 // a slow answer is not awaited
	sure := t.Ends > 0 || t.Turns > 0 && t.Whole || left < 1 && (t.Whole || t.timed())
	switch {
	case room >= keep+1 && (ahead < inTime*s.RTT || s.Setting.Shared || !t.Stands || flights <= room/2): // if nodes disagree, the next answers show it in time: rows "two nodes, first 300/5s"
		return 0, 0, false
	case t.Stands && ahead > 0 && spent && sure: // the next call leaves when the window ends
		return 0, t.end().Add(seconds(max(0.020, s.RTT/2))), false
	case unanswered: // its answer says more
		return 0, now.Add(seconds(answers)), true
	case left >= keep+1: // answers overtook each other: the next one says how much of it is sure
		return 0, 0, false
	case left < 1 && t.Stands && !t.Whole && t.back() > 0:
		return 0, t.back().Add(seconds(max(0.020, s.RTT/2))), false
	case left < t.Call && t.Found > 0: // by then one is there, if it goes on to rise
		return 0, max(t.look(s, left), t.Last.At.Add(seconds(min((t.Call-left)/t.Found, 60)))), false
	}
	return 0, t.look(s, left), false
}

// paced is pace for a rising level: at its slope, plus the rate that brings the level to its reserve.
func (t *Ceiling) paced(s *State, now throttle.Instant, left float64, granted int64) (rate float64, hold throttle.Instant) {
	keep := t.reserve(s.RTT)
	if t.size() < t.Slope*s.RTT { // fewer than are in flight at that rate (Little's law): the level proves nothing
		return t.Slope, 0
	}
	spell, slope := max(0.05, 4*s.RTT), t.Slope
	if s.Setting.Shared {
		spell = max(0.2, spell, unhurried*float64(granted-t.Last.Ordinal)/t.Slope)
	}
	if s.Setting.Shared && t.Blur > settled*slope && t.Blur < slope { // permits are granted ahead, before the next reading corrects it
		slope -= t.Blur
	}
	rate = max(t.Slope/2, slope+(left-keep)/spell)
	if s.Setting.part() < 1 && t.Found == 0 && t.V-float64(t.Last.Ordinal) >= t.size()/2 { // only a level that falls shows how fast it would rise
		rate = max(rate, 2*t.Slope)
	}
	if left < 1 {
		hold = now.Add(seconds(min((1-left)/t.Slope, 60)))
	}
	return rate, hold
}

// reserve returns how many permits are kept for calls of others and for late readings.
func (t *Ceiling) reserve(rtt float64) float64 {
	return min(max(3*t.Call, 0.1*t.size(), 0.1*t.Slope, t.Slope*rtt), t.size()/3)
}

// ahead returns how many numbers beyond one the next call takes, if the quota can have as many left.
func (s *State) ahead(t *Ceiling) int64 {
	return min(s.Ahead, max(0, int64(t.size()-t.reserve(s.RTT))-1))
}
