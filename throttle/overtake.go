package throttle

import "time"

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
	request *Request
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
	h := s.asking(now, head)
	alone := max(s.allowed(h, head), now)
	h.first = &first{asking: a, charged: max(allowed, a.line), request: r}
	return now, max(s.allowed(h, head), now).Sub(alone), nil
}

// after returns the bucket as it would be after the departure.
func (b *bucket) after(f *first) *bucket {
	c := *b
	if f.n > 0 {
		c.returned = append(returned(nil), b.returned...)
		c.spend(f.asking, f.charged, f.n)
	}
	return &c
}

// after returns the window as it would be after the departure.
func (f *fixed) after(first *first) *fixed {
	c := *f
	if first.n > 0 {
		c.charge(first.now, first.n)
	}
	return &c
}

// after returns the counters as they would be after the departure.
func (s *sliding) after(f *first) *sliding {
	c := *s
	if f.n > 0 {
		c.charge(f.now, f.n)
	}
	return &c
}

// spacingAfter returns when the next request may go, whatever it costs, after
// the departure that is imagined to come first, if there is one.
func (c *counting) spacingAfter(f *first) Instant {
	s := c.spacing
	if f != nil && f.n > 0 && !s.over(f.now) {
		line := *s.line
		line.charge(f.charged, f.n)
		s.line = &line
	}
	return s.earliest()
}
