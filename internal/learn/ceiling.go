package learn

import "github.com/weirgo/weir/throttle"

// A Ceiling is what answers report of one quota. Say L calls of the lane had been answered when call i departed, and its
// answer reports r permits remaining. In whatever order calls arrive, the vendor then grants every call up to number
//
//	C = r + L + 1
//
// unless others spend from the quota or its window ends. Departures are counted, without the refused ones:
//
//	call 40 departed when 36 were answered, "4 remaining": calls up to 41 are granted
//
// One of the answered calls arrived last, and the least reading or more was left then. So once n calls are answered, as
// many more as the least reading are granted. No departure exceeds C, whatever a reset means, until V is seen to rise: from
// the first reading on or, in a lane with a configured rate, from the first refusal. After a second without an answer one
// call departs. If calls arrive in the order in which they departed, the quota lasts up to call V = r + i: the level line.
// V stands still in a window, and rises with the rate of a bucket (rise.go).
type Ceiling struct {
	Key    uint64  // of the quota; zero: the place is free
	Limit  float64 // as reported; zero: it was not
	Window float64 // seconds, as reported; zero: it was not
	Top    float64 // most permits left in any reading
	Peaks  int     // readings with Top left

	C        float64 // every call up to this ordinal is granted
	V        float64 // ordinal at which the quota runs out, if calls arrive in order
	Last     Mark    // newest call with a reading: C and V are those at its departure
	Answered int64   // newest call that was answered, with a reading or without
	Lowest   float64 // least reading since no call was in flight
	Counted  int64   // calls answered when no call was in flight, and those with a reading since then
	Call     float64 // permits that a call usually takes

	Rising                  // rise.go
	Ending                  // window.go
	Looks                   // look.go
	Matching                // flying.go
	Odd      int            // readings in a row with more left than their window can have: trust.go
	Sent     [logMarks]Mark // departures, an eighth of the quota apart or more: window.go
	Term     Term           // of a reset that the lane waits for: await.go

	// Flags stand side by side, because each alone takes eight bytes of every lane.
	Rough  bool // resets are reported in whole seconds
	Flight bool // the vendor says that it counts calls in flight
	Stands bool // V stands still until a window ends
	Whole  bool // the last window began with all of its permits
	Held   bool // the lane itself waits for Reset when nothing is left
}

const (
	few         = 4  // permits: with as few beside twice the calls in flight, a quota is too small for C to bound departures; error of small counts
	maxCeilings = 6  // bounds the state: vendors report four windows at most
	forgotten   = 64 // calls without a reading, after which a quota no longer counts
)

// ceilingOf returns the ceiling of the quota with a key. A new one takes the place of the oldest, which is a contradiction.
func (s *State) ceilingOf(key uint64) *Ceiling {
	oldest := &s.Ceilings[0]
	for i := range s.Ceilings {
		t := &s.Ceilings[i]
		if t.Key == key {
			return t
		}
		if t.Last.At < oldest.Last.At {
			oldest = t
		}
	}
	if oldest.Key != 0 {
		s.contradict()
	}
	*oldest = Ceiling{Key: key}
	return oldest
}

// read applies the quotas that an answer reports.
func (s *State) read(f *Fact) {
	if f.Refused {
		s.spare(f.Ordinal, 1)
	}
	for i := range f.Quotas {
		if q := &f.Quotas[i]; q.sane() {
			t := s.ceilingOf(q.Key())
			t.Call = max(1, s.Cost)
			if (!f.guessed || t.Last.Ordinal == 0) && t.observe(s, f, q) { // a level is counted from the departure
				t.counted(s, f, q.Remaining)
			}
			if s.Setting.Waits {
				t.await(f, q)
			}
		}
	}
	if !f.Refused && !f.guessed {
		s.Unread(f.Ordinal)
	}
}

// Unread notes that a departure was answered without a reading, by a quota or by all of them, or never will be
// answered. The vendor is taken not to have counted it there: it failed on the way, or another route's quota paid for
// it. If the vendor did count it, the next reading says so. That is true of the level line alone: C stays.
func (s *State) Unread(ordinal int64) {
	for i := range s.Ceilings {
		if t := &s.Ceilings[i]; t.Key != 0 && ordinal > t.Answered {
			t.Answered = ordinal
			t.V++
			t.Prev.High++
		}
	}
}

// Lapsed notes that count departures, from the ordinal first on, spent nothing, as far as is known.
func (s *State) Lapsed(first, count int64) {
	if last := first + count - 1; last > s.End.Ordinal {
		s.Refused += int(min(count, last-s.End.Ordinal))
	}
	s.spare(first, count)
}

// spare notes that count departures, from the ordinal first on, spent no permit.
func (s *State) spare(first, count int64) {
	n := float64(count)
	for i := range s.Ceilings {
		if t := &s.Ceilings[i]; t.Key != 0 {
			t.Counted += count
			t.C, t.From, t.Mid, t.Prev, t.Stood = t.C+n, t.From.spared(first, n), t.Mid.spared(first, n), t.Prev.spared(first, n), t.Stood.spared(first, n)
			if first > t.Last.Ordinal {
				t.V += n
				t.Answered = max(t.Answered, first+count-1)
			}
		}
	}
}

// observe applies a reading. It returns false if the reading does not count yet.
func (t *Ceiling) observe(s *State, f *Fact, q *Quota) bool {
	first := t.Last.Ordinal == 0 || q.HasLimit && q.Limit != t.Limit
	if first {
		if t.Last.Ordinal > 0 { // another limit
			s.contradict()
			t.Top = 0
		}
		*t = Ceiling{Key: t.Key, Limit: q.Limit, Lowest: q.Remaining, Counted: f.Ordinal - int64(max(1, f.Flying)), Call: t.Call, Top: t.Top} // Top stays: a call without an ordinal shows how much can be left
	}
	if q.HasWindow && q.Window > 0 {
		t.Window = q.Window.Seconds()
	}
	t.Held, t.Flight = q.Held, q.inFlight()
	older := !first && (f.Departed < t.Last.At || f.Departed == t.Last.At && f.Ordinal < t.Last.Ordinal)
	if t.Odd++; !first && !older && t.Odd < oddly && t.odd(f, q) {
		t.Answered = max(t.Answered, f.Ordinal)
		return false
	}
	t.Odd = 0
	if q.Remaining > t.Top {
		t.Top, t.Peaks = q.Remaining, 0
	}
	if q.Remaining == t.Top {
		t.Peaks = min(t.Peaks+1, mostDoubt)
	}
	t.match(f, q.Remaining)
	t.Answered = max(t.Answered, f.Ordinal)
	if older { // a newer call says more
		if !t.fills() && f.Ordinal > t.Jump.Ordinal { // but no reading allows a window more
			t.V = max(t.C, min(t.V, q.Remaining+float64(f.Granted)))
		}
		return true
	}
	at := max(f.Ordinal, t.Last.Ordinal) // a caller may depart after one that was granted later
	if !t.Flight {
		t.level(s, f, q.Remaining, float64(at), first)
		if q.HasReset && q.Reset > 0 && q.Reset < longestReset {
			t.resetAt(f, q)
		}
		if !f.Refused {
			t.mark(at, f.Departed)
		}
	}
	t.Last = Mark{at, f.Departed}
	if f.guessed && !t.Flight { // granted calls that are still to come may have lower ordinals
		t.Last.Ordinal = 0
	}
	return true
}

// counted raises C by the calls with a reading: one of them arrived last.
func (t *Ceiling) counted(s *State, f *Fact, left float64) {
	if !f.Refused {
		t.Counted++
	}
	t.Lowest = min(t.Lowest, left)
	t.C = max(t.C, float64(t.Counted)+t.Lowest)
	t.V = max(t.V, t.C)
	if f.Answered > 0 && f.Answered >= f.Granted { // later calls arrive after all of these
		t.Counted, t.Lowest = f.Granted, t.Top
		if !f.Refused && t.V-float64(f.Granted) < 1 && t.Match >= 0 && t.Reset == 0 && t.Window == 0 {
			t.Tells = f.Granted + 1               // served, if only calls in flight count
			t.C = float64(t.Tells) + t.readers(s) // so that pace lets this call depart
		}
	}
}

// size returns how many permits can be left at most, as far as readings show it: each is without its own call's.
func (t *Ceiling) size() float64 { return t.Top + 1 }

// full reports whether so many left may be all there are: the level cannot show how fast it would rise. Calls that arrive
// together find it lower by some of their number. A limit may be reported as a rate, such as "200 in 1 s", without its burst.
func (t *Ceiling) full(f *Fact, left float64) bool {
	below := func(most float64) float64 { return most - 0.5 - min(float64(f.Flying)/4, most/16) }
	return t.Limit > 0 && left >= below(t.Limit-1) || t.Peaks > 1 && left >= below(t.Top)
}

// level moves C and V to a reading.
func (t *Ceiling) level(s *State, f *Fact, left, at float64, first bool) {
	flying := float64(max(1, f.Flying))
	here := Level{left + at - flying + 1, left + max(at, float64(f.Granted)), f.Departed, f.Granted}
	if first {
		t.C, t.V, t.Prev, t.Stood, t.Jump = here.Low, left+at, here, here, Mark{f.Ordinal, f.Departed}
		t.schedule(s, left, here)
		return
	}
	d := f.Departed.Sub(t.Last.At).Seconds()
	brim := s.Setting.part() < 1 && t.fills() && t.V+t.Slope*d >= at-1+t.size() // full by the line
	if t.fills() {
		t.V = min(t.V+t.Slope*d, at-1+t.size())
	}
	s.Doubt = max(0, s.Doubt-1)
	switch {
	case t.V > here.High+1: // fewer are left than the line allows: others spent
		if t.V-here.High > max(3, t.size()/2) {
			s.contradict()
			if t.Peaks <= 1 { // it was never reported again, so it may be garbage, of which no part is kept
				t.Top, t.Peaks = left, 1
			}
		}
		if t.V-here.High > max(1, t.size()/8) { // more than calls that overtook each other show
			t.C = here.Low
		}
		t.V = left + at
	case t.V < here.Low-1: // more are left: a window has begun, or the level rises
		t.jump(f, left, here)
		t.V, t.C = left+at, here.Low
	default: // as expected: with more calls in flight, which overtake each other, a reading says less
		t.V += (left + at - t.V) / min(8, flying)
	}
	if t.C = max(t.C, here.Low); t.C > here.High { // no more can be left than if all departures since were to come
		t.C = here.Low
	}
	t.V = max(t.V, t.C)
	t.Risen = max(t.Risen, here.Low-t.Stood.High)
	if left > 0 || s.Setting.part() == 1 { // a share that is spent may be overdrawn, and shows no rise
		t.rise(s, f, left, here, brim)
	}
	t.schedule(s, left, here)
	t.Prev = here
}

// left returns how many permits are left at an instant by the level line.
func (t *Ceiling) left(now throttle.Instant, granted int64) float64 {
	v := t.V - float64(granted)
	if t.fills() { // a limit may be a rate, and the bucket smaller
		return min(v+t.Slope*max(0, now.Sub(t.Last.At).Seconds()), t.size())
	}
	return min(v, max(t.Limit, t.size()))
}

// fills reports whether the level is a bucket's: it rose by more than it can hold. A log's rises once, by what was spent.
func (t *Ceiling) fills() bool { return t.Slope > 0 && t.Risen >= t.size() }
