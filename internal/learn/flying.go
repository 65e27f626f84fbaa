package learn

import (
	"cmp"
	"math"
)

// A quota may count calls in flight although its name does not say so. Then what is left depends on the calls in flight
// alone: a limit of 10 reports 7 whenever three are in flight, however many were served.

const matches = 8 // readings that show a bound of calls in flight, or a call that tells. Test "ReportedBoundOfCallsInFlightIsNoRate"

// Matching is the evidence that a quota counts calls in flight.
type Matching struct {
	Match  int   // readings equal to the limit less the calls in flight, less four for each other one; negative: refuted
	Fewest int   // calls in flight in those readings
	Tells  int64 // ordinal of a call that departs alone with nothing left: if it is served, calls in flight are counted
}

// match counts the readings that a bound of calls in flight would give: the limit less the calls in flight, give or take
// those that overtake each other. A slow vendor may count them when it answers. A reading counts only once so many calls
// were served that a quota of calls would be lower, or if its call is that of Tells.
func (t *Ceiling) match(f *Fact, left float64) {
	flying, landing, limit := float64(f.Flying), float64(f.Flying), cmp.Or(t.Limit, t.size())
	slow, tells := f.Landed.Sub(f.Departed).Seconds() >= answers, f.Flying == 1 && f.Ordinal == t.Tells
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

// reportedPlaces returns an answer's report of calls in flight, and its bound; nil: none, or processes share the lane.
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
