package throttle

import (
	"slices"
	"time"
)

// An Overtaker is a [Limiter] that knows what it costs the caller at the head
// of a line if another goes before it. It is found by type assertion; the
// limiters of [Local] are Overtakers. Its methods are safe for concurrent use.
type Overtaker interface {
	// Overtake is Take for r, whose caller stands in line behind that of head. It
	// spends nothing, and returns [Never], if head could then go later than it
	// could now by more than most. If it spends the permits, it returns by how much
	// later head can go. In a bucket of 10/s in which head waits for 20 permits,
	// a permit for r delays head by 100 ms; in a fixed window that has less left
	// than head asks for, it delays head by nothing.
	Overtake(now Instant, r, head Request, most time.Duration) (at Instant, delay time.Duration, err error)
}

var _ Overtaker = (*set)(nil)

// A first is a departure that is imagined to come before the one that is asked
// about.
type first struct {
	asking
	charged Instant
	n       int64 // permits of the limit that is asked
}

// Overtake implements [Overtaker].
func (s *set) Overtake(now Instant, r, head Request, most time.Duration) (at Instant, delay time.Duration, err error) {
	s.lock()
	if at, delay, err = s.overtaking(now, &r, &head); err == nil && at <= now {
		if delay <= most {
			at, _, err = s.take(now, &r)
			s.unlock(now)
			return at, delay, err
		}
		at = Never
	}
	s.unlockAsFound()
	return at, 0, err
}

// overtaking returns when r may go and, if that is now, by how much later head
// can go then.
func (s *set) overtaking(now Instant, r, head *Request) (at Instant, delay time.Duration, err error) {
	if err := s.check(r); err != nil {
		return 0, 0, err
	}
	a := s.asking(now, r)
	allowed := s.allowed(a, r)
	if allowed > now {
		return allowed, 0, nil
	}
	alone := max(s.allowed(s.asking(now, head), head), now)
	f := first{asking: a, charged: max(allowed, a.line)}
	return now, s.allowedAfter(&f, r, head).Sub(alone), nil
}

// allowedAfter returns when head can go, not before f, if r departs before it
// as f says.
func (s *set) allowedAfter(f *first, r, head *Request) Instant {
	a := s.asking(f.now, head)
	for {
		allowed := max(Instant(s.pausedTo.Load()), s.tunedAt, f.now)
		for i, rule := range s.rules {
			if n := int64(head.Of(i)); n > 0 {
				f.n = int64(r.Of(i))
				allowed = max(allowed, rule.earliestAfter(f, a, n))
			}
		}
		// As in allowed: a returned permit may be lost by then.
		line := allowed.Add(-s.tolerance)
		if allowed <= a.now || line <= a.line {
			return allowed
		}
		a.line = line
	}
}

func (b *bucket) earliestAfter(f *first, a asking, n int64) Instant {
	after := *b
	if f.n > 0 {
		after.returned = slices.Clone(b.returned)
		after.spend(f.asking, f.charged, f.n)
	}
	return after.earliest(a, n)
}

func (f *fixed) earliestAfter(first *first, a asking, n int64) Instant {
	after := *f
	if first.n > 0 {
		after.spacing = f.spacing.copied()
		after.spend(first.asking, first.charged, first.n)
	}
	return after.earliest(a, n)
}

func (s *sliding) earliestAfter(f *first, a asking, n int64) Instant {
	after := *s
	if f.n > 0 {
		after.spacing = s.spacing.copied()
		after.spend(f.asking, f.charged, f.n)
	}
	return after.earliest(a, n)
}

// earliestAfter copies no runs: there may be a million.
func (g *log) earliestAfter(f *first, _ asking, n int64) Instant {
	opens, spacing := g.opens(n+f.n), g.spacing
	if f.n > 0 {
		spacing = g.spacing.copied()
		spacing.spend(f.now, f.charged, f.n)
		if n+f.n > g.permits { // f itself stands in the way
			opens = max(opens, f.now.Add(g.limit.Per))
		}
	}
	return max(opens, spacing.earliest())
}

// copied returns a copy of the spacing, with a line of its own.
func (s spacing) copied() spacing {
	if s.line != nil {
		line := *s.line
		s.line = &line
	}
	return s
}
