package learn

import (
	"cmp"
	"math"
	"time"

	"github.com/weirgo/weir/throttle"
)

// A vendor's reports may be garbage, or mean something else. They are believed while readings agree.

const (
	mostDoubt = 16  // at which nothing is believed: a contradiction counts for five, an agreement for one. Style "odd" of the random vendors
	oddly     = 3   // one reading in ten may be old, and then each window has two in a row
	matches   = 8   // readings that show a bound of calls in flight, or a call that tells. Test "ReportedBoundOfCallsInFlightIsNoRate"
	slower    = 0.7 // factor of a slope that led to a refusal, once in a round trip. TestSlowBucketWithoutResetIsUsed
)

// Trust is the evidence against a ceiling.
type Trust struct {
	Match  int   // readings equal to the limit less the calls in flight, less four for each other reading
	Fewest int   // calls in flight in those readings
	Tells  int64 // the call that leaves alone after all before it are answered, and none is left: it tells what is counted
	Odd    int   // readings in a row above their window's possible rest
}

// blames reports whether a ceiling explains the refusal of f: it has hardly anything left.
func (s *State) blames(f *Fact, now throttle.Instant) (blamed bool) {
	for i := range s.Ceilings {
		t := &s.Ceilings[i]
		left := t.left(now, f.Ordinal)
		if !t.binds(s) || t.flying() || left > max(2, float64(f.Flying)/4) {
			continue
		}
		blamed = true
		switch wait := f.Until.Sub(f.Landed) - time.Second; { // it may be rounded up
		case !t.fills():
		case f.Until.Sub(t.Reset).Abs() <= time.Second && t.Slope*wait.Seconds() >= standing: // a bucket would have a permit sooner: a window ends then
			t.becomeWindow()
		case left < 1 && f.Landed.Sub(t.Cut).Seconds() > s.RTT: // it rises more slowly than believed, or not at all
			t.Slope, t.Blur, t.From, t.Cut = slower*t.Slope, slower*t.Slope, t.Mid, f.Landed
		}
	}
	return blamed
}

func (s *State) contradict() { s.Doubt = min(s.Doubt+5, 2*mostDoubt) }

// match counts the readings that a bound of calls in flight would give: the limit less the calls in
// flight, except that calls overtake each other on the way. A slow vendor may count them when it
// answers. A reading counts only if a quota of calls would have been spent further, or if it tells.
func (t *Ceiling) match(f *Fact, left float64) {
	flying, landing, limit := float64(f.Flying), float64(f.Flying), cmp.Or(t.Limit, t.size())
	slow, tells := f.Landed.Sub(f.Departed) >= answers*time.Second, f.Flying == 1 && f.Ordinal == t.Tells
	if (slow || f.Refused) && f.Answered > 0 {
		landing = float64(f.Granted-f.Answered) + 1
	}
	off, blur := left+flying-limit, 1+limit/16+flying/4
	switch landed := float64(f.Ordinal-max(0, t.Jump.Ordinal-1)) - flying; {
	case tells && !f.Refused && min(math.Abs(off), math.Abs(left+landing-limit)) <= 1:
		t.Match, t.Fewest = max(t.Match, 0)+matches, 1
	case tells: // refused, or not all the others are free
		t.Match = -1
	case left > 0.75*limit, landed < max(limit/4, 2*blur):
	case f.Refused && max(flying, landing) <= cmp.Or(t.Limit, limit/2): // so it counts something else
		t.Match = -mostDoubt
	case f.Refused:
	case (off < -blur || left > 0 && off > blur) && math.Abs(left+landing-limit) > 1:
		t.Match = max(min(t.Match, -1), t.Match-4)
	case t.Limit > 0 || slow: // a small bucket without a limit looks the same, if answers are fast
		if t.Match <= 0 {
			t.Fewest = f.Flying
		}
		t.Match, t.Fewest = min(t.Match+1, 2*mostDoubt), min(t.Fewest, f.Flying)
	}
}

// flying reports whether the limit bounds calls in flight. Such a limit reports no reset and no window, because
// the end of a call in flight is unknown, and more are left if fewer are in flight.
func (t *Ceiling) flying() bool {
	return t.Flight || t.Match >= matches && t.Reset == 0 && t.Window == 0 && 2*t.Fewest <= int(cmp.Or(t.Limit, t.size()))
}

// reportedPlaces returns the vendor's report of calls in flight, which readings may have shown it to be, and its bound;
// nil: none, or processes share the lane.
func (s *State) reportedPlaces(f *Fact) (q *Quota, most float64) {
	for i := range f.Quotas {
		if q = &f.Quotas[i]; q.sane() && !s.Setting.Shared {
			if t := s.ceilingOf(q.Key()); t.flying() {
				return q, cmp.Or(t.Limit, t.size())
			}
		}
	}
	return nil, 0
}
