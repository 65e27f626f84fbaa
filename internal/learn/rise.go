package learn

import (
	"math"

	"github.com/weirgo/weir/throttle"
)

// The rise of a level line is the vendor's rate, measured without a refusal. What two
// readings say of it is exact: between a reading that leaves the level in [low, high] and
// a later one in [Low, High], it rose by Low-high at least and by High-low at most.

const (
	leastMeasure = 0.5  // seconds that a measurement takes at least
	fewRise      = 16   // permits by which the level rises in a measurement at least
	orderly      = 8    // calls that overtake each other make a reading that much better than its bounds, as usual
	wayAbove     = 1.15 // of the rate at which calls leave a full level: the slope is that high at most
)

// Rising is how fast a level rises.
type Rising struct {
	Slope float64          // permits per second by which V rises; zero: it stands still, or is not known
	Found float64          // the least that Slope was when it was measured well last; zero: it never was
	Stood Level            // the newest reading before V began to rise
	Risen float64          // permits by which V has risen since then
	Blur  float64          // error of Slope, in permits per second
	Cut   throttle.Instant // when the answer came for which Slope was last lowered
	From  Level            // where the measurement of Slope began; its At is zero if none is under way
	Mid   Level            // where the next one begins
	Prev  Level            // the newest reading
}

// A Level is what a reading says of the ordinal at which the quota runs out: it is
// Low if all calls in flight arrived after the one that was answered, and High if they
// arrived before.
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

// rise measures how fast the level rises while it is not full.
func (t *Ceiling) rise(s *State, f *Fact, left float64, here Level) {
	d := here.At.Sub(t.From.At).Seconds()
	if t.From.At == 0 || d <= 0 {
		t.From, t.Mid = here, here
		return
	}
	if t.full(f, left) {
		t.overflow(s, f, here)
		return
	}
	if t.Mid.At < t.From.At {
		t.Mid = t.From
	}
	least, most := here.Low-t.From.High, here.High-t.From.Low
	slope, blur := max(0, least+most)/2/d, (1+(most-least)/orderly)/d
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
	if t.Blur < t.Slope/4 && left < t.size()/2 { // near the top it rises no faster than calls leave
		t.Found = t.Slope - t.Blur
	}
	if t.Slope != known && least+most < 2 { // it stands still
		t.Slope, t.Risen, t.Stood, t.From, t.Mid = 0, 0, here, here, here
		return
	}
	if here.At.Sub(t.Mid.At).Seconds() > max(leastMeasure, fewRise*t.Call/t.Slope, 4*s.RTT) {
		t.From, t.Mid = t.Mid, here
	}
}

// overflow takes in a full level. It rose at least as fast as readings say, and faster if calls
// leave about as fast as it is believed to rise: they do not empty it. After a pause it is full
// anyhow.
func (t *Ceiling) overflow(s *State, f *Fact, here Level) {
	for _, l := range [...]Level{t.Mid, t.Prev} {
		if d, least := here.At.Sub(l.At).Seconds(), here.Low-l.High; d > s.apart() && least >= 1 && least/d > t.Slope {
			t.Slope = least / d
			t.Blur = t.Slope // it is a bound, and no measurement
		}
	}
	if t.Slope == 0 {
		return
	}
	if t.From = here; here.At.Sub(t.Mid.At).Seconds() > 4*s.RTT {
		t.Mid = here
	}
	if s.Setting.part() < 1 && t.Found > 0 { // it is full because only a share is taken
		return
	}
	pace := s.pace(f)
	if !f.Waited || pace < 0.7*t.Slope && t.Blur <= settled*t.Slope { // paced subtracts a greater error
		return
	}
	t.Slope = max(t.Slope, min(wayAbove*pace, t.Slope*(1+0.4/float64(max(1, f.Flying)))))
	t.Blur = t.Slope
}

// apart returns the fewest seconds between two departures whose readings show how fast a level
// rises: on the way the time between them changes. Processes that share a lane leave in another
// order than a store numbered them, too.
func (s *State) apart() float64 {
	if s.Setting.Shared {
		return s.RTT / 2
	}
	return s.RTT / 8
}
