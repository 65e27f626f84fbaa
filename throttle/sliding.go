package throttle

import (
	"math/bits"
	"time"
)

// A sliding enforces a sliding window with two counters. The permits of the window
// before count in proportion to its part in the span that ends now, rounded down. With
// those of this window they are at most the limit's.
//
// The estimate takes the window before to have been even. If all its permits left in
// its last instant, they are forgotten while they are still in the span. Nearly twice
// the permits then leave in a span.
type sliding struct {
	counting
	counts counts
}

// counts are the permits used in the window that begins at start, and in the
// two before it.
type counts struct {
	start             Instant
	this, before, ago int64
}

// newSliding returns the rule of a limit, with no departures.
func newSliding(l Limit) *sliding {
	return &sliding{counting: countingOf(l), counts: counts{start: minInstant}}
}

// at returns the counts at an instant, or those in force if they are later.
func (s *sliding) at(now Instant) counts {
	c := s.counts
	next := c.start.Add(s.limit.Per)
	if now < next {
		return c
	}
	start, _ := alignment{per: s.limit.Per}.multiple(now)
	if start != next {
		return counts{start: start}
	}
	return counts{start, 0, c.this, c.before}
}

// earliest returns when n more permits keep the estimate within the limit and
// the spacing lets them go.
func (s *sliding) earliest(a asking, n int64) Instant {
	c := s.at(a.now)
	opens := s.opens(c, n+a.leave)
	if a.now < c.start {
		opens = max(opens, c.start)
	}
	return max(opens, s.spacing.earliest())
}

// opens returns since when n more permits keep the estimate within the limit.
func (s *sliding) opens(c counts, n int64) Instant {
	n = min(n, s.permits) // of more than is counted, one request has all
	if c.this+c.before+c.ago+n <= s.permits {
		return c.start.Add(-s.limit.Per)
	}
	for {
		if room := s.permits - c.this - n; room >= 0 {
			if left := fades(s.limit.Per, c.before, room); left > 0 {
				return c.start.Add(s.limit.Per - left)
			}
		}
		c = counts{c.start.Add(s.limit.Per), 0, c.this, c.before}
	}
}

// fades returns how long before the end of a window n permits weigh no more than room, in
// whole permits, if their weight falls evenly to zero until then.
func fades(per time.Duration, n, room int64) time.Duration {
	if n <= room {
		return per
	}
	// n x left / per < room+1, the product in 128 bits.
	hi, lo := bits.Mul64(uint64(room+1), uint64(per))
	lo, borrow := bits.Sub64(lo, 1, 0)
	left, _ := bits.Div64(hi-borrow, lo, uint64(n))
	return time.Duration(left)
}

// weight returns how many whole permits those of the window before count.
func (s *sliding) weight(c counts, now Instant) int64 {
	left := min(c.start.Add(s.limit.Per).Sub(now), s.limit.Per)
	hi, lo := bits.Mul64(uint64(c.before), uint64(left))
	weight, _ := bits.Div64(hi, lo, uint64(s.limit.Per))
	return int64(weight)
}

// spend counts the permits at the departure.
func (s *sliding) spend(a asking, charged Instant, n int64) Instant {
	s.charge(a.now, n)
	s.spacing.spend(a.now, charged, n)
	return charged
}

// charge adds n permits to the window that holds now.
func (s *sliding) charge(now Instant, n int64) {
	s.counts = s.at(now)
	s.counts.this = counted(s.counts.this, n)
}

func (s *sliding) overspend(now Instant, n int64) { s.charge(now, n) }

func (s *sliding) refund(_, at Instant, n int64) { s.relieve(at, at, n) }

// relieve takes back permits from the window that holds the instant at. If they
// left after that window's end, they are taken from the counter that weighs
// less, on the strict side.
func (s *sliding) relieve(now, at Instant, n int64) {
	c := s.at(now)
	switch {
	case at >= c.start:
		c.this = max(c.this-n, 0)
	case at >= c.start.Add(-s.limit.Per):
		c.before = max(c.before-n, 0)
	default:
		return
	}
	s.counts = c
	s.spacing.relieve(n)
}

// whole reports whether both counters are zero and nothing is spaced.
func (s *sliding) whole(now Instant) bool {
	c := s.at(now)
	return c.this == 0 && c.before == 0 && s.spacing.over(now)
}

// used returns the estimate, in whole permits.
func (s *sliding) used(now Instant) int64 {
	c := s.at(now)
	return c.this + s.weight(c, now)
}

// adopt keeps the counters if the windows are the same. Otherwise it counts, in
// this window, what the other rule had used.
func (s *sliding) adopt(now, _ Instant, old rule) {
	if was, ok := old.(*sliding); ok && was.limit.Per == s.limit.Per {
		s.counts = was.at(now)
	} else {
		s.charge(now, min(old.used(now), s.permits))
	}
	evenly := spaced(now, now.Add(s.limit.Per), s.permits)
	s.spacing = spacedChange(evenly, now, s.permits-s.used(now), old.state(now))
}

// state returns what the estimate leaves.
func (s *sliding) state(now Instant) LimitState {
	return s.report(now, s.earliest(asking{now: now, line: Never}, 1), s.used(now))
}
