package learn

import (
	"cmp"
	"time"

	"github.com/weirgo/weir/throttle"
)

// In a window the level is constant, and jumps at its end. A reported reset is that end once a window was seen
// to end there. If no reset is reported, or another one each time, the length is learned from jump to jump.

const (
	rounding      = 2 * time.Second        // error of a reset in whole seconds: one, and another of an epoch that is compared with a Date. Row "one in ten stale, first 300/5s"
	leastRounding = 200 * time.Millisecond // error of a reset that is reported in milliseconds
	longestReset  = 31 * 24 * time.Hour    // longest believed: a month
	early         = 0.98                   // of a length, after which the next end is looked for: too early costs a permit, too late a part of the window. Row "one in ten stale, first 300/5s"
	shortest      = 0.9                    // seconds of a window: vendors count seconds or more
	sameLength    = 1.01                   // of a round length: the jump before was seen a little late
	mayBeTwo      = 2                      // windows in a row of a length, after which an end is looked for at half of it: each may have been two. Row "one in ten stale, first 300/5s"
	mostTurns     = 8                      // bound of the count of windows that ended when expected
	refuted       = 2                      // windows in a row that end earlier than reported, beyond rounding. Row "one in ten stale, first 300/5s"
	soonEnough    = 0.1                    // of a length, by which a reported end may be late
	exactFrom     = 8                      // seconds of a window whose reset in whole seconds is taken as it is: they are an eighth of it at most. Rows "log 100/10s", "begin, first 300/5s"
	standing      = 3                      // permits by which a bucket would have risen before V counts as constant. Test "LogGivesBackWhatWasSpent"
	unrisen       = 1.5                    // permits by which a bucket would have risen while its reset stayed the same
	coarse        = 2                      // seconds: shorter resets and windows are not trusted, as gateways report "1 s" in every answer (esp-v2)
	mostMoves     = 2                      // a reset that moved this often ends no window
)

// rounds are the lengths that windows have.
var rounds = [...]time.Duration{
	time.Hour, 30 * time.Minute, 15 * time.Minute, 10 * time.Minute, 5 * time.Minute, 2 * time.Minute, time.Minute,
	30 * time.Second, 15 * time.Second, 10 * time.Second, 5 * time.Second, 2 * time.Second, time.Second,
}

// Ending is when a window ends.
type Ending struct {
	Reset  throttle.Instant // earliest reported end of the window; zero: none
	Full   float64          // longest reported time to the reset, in seconds
	Named  throttle.Instant // departure of the first call whose answer named that end
	NamedV float64          // V at it
	Moves  int              // readings whose end contradicts the previous one, less windows that began since
	Ends   int              // 1: the last window ended at its reported end; negative: so many in a row did not
	Jump   Mark             // the call that saw V jump last, or the first one with a reading
	Period float64          // seconds from a jump until the next one is looked for; zero: unknown
	Least  float64          // seconds after a jump in which the last window did not end
	Turns  int              // jumps in a row at that time
}

// resetAt keeps the earliest reported end of the window. Resets are rounded up, so the earliest is
// nearest to the truth. An end that moves while still ahead is a window's length ahead.
func (t *Ceiling) resetAt(f *Fact, q *Quota) {
	at := f.Landed.Add(q.Reset)
	blur := rounding
	if t.Rough = q.Reset%time.Second == 0; !t.Rough {
		blur = leastRounding
	}
	blur += f.Landed.Sub(f.Departed) // the vendor reported it between the two
	t.Full = max(t.Full, q.Reset.Seconds())
	switch {
	case t.Reset == 0 || f.Landed.Add(blur) > t.Reset && at > t.Reset:
		t.Reset, t.Moves, t.Named, t.NamedV = at, max(0, t.Moves-1), f.Departed, t.V
	case at.Sub(t.Reset).Abs() > blur:
		t.Reset, t.Moves, t.Named, t.NamedV = at, min(t.Moves+1, 2*mostMoves), f.Departed, t.V
	default:
		t.Reset = min(t.Reset, at)
		if d := f.Departed.Sub(t.Named).Seconds(); t.fills() && d > still.Seconds() && t.Slope*d >= unrisen && t.V-t.NamedV < t.Slope*d/2 { // a bucket would have risen, and its reset with it
			t.becomeWindow()
		}
	}
}

// becomeWindow corrects a level that was taken for a bucket's.
func (t *Ceiling) becomeWindow() { t.Stands, t.Slope, t.Risen, t.Jump = true, 0, 0, t.Last }

// rough reports whether a reset hardly shows a window's end: it is in whole seconds, and the window is short.
func (t *Ceiling) rough() bool { return t.Rough && t.Full < exactFrom }

// timed reports whether windows end at the reported reset, as far as is known. A bucket's moves: row "strangers half, X-RateLimit".
func (t *Ceiling) timed() bool { return t.Reset > 0 && t.Moves < mostMoves && t.Ends > -refuted }

// end returns the known end of the newest reading's window; zero: unknown.
func (t *Ceiling) end() throttle.Instant {
	switch {
	case t.timed() && t.Stands && (t.Window > 0 || t.Turns > 0 && t.rough()): // a window is no longer than its known length
		return min(t.Reset, t.Jump.At.Add(seconds(cmp.Or(t.Window, t.Period))))
	case t.timed():
		return t.Reset
	case t.Stands && t.Window == 0 && t.Turns == mayBeTwo && max(t.Least, t.Last.At.Sub(t.Jump.At).Seconds()) < t.Period/2: // it may be half as long
		return t.Jump.At.Add(seconds(t.Period / 2))
	case t.Stands && t.Window+t.Period > 0:
		return t.Jump.At.Add(seconds(cmp.Or(t.Window, t.Period)))
	}
	return 0
}

// stand notes that the level is constant until the reset, if a bucket that is full then would have shown a
// rise. Processes that share a lane learn of a level too late to decide that for a near end.
func (t *Ceiling) stand(s *State, left float64, here Level) {
	if t.end() <= here.At || s.Setting.Shared && t.Full <= coarse {
		return
	}
	room, length := t.size()-left, t.end().Sub(t.From.At).Seconds()
	t.Stands = t.Stands || room > 0 && room/length*here.At.Sub(t.From.At).Seconds() >= standing+here.High-t.From.Low
}

// jump applies a sudden rise of the level: a window has begun, or permits spent long ago no longer count. A bucket that
// rises this fast would have gained standing permits more before than it did.
func (t *Ceiling) jump(f *Fact, left float64, here Level) {
	rose, d := here.Low-t.Prev.High, max(here.At.Sub(t.Prev.At).Seconds(), 1e-6)
	stood, gained := max(0, t.Prev.At.Sub(t.From.At).Seconds()), t.Prev.High-t.From.Low
	if t.From.At == 0 {
		stood = 0
	}
	// due: the known end has passed since the last reading, or the time in which the last window did not end
	due := t.end() > t.Last.At && f.Landed >= t.end() || t.Least > shortest && f.Departed.Sub(t.Jump.At).Seconds() >= t.Least
	if t.fills() || !(t.Stands && due) && (rose/d*stood < standing+gained || rose < standing+2*t.Slope*d) {
		return
	}
	if served := float64(f.Ordinal - t.Jump.Ordinal); served > t.size()+max(few, t.size()/8) { // more than a window has: it is a bucket that others leave
		t.Stands, t.Whole, t.Turns, t.Least = false, false, 0, 0
		t.Jump = Mark{f.Ordinal, f.Departed}
		return
	}
	t.Stands, t.Whole = true, left >= 0.9*max(t.Limit, t.size())-float64(f.Flying)
	t.lasted(f, left)
	t.Jump, t.Slope, t.Risen, t.Stood, t.From, t.Mid = Mark{f.Ordinal, f.Departed}, 0, 0, here, here, here
}

// lasted notes the length of the ended window, and whether it ended as reported.
func (t *Ceiling) lasted(f *Fact, left float64) {
	least, length := min(t.Prev.At, t.Stood.At).Sub(t.Jump.At).Seconds(), f.Departed.Sub(t.Jump.At).Seconds()
	if length < shortest || length < t.Period/2 && left < t.size()/2 { // a log gives permits back in steps
		return
	}
	if t.Reset > 0 {
		switch late := t.Reset.Sub(f.Departed).Seconds(); {
		case late > soonEnough*length && !(t.Rough && late <= 1):
			t.Ends = max(t.Ends-1, -refuted)
		case t.Reset.Sub(t.Prev.At).Seconds() < length/4 && !t.rough():
			t.Ends = min(t.Ends+1, 1)
		}
	}
	if t.Period > 0 && least < t.Period && t.Period <= length {
		t.Turns = min(t.Turns+1, mostTurns)
		return
	}
	first := t.Period == 0
	t.Turns, t.Period, t.Least = 0, early*length, least
	for _, unit := range rounds {
		switch u := unit.Seconds(); {
		case u > sameLength*length && first: // it began before the first reading, so it was longer
			t.Period = u
		case u > least && u <= sameLength*length:
			t.Period = u
			return
		}
	}
}

// A log counts the calls of the last period: a sliding window. It gives each permit back a period after it was
// spent, so its level is constant, and then repeats the lane's departures of a period before:
//
//	period 60 s     0 s   1 s   20 s               60 s  61 s  80 s
//	departures      40    30    30    nothing left
//	permits return                                 40    30    30
//
// The period is known from a window that ended with a part of its permits.

const logMarks = 8 // kept departures of a period: returned permits are then late by an eighth of a quota at most

// mark keeps a departure for back.
func (t *Ceiling) mark(ordinal int64, at throttle.Instant) {
	newest := &t.Sent[logMarks-1]
	if float64(ordinal-newest.Ordinal) >= t.size()/logMarks {
		copy(t.Sent[:], t.Sent[1:])
		*newest = Mark{ordinal, at}
	}
}

// back returns when a log gives permits back next; zero: unknown. A believed reset is better evidence than a reported window.
func (t *Ceiling) back() throttle.Instant {
	period := seconds(cmp.Or(t.Window, t.Period))
	if t.Window == 0 && (!t.Stands || t.Whole) || period == 0 || t.timed() {
		return 0
	}
	for _, m := range t.Sent {
		if at := m.At.Add(period); m.At > 0 && at > t.Last.At {
			return at
		}
	}
	return 0
}
