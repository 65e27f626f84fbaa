package learn

import (
	"cmp"
	"math"
	"time"

	"github.com/weirgo/weir/throttle"
)

// A lane may keep a State for the quotas of one unit, such as tokens. Only [State.Read] and [State.Lapsed] apply answers to
// it, and only its ceilings are used. Its ordinals number departures in that unit. A call takes as many as it costs:
//
//	calls of 300, 500 and 200 tokens have the numbers 300, 800 and 1000
//
// If the lane waits for resets, an exact reset ends a window from the first reading on. A reset is not exact in
// three cases. It was never further away than rounding can blur (gateways report "0 remaining, reset in 1 s" on
// every answer). It names another instant each time. Two windows in a row reported only zero, and so does the third, unless the limit is one.

// A Term is the reported window of a quota whose reset is waited for.
type Term struct {
	First throttle.Instant // its first reported end; zero: none
	Since throttle.Instant // instant of that report
	End   throttle.Instant // the latest reported end, a little later
	Least float64          // fewest permits left in any reading
	Empty int              // windows in a row without a permit left in any reading, this one included
	Moved bool             // resets name another instant each time
	Far   bool             // a reset was reported that is further away than rounding can blur
}

const (
	still       = 3 * time.Second // a reset that names the same instant for this long does not move
	longestWait = time.Hour       // for a reset: one wrong header delays no call for longer

	// ResetGuard is how long after a reported reset the next call departs, so that it does not
	// arrive before it: clocks tick in milliseconds.
	ResetGuard = 20 * time.Millisecond
)

// over reports whether the window has ended, and no answer has reported the next one.
func (w *Term) over(now throttle.Instant) bool { return now >= w.End.Add(ResetGuard) }

// observe applies a reading. It reports whether the reading is of the current window.
func (w *Term) observe(now throttle.Instant, q *Quota) bool {
	at := now.Add(min(q.Reset, longestWait))
	later, over := at.Sub(w.First), w.over(now)
	w.Far = w.Far || q.Reset > rounding
	switch {
	case later > rounding && (over || now > w.End.Add(-rounding)): // a window has begun, the first one perhaps
		*w = Term{First: at, Since: now, End: at, Least: q.Remaining, Empty: w.Empty + 1, Far: w.Far}
	case over: // an answer of the window before
		return false
	case later.Abs() > rounding:
		w.First, w.Since, w.End, w.Least, w.Moved = at, now, at, q.Remaining, true
	default: // calls overtake each other on the way
		w.Least, w.End = min(w.Least, q.Remaining), max(w.End, at)
		w.Moved = w.Moved && now.Sub(w.Since) < still
	}
	if q.Remaining >= 1 {
		w.Empty = 0
	}
	return true
}

// await applies a reading of a quota whose reset is waited for. Whichever answered call arrived last, at least
// Least permits are left after it: so the ceiling is that many above the answered calls.
func (t *Ceiling) await(f *Fact, q *Quota) {
	if q.HasReset && q.Reset > 0 && !q.Filled && !q.Advisory && t.Term.observe(f.Landed, q) {
		t.C = max(t.C, t.Term.Least+float64(f.Answered))
	}
}

// exact reports whether the reset is an instant at which the quota is whole again.
func (t *Ceiling) exact() bool {
	return t.Term.Far && !t.Term.Moved && (t.Term.Empty < 3 || t.Limit == 1)
}

// Read applies the quotas that an answer reports, and nothing else. A refused call spent nothing.
func (s *State) Read(f *Fact, cost int64, now throttle.Instant) {
	s.meet(f, now)
	if f.Refused && cost > 1 {
		s.spare(f.Ordinal-cost+1, cost-1)
	}
	s.read(f)
	if f.Refused {
		s.blames(f, now)
	}
}

// Awaits reports whether the reset of a quota is exact, and how long it is until then; zero: past.
func (s *State) Awaits(now throttle.Instant, q *Quota) (exact bool, wait time.Duration) {
	key := q.Key()
	for i := range s.Ceilings {
		if t := &s.Ceilings[i]; t.Key == key && t.exact() {
			return true, max(0, t.Term.End.Sub(now))
		}
	}
	return false, 0
}

// Room returns how many numbers may depart now beyond the last, given those in flight, before quotas with
// awaited resets are spent. A call with a higher cost is held until an instant, or until an answer comes.
func (s *State) Room(now throttle.Instant, granted, flying, cost int64) (n float64, until throttle.Instant) {
	n = math.Inf(1)
	for i := range s.Ceilings {
		t := &s.Ceilings[i]
		if !t.exact() {
			continue
		}
		room, most, end := t.C-float64(granted), max(1, cmp.Or(t.Limit, math.Inf(1))), t.Term.End.Add(ResetGuard)
		if t.Term.over(now) { // the quota is whole, less what is in flight
			room, end = most-float64(flying), throttle.Never
		}
		if n = min(n, max(0, room)); room < min(float64(cost), most) {
			until = max(until, end)
		}
	}
	return n, until
}

// LongestReset returns the longest reported time until a reset, in seconds; zero: none.
func (s *State) LongestReset() (reset float64) {
	for i := range s.Ceilings {
		reset = max(reset, s.Ceilings[i].Full)
	}
	return reset
}
