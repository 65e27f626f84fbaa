package learn

import (
	"hash/fnv"
	"math"
	"time"

	"github.com/weirgo/weir/throttle"
)

// A Track is what the answers tell of one of the vendor's limits.
//
// A reading of m remaining, in the answer to departure number s, says that the
// quota runs out at ordinal V = m + s: the level line. What is left now is A =
// V - S, where S is the lane's latest ordinal.
//
//	departure 40 is answered "60 remaining": V = 100
//	departure 55 has just left: 100 - 55 = 45 are left
//
// This needs no table of calls in flight, no order of arrival and no count of
// another replica.
//
// In a window, V stands still until the reset. In a bucket that is not full, V
// rises with the bucket's rate, so that rate is measured without a single
// refusal.
type Track struct {
	Key      uint64  // made of name, unit and window and, if there is no name, the limit; zero: the place is free
	Limit    float64 // permits at most
	Top      float64 // most permits left in any reading
	Window   float64 // seconds; zero: not told
	V        float64 // ordinal at which the quota runs out, at the instant At
	At       throttle.Instant
	Readings int
	Slope    float64          // permits per second by which V rises; zero: it stands still, or is not known
	From     float64          // V when the measurement of Slope began
	Since    throttle.Instant // when that was; zero: none is under way
	Count    int              // readings of the measurement
	Reset    throttle.Instant // told end of the window, the earliest that was told; zero: none was
	Strikes  int              // refusals in a row that the track did not foresee
	Agree    int              // readings in a row that did not contradict the one before
	Asked    int              // refusals that proved the told end right, since the track began again
	Last     Mark             // the newest departure read
	Full     float64          // longest told time to the reset, in seconds
	Base     int64            // lane's latest ordinal at the newest reading
	Peaks    int              // readings in which as many as Top were left
	Match    int              // readings that say the limit less the calls in flight, less four for each other reading

	// Flags stand side by side, because each alone takes eight bytes of every lane.
	Seen   bool // two or more permits were left once
	Liar   bool // it said that half was left when a call was refused
	Flight bool // the vendor says that it counts calls in flight
	Whole  bool // the last window began with all of its permits
	Held   bool // the lane itself waits for Reset when nothing is left
}

const (
	maxTracks  = 6 // bounds the state: vendors tell four windows at most
	coarse     = 2 // seconds: gateways tell "1 s" in every answer, so an end that is told to be so near is doubted
	leastLevel = 4 // permits: a level of fewer is too coarse to steer by
)

// size returns how many permits can be left at most. If a bucket's policy is
// told as a rate, such as "200 in 1 s", nobody tells its burst, so it is the
// most that was ever left, once a level that rises has come back to it. A bucket of one
// always tells that none is left.
func (t *Track) size() float64 {
	if (t.Readings >= 16 || t.Slope > 0 && t.Peaks > 1) && t.Top < t.Limit/2 {
		return t.Top
	}
	return t.Limit
}

// rough reports whether a level says too little to steer by: it has few permits, or
// fewer than are in flight at the vendor's rate (Little's law).
func (t *Track) rough(s *State) bool { return t.size() < max(leastLevel, s.W*s.RTT) }

// Key returns what tells the quota from others in later answers. It is not zero.
func (q *Quota) Key() uint64 {
	h := fnv.New64a()
	h.Write([]byte(q.Name))
	h.Write([]byte{0})
	h.Write([]byte(q.Unit))
	n := uint64(0)
	if q.Name == "" {
		n = math.Float64bits(q.Limit)
	}
	if q.HasWindow {
		n ^= uint64(q.Window)
	}
	for range 8 {
		h.Write([]byte{byte(n)})
		n >>= 8
	}
	return h.Sum64() | 1
}

// sane reports whether the quota can be reckoned with.
func (q *Quota) sane() bool {
	return q.HasRemaining && q.HasLimit && !q.Advisory &&
		q.Limit >= 1 && q.Limit <= 1e9 && q.Remaining >= 0 && q.Remaining <= 2*q.Limit &&
		(q.Unit == "" || q.Unit == "requests" || q.inFlight())
}

// inFlight reports whether the vendor says that it counts calls in flight.
func (q *Quota) inFlight() bool { return q.Unit == "concurrent-requests" }

// track returns the track of a quota. A new one takes the place of the oldest.
func (s *State) track(key uint64) *Track {
	oldest := &s.Tracks[0]
	for i := range s.Tracks {
		t := &s.Tracks[i]
		if t.Key == key {
			return t
		}
		if t.At < oldest.At {
			oldest = t
		}
	}
	*oldest = Track{Key: key}
	return oldest
}

// read reads the quotas of an answer.
func (s *State) read(f *Fact) {
	for i := range f.Quotas {
		if q := &f.Quotas[i]; q.sane() {
			s.track(q.Key()).read(s, f, q)
		}
	}
	s.Untold(f.Ordinal)
}

// Untold notes that a departure was answered without a reading, by a track or
// by all of them, or never will be answered. The vendor is taken not to have
// counted it there: it failed on the way, or another route's quota paid for it.
// If the vendor did count it, the next reading says so.
func (s *State) Untold(ordinal int64) {
	for i := range s.Tracks {
		if t := &s.Tracks[i]; t.Key != 0 && ordinal > t.Last.Ordinal {
			t.V++
			if ordinal > t.Base {
				t.Base++
			}
		}
	}
}

// Lapsed notes that departures from an ordinal on, so many, were counted but never
// took place.
func (s *State) Lapsed(first, count int64) {
	if last := first + count - 1; last > s.End.Ordinal {
		s.Refused += int(min(count, last-s.End.Ordinal))
	}
	for i := range s.Tracks {
		t := &s.Tracks[i]
		if t.Key != 0 && first > t.Last.Ordinal {
			t.V += float64(count)
			t.Base = max(t.Base, min(t.Base+count, first+count-1))
		}
	}
}

// read reads one quota.
func (t *Track) read(s *State, f *Fact, q *Quota) {
	at := t.order(f)
	v := q.Remaining + float64(at)
	if t.Readings == 0 || t.Limit != q.Limit {
		t.Limit, t.Top, t.Peaks = q.Limit, 0, 0
		t.V, t.At, t.Count, t.Since = v, f.Departed, 0, 0
	}
	if q.HasWindow && q.Window > 0 {
		t.Window = q.Window.Seconds()
	}
	if q.Remaining > t.Top {
		t.Top, t.Peaks = q.Remaining, 0
	}
	if q.Remaining == t.Top {
		t.Peaks = min(t.Peaks+1, 64)
	}
	t.Held, t.Flight = q.Held, q.inFlight()
	t.Liar = t.Liar || f.Refused && q.Remaining >= q.Limit/2
	t.Readings++
	t.Seen = t.Seen || t.Flight || q.Remaining >= max(1, min(2, q.Limit-1))
	t.Base = max(t.Base, f.Granted)
	t.match(f, q.Remaining)
	t.Agree = min(t.Agree+1, 64)
	if !t.Flight {
		t.level(s, f, v, q.Remaining, at)
	}
	if q.HasReset && q.Reset >= 0 && !t.Flight {
		t.resetAt(f, q)
	}
	switch {
	case f.Departed < t.Last.At:
	case f.guessed: // some that were let go may be to come, and have lower ordinals
		t.Last.At = f.Departed
	case at >= t.Last.Ordinal:
		t.Last = Mark{at, f.Departed}
	}
	if !t.Flight {
		t.slope(s, f, q.Remaining)
	}
}

// order returns the latest ordinal of those that had left when f did. A store lets
// go in the order of ordinals, but who was let go may leave after those let go later.
func (t *Track) order(f *Fact) int64 {
	if f.Departed > t.Last.At {
		return max(f.Ordinal, t.Last.Ordinal)
	}
	return f.Ordinal
}

// resetAt keeps the earliest told end of the window. Resets are rounded up, so
// the earliest is nearest to the truth.
func (t *Track) resetAt(f *Fact, q *Quota) {
	if q.Reset > 31*24*3600e9 {
		return
	}
	t.Full = max(t.Full, q.Reset.Seconds())
	at := f.Landed.Add(q.Reset)
	if ended := t.Reset > 0 && f.Landed.Add(time.Second) > t.Reset && at.Sub(t.Reset) > 2e9; ended && t.Slope == 0 && t.Full > coarse && q.Remaining < t.Limit/2 {
		// The window ended, and little is left in the next one: permits spent
		// before still count, and come back as time passes.
		t.Whole, t.Slope, t.Since = false, t.Limit/max(t.Full, t.Window), 0
	}
	exact := q.Reset%1e9 != 0 && f.Ordinal >= t.Last.Ordinal // a bucket's moves with each call
	if exact || t.Reset <= f.Landed || at < t.Reset || at.Sub(t.Reset) > 2e9 {
		t.Reset = at
	}
}

// level moves V to a reading.
func (t *Track) level(s *State, f *Fact, v, left float64, at int64) {
	if f.Departed > t.At {
		t.V += t.Slope * f.Departed.Sub(t.At).Seconds()
		if full := t.size() + float64(at) - 1; t.V > full {
			t.V, t.Since = full, 0
		}
		t.At = f.Departed
	}
	switch off := v - t.V; {
	case t.Last.Ordinal == 0: // the readings before were of guessed ordinals
		t.V, t.Since = v, 0
	case off < -max(2, float64(f.Flying)/2): // others spent
		t.V = v
		if off < -max(3, float64(f.Flying), t.Limit/2) {
			t.Agree = 0
		}
	case off > max(1.5, min(t.Limit/4, 3)) && off > 1+float64(f.Flying): // a window began, unless its end was told later
		d := f.Departed.Sub(t.Last.At).Seconds()
		if t.Slope == 0 && d > s.apart() && f.Ordinal > t.Last.Ordinal && t.Reset.Sub(f.Departed).Seconds() > t.blur() {
			t.Slope = max(t.guess(s, f, off, d, left), t.least())
		}
		if t.Slope == 0 {
			t.Whole = t.Full > coarse && left >= 0.9*t.Limit-float64(f.Flying)
		}
		t.V, t.Since = v, 0
		if t.Full > coarse {
			t.Asked = 0
		}
	default:
		t.V += off / float64(min(8, max(1, f.Flying)))
	}
}

// guess returns a first slope, after a reading that is off the level by so much, d
// seconds after the last one.
func (t *Track) guess(s *State, f *Fact, off, d, left float64) float64 {
	slope := off / max(2*d, s.RTT)
	if t.Since == 0 || left >= t.size()-1.5 { // it may have been full for a while
		return slope
	}
	since := f.Departed.Sub(t.Since).Seconds()
	return min(slope, (t.V+off-t.From)/max(since, d))
}

// apart returns the fewest seconds between two departures whose readings show that a
// level rises. Calls of several processes that leave at the same time reach the
// vendor in any order.
func (s *State) apart() float64 {
	if s.Setting.Shared {
		return s.RTT / 2
	}
	return 0
}

// slope measures how fast the level rises while it is not full.
func (t *Track) slope(s *State, f *Fact, left float64) {
	if left >= t.size()-1.5 { // full: how fast it would have risen shows no more
		t.Since = 0
		// Calls that leave at about its rate do not empty it, so it rises faster.
		// After a pause it is full anyhow.
		if pace := s.pace(f); f.Waited && pace > 0.7*t.Slope && t.Slope > 0 {
			t.Slope = max(t.Slope, min(s.beyond()*pace, t.Slope*(1+0.4/float64(max(1, f.Flying)))))
			t.Readings = min(t.Readings, mostReadings/2) // it is a bound, and no measurement
		}
		return
	}
	if t.Since == 0 {
		t.From, t.Since, t.Count = t.V, f.Departed, 0
		return
	}
	t.Count++
	d, rise := f.Departed.Sub(t.Since).Seconds(), t.V-t.From
	if d < 2*s.RTT || t.Count < 8 {
		return
	}
	noise := 3 + float64(f.Flying)/2
	switch {
	case t.Slope == 0 && rise >= noise:
		t.Slope = rise / d
	case t.Slope > 0 && t.Slope*d-rise > 2*noise: // it rises less, or stands still
		if t.Slope*d > 5*noise && rise < noise/2 {
			t.Slope = 0
		} else {
			t.Slope = max(rise/d, t.Slope/2)
		}
	case t.Slope > 0 && t.Count >= 32 && rise >= noise && d >= 0.25:
		t.Slope += (rise/d - t.Slope) / 2
	default:
		return
	}
	if t.Slope < t.least() {
		t.Slope = 0
	}
	t.From, t.Since, t.Count = t.V, f.Departed, 0
}

// beyond returns how many times the rate at which calls leave a full level is taken to
// rise. Processes that share a lane hear late that it falls, and they leave faster than
// the slope anyhow until the level is down to its reserve.
func (s *State) beyond() float64 {
	if s.Setting.Shared {
		return 1
	}
	return 1.3
}

// least returns the lowest slope that matters. A bucket is full again no later
// than told, so it gains its limit in that time.
func (t *Track) least() float64 {
	if t.Full == 0 {
		return 0
	}
	return 0.4 * t.Limit / t.Full
}

// blur returns by how many seconds a reset may be told too late: for whole
// seconds, and for the whole seconds of a Date.
func (t *Track) blur() float64 {
	if t.Full > 3 {
		return 2
	}
	return 0
}

// match counts the readings that a bound of calls in flight would give: the
// limit less the calls in flight, except that calls overtake each other on the
// way.
func (t *Track) match(f *Fact, left float64) {
	off := left + float64(f.Flying) - t.Limit
	switch blur := 1 + t.Limit/16 + float64(f.Flying)/4; {
	case f.Refused && float64(f.Flying) <= t.Limit: // so it counts something else
		t.Match = max(-64, t.Match-32)
	case f.Refused:
	case off < -blur, off > blur && left > 0:
		t.Match = max(min(t.Match, 0), t.Match-4)
	default:
		t.Match = min(t.Match+1, 64)
	}
}

// flying reports whether the limit bounds calls in flight. Such a limit tells
// no reset, because nobody knows when a call in flight ends.
func (t *Track) flying() bool { return t.Flight || t.Match >= 8 && t.Reset == 0 }

// left returns how many permits are left at an instant.
func (t *Track) left(now throttle.Instant, granted int64) float64 {
	v := t.V
	switch {
	case t.Slope > 0 && now > t.At:
		v += t.Slope * now.Sub(t.At).Seconds()
	case t.Slope == 0 && t.Reset > t.At && now >= t.Reset:
		fresh := 1.0 // a log gives back one by one
		if t.Whole {
			fresh = t.Limit
		}
		v = max(v, float64(t.Base)+fresh)
	}
	return min(v-float64(granted), t.size())
}

// binds reports whether the track is believed.
func (t *Track) binds(s *State) bool {
	return t.Key != 0 && t.Seen && t.Strikes < 3 && t.Agree >= 3 &&
		s.Last.Ordinal-t.Last.Ordinal <= 64
}
