package learn

import (
	"cmp"
	"math"
	"time"

	"github.com/weirgo/weir/throttle"
)

// While the rise of a level or the end of its window is unknown, single calls read the level. A look costs a permit, or a
// refusal if no permit is left. So looks go to the instants at which windows usually end, and the gaps between them grow
// so that the permits left reach the known end.

const (
	mostKept     = 0.5  // of the permits, until the rise is known. Row "16 in flight, X-RateLimit"
	farthest     = 3600 // seconds over which looks are spread if no end is known, and after which one comes in any case: few windows are longer
	mostGrow     = 8    // most growth of the gap between looks. Row "20/s burst 10, IETF, reset full, at once"
	leastGrow    = 1.2  // least growth of the gap between looks
	firstGrow    = 4.0  // the same, before any window ends, if the level was never seen to rise. Row "log 5000/h, no limit, no reset"
	leastReaders = 4    // permits kept for looks if the end of a window is uncertain: fewer show no rise
	mostReaders  = 8    // permits: most that are kept once a window was seen to end. Row "one in ten stale, fixed 600/min"
	manyReaders  = 20   // permits kept before that, or a tenth of a greater quota. Row "begin, log 300/5s"
	stoodFor     = 0.9  // of Gap: a level that has stood so long is of no shorter window
	leastGap     = 1e-4 // seconds: least Gap
)

// Looks is when single calls read a level.
type Looks struct {
	Gap  float64 // seconds for which the level has stood, from which the next look is set; after a rise: twice what a permit took
	Lull float64 // most seconds for which the level stood before permits came back; zero: unknown
}

// readers returns how many permits are kept for looks: half as many after each window that ended when expected.
func (t *Ceiling) readers(s *State) float64 {
	switch {
	case t.timed() && (t.Ends > 0 || t.Held || t.Whole && t.Turns > 0 && t.Period >= coarse): // no call looks for the end
		return 0
	case t.Stands && !t.Whole && t.Period > inTime*s.RTT: // a log, whose calls come back one by one
		return 1
	case t.Stands && (t.Period > 0 || t.Whole && t.Reset == 0): // all came back at once, as in no log
		return max(1, math.Floor(min(max(leastReaders*t.Call, t.size()/10), mostReaders*t.Call, mostKept*t.Top)/float64(int(1)<<t.Turns)))
	}
	return min(max(manyReaders*t.Call, t.size()/10), mostKept*t.Top)
}

// schedule sets Gap.
func (t *Ceiling) schedule(s *State, left float64, here Level) {
	d, rose := here.At.Sub(t.Prev.At).Seconds(), here.Low-t.Prev.High
	if rose >= 1 && left >= 1 && t.Gap > 0 {
		t.Lull = max(t.Lull, t.Gap+d)
	}
	switch {
	case t.fills() || left > t.readers(s):
		t.Gap = 0
	case t.Gap > 0 && rose >= 1: // permits of two calls have come by then, if they come as fast
		t.Gap = 2 * t.Call * d / rose
	case t.Gap > 0:
		t.Gap += d
		return
	}
	t.Gap = max(t.Gap, s.RTT, leastGap)
}

// look returns when a single call reads the level next. The gap grows so that the permits left last until a window ends. A
// level that stands since 12:00:00 is read after 1, 2, 5, 10, 15, 30, 60, 120 and 300 s, and a few times before.
func (t *Ceiling) look(s *State, left float64) throttle.Instant {
	late, grow := seconds(ResetGuard.Seconds()+s.RTT/2), t.grow(left)
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
	if s.Setting.part() < 1 { // the vendor has permits left, so a look is not refused
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

// guess returns when a window of the reported length, or of a round one, would end, if that is before next. While permits are
// left, windows shorter than the level's age are skipped. Otherwise a look is refused, so the longest window that ends soon
// comes first. No look is later than the reported length.
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
