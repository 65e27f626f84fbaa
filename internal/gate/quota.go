package gate

import (
	"math"
	"time"

	"github.com/weirgo/weir/internal/flight"
	"github.com/weirgo/weir/internal/learn"
	"github.com/weirgo/weir/throttle"
)

// Quotas are the veto of what answers report of the server's quotas, in a lane that
// waits for their resets. As long as the reset of a quota is exact, no more calls are
// in flight than an answer of its window reports to be left:
//
//	"5 remaining" is reported, and 5 calls are in flight: the next one waits for an answer
//
// So no call is refused for want of that quota, in whatever order they arrive. With
// "0 remaining", the lane pauses until the reset. A call that hangs is counted for the
// time of its lease.
type quotas struct {
	quiet   // the entries of the calls in flight are what counts
	flights *flight.Table
	all     [mostQuotas]quota
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

	// ResetGuard is how long after a told reset the next call leaves, so that it does
	// not arrive before it: clocks tick in milliseconds.
	ResetGuard = 20 * time.Millisecond
)

// exact reports whether the reset is an instant at which the quota is whole again.
// Gateways tell "0 remaining, reset in 1 s" on every answer: a reset that is always so
// near is a rounded one. Others tell the same time to the reset on every answer, or
// when a bucket will be full: it then moves. And there are some that tell zero always.
func (q *quota) exact() bool {
	return q.key != 0 && q.far && !q.moved && (q.empty < 2 || q.limit == 1)
}

// WaitForResets holds calls to what answers report of quotas. It is called before the
// first Take.
func (g *Gate) WaitForResets() {
	g.quotas = &quotas{flights: g.flights}
	g.list()
}

// Spent applies what an answer reports of quotas, and marks those that calls are held
// to. If one of them is spent, it returns how long it is until its reset.
func (g *Gate) Spent(now throttle.Instant, reported []learn.Quota) (wait time.Duration) {
	if g.quotas == nil {
		return 0
	}
	g.flights.Lock()
	defer g.flights.Unlock()
	return g.quotas.read(now, reported)
}

// Ask implements veto. A call that is held waits for an answer, at most until an
// instant.
func (s *quotas) Ask(t flight.Turn) (throttle.Forecast, error) {
	if t.ID == 0 {
		return throttle.Forecast{}, nil
	}
	n, until := s.room(t.Now)
	if n > 0 {
		return throttle.Forecast{}, nil
	}
	s.held = true
	return throttle.Forecast{At: until, Reason: throttle.ReasonConcurrency}, nil
}

// Room implements veto.
func (s *quotas) Room(now throttle.Instant, n int) int {
	free, _ := s.room(now)
	return min(n, free)
}

// freed reports whether a call was held since the last one landed.
func (s *quotas) freed() bool {
	held := s.held
	s.held = false
	return held
}

// forget forgets what was reported: calls go, and their answers report it anew.
func (s *quotas) forget() { s.all = [mostQuotas]quota{} }

// room returns how many calls may depart now and, if there is none, until when unless
// an answer comes.
func (s *quotas) room(now throttle.Instant) (n int, until throttle.Instant) {
	flying, fewer := s.flights.Waiting(now)
	n, until = math.MaxInt, now
	for i := range s.all {
		q := &s.all[i]
		if !q.exact() || !q.counts {
			continue
		}
		if !q.over && now >= q.end.Add(ResetGuard) {
			q.over, q.left = true, max(q.limit, 1) // or nobody could ask
		}
		left := max(0, int(min(q.left, 1<<30))-flying)
		n = min(n, left)
		switch {
		case left > 0:
		case q.over:
			until = throttle.Never
		default:
			until = max(until, q.end.Add(ResetGuard))
		}
	}
	return n, min(until, fewer)
}

// read takes in what an answer tells, and marks the quotas that the lane holds to. If
// one of them is spent, it returns how long it is until its reset.
func (s *quotas) read(now throttle.Instant, told []learn.Quota) (wait time.Duration) {
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
	at := now.Add(min(t.Reset, LongestPause))
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
