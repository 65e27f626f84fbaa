package lane

import (
	"math"
	"sync"
	"time"

	"github.com/weirgo/weir/internal/learn"
	"github.com/weirgo/weir/throttle"
)

// Quotas are what a lane's answers tell of the server's quotas, for a lane that waits
// for their resets. As long as the reset of a quota is exact, no more calls are in
// flight than an answer of its window has told to be left:
//
//	"5 remaining" was told, and 5 calls are in flight: the next call waits for an answer
//
// So none of them is refused for want of that quota, in whatever order they arrive.
// With "0 remaining", the lane pauses until the reset. A call that hangs is counted for
// a while: see [unheard.lease].
type quotas struct {
	mu      sync.Mutex
	all     [mostQuotas]quota
	unheard unheard
	held    bool // a call was held since the last one landed
}

// A quota is what answers tell of one quota.
type quota struct {
	key    uint64           // zero: the place is free
	left   float64          // fewest permits that were told in the window that runs
	limit  float64          // permits of a window; +Inf: not told
	first  throttle.Instant // end of the window, as it was told first
	since  throttle.Instant // when it was
	end    throttle.Instant // the latest that was told for it: a little later
	over   bool             // the window has ended, and no answer has told of the next one
	far    bool             // a reset was told that is further away than rounding can blur
	moved  bool             // resets name another instant each time
	counts bool             // it counts requests
	some   bool             // more than zero was told in the window that runs
	empty  int              // windows in a row in which nothing but zero was told
}

const (
	mostQuotas = 6               // of a lane; vendors tell four windows at most
	blur       = 2 * time.Second // for whole seconds, and for the whole seconds of a Date
	still      = 3 * time.Second // a reset that names the same instant for so long does not move

	// resetGuard is how long after a told reset the next call leaves, so that it does
	// not arrive before it: clocks tick in milliseconds.
	resetGuard = 20 * time.Millisecond
)

// exact reports whether the reset is an instant at which the quota is whole again.
// Gateways tell "0 remaining, reset in 1 s" on every answer: a reset that is always so
// near is a rounded one. Others tell the same time to the reset on every answer, or
// when a bucket will be full: it then moves. And there are some that tell zero always.
func (q *quota) exact() bool {
	return q.key != 0 && q.far && !q.moved && (q.empty < 2 || q.limit == 1)
}

// ask returns now if a call may depart. If as many are in flight as may be, it returns
// the later instant at which to ask again: before that, an answer must come.
func (s *quotas) ask(now throttle.Instant) throttle.Instant {
	s.mu.Lock()
	defer s.mu.Unlock()
	room, until := s.room(now)
	if room > 0 {
		return now
	}
	s.held = true
	return until
}

// board is ask, and counts the call in flight if it may depart.
func (s *quotas) board(now throttle.Instant, id uint64) throttle.Instant {
	s.mu.Lock()
	defer s.mu.Unlock()
	room, until := s.room(now)
	if room > 0 {
		s.unheard.add(now, id)
		return now
	}
	s.held = true
	return until
}

// forget forgets what was told: calls go, and their answers tell it anew.
func (s *quotas) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = [mostQuotas]quota{}
}

// room returns how many calls may depart now and, if there is none, until when unless
// an answer comes.
func (s *quotas) room(now throttle.Instant) (n int, until throttle.Instant) {
	flying, fewer := s.unheard.count(now)
	n, until = math.MaxInt, now
	for i := range s.all {
		q := &s.all[i]
		if !q.exact() || !q.counts {
			continue
		}
		if !q.over && now >= q.end.Add(resetGuard) {
			q.over, q.left = true, max(q.limit, 1) // or nobody could ask
		}
		left := max(0, int(min(q.left, 1<<30))-flying)
		n = min(n, left)
		switch {
		case left > 0:
		case q.over:
			until = throttle.Never
		default:
			until = max(until, q.end.Add(resetGuard))
		}
	}
	return n, min(until, fewer)
}

// free returns how many calls may depart now.
func (s *quotas) free(now throttle.Instant) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, _ := s.room(now)
	return n
}

// leave takes back a departure that does not take place.
func (s *quotas) leave(id uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unheard.remove(id)
}

// land counts a call as answered, and reports whether one was held that may go now.
func (s *quotas) land(now throttle.Instant, id uint64) (held bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unheard.land(now, id)
	held, s.held = s.held, false
	return held
}

// read takes in what an answer tells, and marks the quotas that the lane holds to. If
// one of them is spent, it returns how long it is until its reset.
func (s *quotas) read(now throttle.Instant, told []learn.Quota) (wait time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range told {
		t := &told[i]
		if !t.HasRemaining || !t.HasReset || t.Reset <= 0 || t.Filled || t.Advisory {
			continue
		}
		q := s.find(t.Key())
		q.read(now, t)
		t.Held = q.exact() && q.counts
		if q.exact() && !q.over && t.Remaining < 1 {
			wait = max(wait, q.end.Sub(now))
		}
	}
	return wait
}

// find returns the quota with a key. A new one takes the place of the one of which the
// longest nothing new was told.
func (s *quotas) find(key uint64) *quota {
	oldest := &s.all[0]
	for i := range s.all {
		q := &s.all[i]
		if q.key == key {
			return q
		}
		if q.since < oldest.since {
			oldest = q
		}
	}
	*oldest = quota{key: key, over: true}
	return oldest
}

// read takes in one reading. In a window that runs, calls overtake each other on the
// way, so the fewest that was told is what is left.
func (q *quota) read(now throttle.Instant, t *learn.Quota) {
	q.limit, q.counts = math.Inf(1), t.Unit == "" || t.Unit == "requests"
	if t.HasLimit {
		q.limit = t.Limit
	}
	at := now.Add(min(t.Reset, longestPause))
	later := at.Sub(q.first)
	switch {
	case later > blur && (q.over || now > q.end.Add(-blur)): // a window has begun, the first one perhaps
		if q.empty++; q.some || q.since == 0 {
			q.empty = 0
		}
		q.left, q.first, q.end, q.since, q.over, q.some = t.Remaining, at, at, now, false, false
	case q.over: // an answer of the window before
		return
	case later.Abs() > blur:
		q.left, q.first, q.end, q.since, q.moved = t.Remaining, at, at, now, true
	default:
		q.left, q.end = min(q.left, t.Remaining), max(q.end, at)
		q.moved = q.moved && now.Sub(q.since) < still
	}
	q.far = q.far || t.Reset > blur
	if t.Remaining >= 1 {
		q.some, q.empty = true, 0
	}
}
