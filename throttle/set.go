package throttle

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// minInstant is the first instant.
const minInstant Instant = math.MinInt64 + 1

// A set enforces limits together, all or nothing. It is the limiter that Local
// makes. If it has one bucket and nothing unusual has happened, its state is in
// quick, and Take needs no lock.
type set struct {
	quick atomic.Pointer[quick] // lock-free form of a set of one bucket; nil: the lock decides
	free  atomic.Bool           // there are no limits
	wall  func(Instant) Instant // reads the wall clock at an instant

	mu        sync.Mutex
	word      int64 // of the lock-free form, as lock found it
	limits    []Limit
	enforced  []Limit // without what they keep
	stored    []byte  // the stored form of limits; nil: not made yet
	rules     []rule
	most      []int64 // most permits of each limit that one request may ask for
	reserved  []int64 // permits of each limit for urgent requests
	tolerance time.Duration
	pausedTo  atomic.Int64 // Instant; written under mu
	settled   bool         // charges must be remembered, under the lock: one was costly, or an estimate
	tunedAt   Instant      // when the rules were made; nothing is granted at an earlier instant
}

// newSet returns the limiter of resolved limits.
func newSet(limits []Limit, wall func(Instant) Instant) *set {
	s := &set{wall: wall, tunedAt: minInstant}
	s.pausedTo.Store(int64(minInstant))
	s.install(minInstant, limits)
	return s
}

// install makes new rules for the limits. It drops the lock-free form, which
// holds the old ones.
func (s *set) install(now Instant, limits []Limit) {
	s.quick.Store(nil)
	s.free.Store(len(limits) == 0)
	s.limits, s.stored, s.enforced, s.tunedAt = limits, nil, make([]Limit, len(limits)), max(s.tunedAt, now)
	s.rules = make([]rule, len(limits))
	s.most, s.reserved = make([]int64, len(limits)), make([]int64, len(limits))
	for i, l := range limits {
		s.enforced[i] = l.Enforced()
		s.rules[i] = newRule(s.enforced[i], s.wall)
		s.most[i], s.reserved[i] = int64(s.enforced[i].most()), int64(l.Reserved())
	}
	s.tolerance = Tolerance(limits...)
}

// The bounds of the permit tolerance: what a garbage collection or a busy
// machine takes, and two intervals at 20/s.
const (
	minTolerance = 10 * time.Millisecond
	maxTolerance = 100 * time.Millisecond
)

// Tolerance returns the permit tolerance of limits that are enforced together: how long
// after its instant a permit may still be spent. It is two of the shortest interval of
// any limit, so that a late timer never slows the schedule. It is at least the 10 ms
// that a garbage collection or a busy machine takes, and at most 100 ms. Without limits
// it is 100 ms; for 100 permits per second it is 20 ms.
func Tolerance(limits ...Limit) time.Duration {
	tolerance := maxTolerance
	for _, l := range limits {
		two := 2 * min(l.Per/time.Duration(max(l.Enforced().Permits, 1)), maxTolerance)
		tolerance = min(tolerance, max(two, minTolerance))
	}
	return tolerance
}

// Take implements [Limiter].
func (s *set) Take(now Instant, r Request) (Grant, error) {
	if r.Since == 0 {
		r.Since = now
	}
	if r.Each == nil {
		if q := s.quick.Load(); q != nil {
			if at, ok := q.take(now, &r); ok {
				return Grant{At: at}, nil
			}
		} else if s.free.Load() && r.N >= 0 && now >= Instant(s.pausedTo.Load()) {
			return Grant{At: now}, nil
		}
	}
	s.lock()
	at, spent, err := s.take(now, &r)
	if spent {
		s.unlock(now)
	} else {
		s.unlockAsFound()
	}
	return Grant{At: at}, err
}

// take decides r under the lock.
func (s *set) take(now Instant, r *Request) (at Instant, spent bool, err error) {
	if err := s.check(r); err != nil {
		return 0, false, err
	}
	a := s.asking(now, r)
	allowed := s.allowed(a, r)
	if allowed > now {
		return allowed, false, nil
	}
	// A caller is credited for its time in line since all limits allowed it, but for no more than
	// the tolerance. Permits due before are void.
	charged := max(allowed, a.line)
	at = charged
	for i, rule := range s.rules {
		if n := int64(r.Of(i)); n > 0 {
			at = min(at, rule.spend(a, charged, n))
			spent = true
			s.settled = s.settled || costly(s.enforced[i], n)
		}
	}
	return at, spent, nil
}

// costly reports whether n permits of a limit take longer to earn than what a late
// timer may waste.
func costly(l Limit, n int64) bool {
	return float64(n)*float64(l.Per) > float64(maxTolerance)*float64(l.Permits)
}

// asking returns when r is decided, and since when it was in line.
func (s *set) asking(now Instant, r *Request) asking {
	return asking{now: now, line: max(min(r.Since, now), now.Add(-s.tolerance))}
}

// allowed returns the instant since which no limit and no pause holds r. It may
// be in the future, and is then when to ask again.
func (s *set) allowed(a asking, r *Request) Instant {
	from := minInstant
	if a.now < s.tunedAt {
		from = s.tunedAt // reckoned back at another rate, too much would be at hand
	}
	for range mostLooks {
		allowed, leaves := Instant(s.pausedTo.Load()), false
		for i, rule := range s.rules {
			if n := int64(r.Of(i)); n > 0 {
				a := s.leaving(a, r, i)
				allowed, leaves = max(allowed, from, rule.earliest(a, n)), leaves || a.leave > 0
			}
		}
		line := allowed.Add(-s.tolerance)
		switch {
		case allowed <= a.now:
			return allowed
		case leaves:
			// Another window may be in force by then, which has released less.
			from, a.now, a.line, a.early = allowed, allowed, max(a.line, line), a.early+allowed.Sub(a.now)
		case line <= a.line:
			return allowed
		default:
			a.line = line // a returned permit that one limit counted on may be lost by then
		}
	}
	return from
}

// mostLooks bounds how often a request that must leave permits of several windows looks for
// an instant at which all of them have released enough.
const mostLooks = 100

// leaving returns a with the permits of limit i that r must leave.
func (s *set) leaving(a asking, r *Request, i int) asking {
	if a.leave = s.reserved[i]; r.Urgent {
		a.leave = 0
	}
	return a
}

// check returns the error of a request that can never be granted.
func (s *set) check(r *Request) error {
	if r.N < 0 {
		return fmt.Errorf("throttle: %d permits are negative", r.N)
	}
	for i, most := range s.most {
		n := int64(r.Of(i))
		if n < 0 {
			return fmt.Errorf("throttle: %d permits are negative", n)
		}
		if n > most-s.reserved[i] {
			if err := s.limits[i].CheckRequest(*r, i); err != nil {
				return err
			}
		}
	}
	return nil
}

// lock takes the lock, and the state out of the lock-free form.
func (s *set) lock() {
	s.mu.Lock()
	q := s.quick.Load()
	if q == nil {
		return
	}
	b := s.rules[0].(*bucket)
	s.word = q.freeze()
	if tat := q.point(s.word); tat != b.tat {
		b.tat, b.held = tat, 0
		b.slack = slack{from: tat.ceil()} // what was charged meanwhile was charged before it
	}
}

// unlock puts the state into the lock-free form, if that can hold it.
func (s *set) unlock(now Instant) {
	if len(s.rules) == 1 {
		if b, ok := s.rules[0].(*bucket); ok {
			s.thaw(b, now)
		}
	}
	s.mu.Unlock()
}

// unlockAsFound puts the state back as lock found it. A question that spends
// nothing may be about an instant to come, and must not move the state there.
func (s *set) unlockAsFound() {
	if q := s.quick.Load(); q != nil {
		q.tat.Store(s.word)
	}
	s.mu.Unlock()
}

// thaw puts the state of the one bucket into the lock-free form, if that can
// hold it.
func (s *set) thaw(b *bucket, now Instant) {
	b.returned.expire(now.Add(-s.tolerance))
	if s.settled || costly(s.enforced[0], 1) || len(b.returned) > 0 || now < Instant(s.pausedTo.Load()) {
		s.quick.Store(nil)
		return
	}
	if q := s.quick.Load(); q == nil || !q.resume(s, b, now) {
		s.quick.Store(newQuick(s, b, now))
	}
}

// Forecast implements [Limiter].
func (s *set) Forecast(now Instant, r Request) Forecast {
	if r.Since == 0 {
		r.Since = now
	}
	if q := s.quick.Load(); q != nil && r.Each == nil {
		if at, ok := q.atHand(now, &r); ok {
			return Forecast{At: at}
		}
	}
	s.lock()
	defer s.unlockAsFound()
	if s.check(&r) != nil {
		return Forecast{At: Never}
	}
	a := s.asking(now, &r)
	f := Forecast{At: s.allowed(a, &r)}
	if f.At <= now {
		return f
	}
	f.Reason = ReasonPause
	if f.At > Instant(s.pausedTo.Load()) {
		f.Reason, f.Limit = ReasonRate, s.limits[s.latest(now, f.At, &r)].Name
	}
	return f
}

// latest returns the index of the limit that holds r until the instant at.
func (s *set) latest(now, at Instant, r *Request) int {
	a := asking{now: at, line: at.Add(-s.tolerance), early: at.Sub(now)}
	for i, rule := range s.rules {
		if n := int64(r.Of(i)); n > 0 && rule.earliest(s.leaving(a, r, i), n) >= at {
			return i
		}
	}
	return 0
}

// Tolerance implements [Limiter].
func (s *set) Tolerance() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tolerance
}

// Refund implements [Limiter].
func (s *set) Refund(now Instant, g Grant, r Request) {
	s.lock()
	defer s.unlock(now)
	oldest := now.Add(-s.tolerance)
	if s.check(&r) != nil || g.At > now || s.void(g.At) {
		return
	}
	for i, rule := range s.rules {
		if n := int64(r.Of(i)); n > 0 {
			rule.refund(oldest, g.At, n)
		}
	}
}

// void reports whether permits granted at an instant can no longer be taken back. Permits from
// before a pause are void. Those of earlier rules cannot be counted by the present ones.
func (s *set) void(at Instant) bool {
	return at < Instant(s.pausedTo.Load()) || at <= s.tunedAt
}

// Settle implements [Limiter].
func (s *set) Settle(now Instant, g Grant, r, actual Request) {
	s.lock()
	defer s.unlock(now)
	for i, rule := range s.rules {
		switch more := int64(max(actual.Of(i), 0)) - int64(max(r.Of(i), 0)); {
		case more > 0:
			rule.overspend(now, more)
		default:
			s.settled = true
			if more < 0 && !s.void(g.At) {
				rule.relieve(now, g.At, -more)
			}
		}
	}
}

// State implements [Limiter].
func (s *set) State(now Instant) State {
	s.lock()
	defer s.unlockAsFound()
	paused := Instant(s.pausedTo.Load())
	st := State{
		Whole:  paused <= now,
		Limits: make([]LimitState, len(s.rules)),
	}
	if paused > now {
		st.Paused = paused.Sub(now)
	}
	for i, rule := range s.rules {
		st.Limits[i] = rule.state(now)
		st.Limits[i].Limit = s.limits[i]
		st.Limits[i].Next = max(st.Limits[i].Next, 0)
		st.Whole = st.Whole && rule.whole(now)
	}
	return st
}
