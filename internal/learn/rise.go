package learn

import (
	"math"

	"github.com/weirgo/weir/throttle"
)

// The rise of a level line is the vendor's rate, measured without a refusal. Two readings bound it exactly. Between a reading
// with the level in [low, high] and a later one in [Low, High], it rose by Low-high at least and High-low at most.

const (
	leastMeasure = 0.5  // least seconds of a measurement
	fewRise      = 16   // least rise of the level in a measurement, in permits
	orderly      = 8    // times as exact as its bounds is a reading usually: they allow for calls that overtake each other
	aboveFull    = 1.15 // of the departure rate at a full level: bound of the slope
	fullPace     = 0.7  // of a settled slope: callers who depart more slowly leave the level full themselves
	fullRise     = 0.4  // of the slope: its most growth in a round trip at a full level
	unspent      = 0.2  // least rise of the logarithm of the search's rate for an answer at a full level. Test "AFullBucketRaisesTheRateThatItsRefusalsTaught"
)

// Rising is how fast a level rises.
type Rising struct {
	Slope float64          // permits per second by which V rises; zero: constant, or unknown
	Found float64          // least Slope at the last good measurement; zero: none
	Stood Level            // the bounds of V when it began to rise; At: the newest reading before that
	Risen float64          // permits by which V has risen since then
	Blur  float64          // error of Slope, in permits per second; as great as Slope: it is only a bound
	Cut   throttle.Instant // arrival of the answer for which Slope was last lowered
	From  Level            // start of the measurement of Slope; At is zero: nothing is measured
	Mid   Level            // start of the next one
	Prev  Level            // the newest reading
}

// A Level bounds the ordinal at which the quota runs out by a reading: Low if calls in flight arrive later, High if earlier.
type Level struct {
	Low, High float64
	At        throttle.Instant
	Granted   int64 // latest ordinal when the answer came
}

// spared returns the level if n departures from an ordinal on spent nothing.
func (l Level) spared(first int64, n float64) Level {
	if l.Low += n; first > l.Granted {
		l.High += n
	}
	l.High = max(l.High, l.Low)
	return l
}

// rise measures how fast the level rises while it is not full, by the reading or by the line (brim): a full level shows the
// lane's own pace alone. A lane that takes a share leaves it full, so it goes on measuring there until Found is known, or
// if as many as half of the quota depart in a round trip.
func (t *Ceiling) rise(s *State, f *Fact, left float64, here Level, brim bool) {
	d := here.At.Sub(t.From.At).Seconds()
	if t.From.At == 0 || d <= 0 {
		t.From, t.Mid = here, here
		return
	}
	full := t.full(f, left)
	if full && s.Setting.Shared && t.binds(s) {
		s.Full = f.Ordinal
	}
	if full && s.Setting.part() == 1 || (full || brim) && (t.Found > 0 || t.size() <= 2*few) && t.size() >= 2*t.Slope*s.RTT {
		t.overflow(s, f, here)
		return
	}
	if t.Mid.At < t.From.At {
		t.Mid = t.From
	}
	least, most := here.Low-t.From.High, here.High-t.From.Low
	slope, blur := max(0, least+most)/2/d, (1+max(0, most-least)/orderly)/d
	known := t.Slope
	switch {
	case t.Slope == 0 && (least < 1 || d <= s.apart()):
		t.From.High = min(t.From.High, here.High) // it was no higher before
		if t.stand(s, left, here); least < 1 {
			t.Stood.At = here.At
		}
		return
	case t.Slope == 0, math.Abs(slope-t.Slope) > blur+t.Blur: // it is seen to rise, or has changed
		t.Slope, t.Blur, t.From = slope, blur, t.Mid
	case blur <= t.Blur && blur < max(slope, t.Slope)/2:
		t.Slope, t.Blur = slope, blur
	}
	if t.Blur <= agreed*t.Slope && left < t.size()/2 { // near the top it rises no faster than calls depart
		t.Found = t.Slope - t.Blur
	}
	if t.Slope != known && least+most < 2 { // it is constant
		t.Slope, t.Risen, t.Stood, t.From, t.Mid = 0, 0, here, here, here
		return
	}
	if here.At.Sub(t.Mid.At).Seconds() > max(leastMeasure, fewRise*t.Call/t.Slope, 4*s.RTT) {
		t.From, t.Mid = t.Mid, here
	}
}

// overflow applies a full level. It rose at least as fast as the readings show, and faster if calls
// depart about as fast as its assumed rise without emptying it. After a pause it is full anyhow.
func (t *Ceiling) overflow(s *State, f *Fact, here Level) {
	for _, l := range [...]Level{t.Mid, t.Prev} {
		if d, least := here.At.Sub(l.At).Seconds(), here.Low-l.High; d > s.apart() && least >= 1 && least/d > t.Slope {
			t.Slope = least / d
			t.Blur = t.Slope // a bound, not a measurement
		}
	}
	if t.Slope == 0 {
		return
	}
	if t.From = here; here.At.Sub(t.Mid.At).Seconds() > 4*s.RTT {
		t.Mid = here
	}
	pace := s.pace(f)
	if !f.Waited || pace < fullPace*t.Slope && t.Blur <= settled*t.Slope { // with a greater error, paced itself lets fewer depart
		return
	}
	t.Slope = max(t.Slope, min(aboveFull*pace, t.Slope*(1+fullRise/float64(max(1, f.Flying)))))
	t.Blur = t.Slope
}

// apart returns the fewest seconds between two departures whose readings measure the rise of a level: their
// distance changes on the way. Departures of processes that share a lane also differ from the store's order.
func (s *State) apart() float64 {
	if s.Setting.Shared {
		return s.RTT / 2
	}
	return s.RTT / 8
}
