package throttle

import (
	"math"
	"sync/atomic"
	"time"
)

// A quick is the lock-free form of a set of one bucket. Its state is one word,
// so that a permit at hand costs one compare-and-swap. It does the arithmetic
// of bucket in ticks since an origin near now: den ticks make a nanosecond, and
// unit ticks one permit's interval. If a number does not fit, it says so, and
// the set decides under its lock.
//
// All fields but the word never change. Every other operation of the set
// freezes the word, works on the bucket under the lock, and stores the word
// again.
type quick struct {
	origin    Instant
	unit, den int64
	burst     int64
	reserved  int64 // of the burst, for urgent requests
	leaky     bool
	tolerance int64 // in nanoseconds
	most      int64 // the most permits that fit

	// Instants from from on, and before to, fit and come after every pause and
	// change.
	from, to Instant
	paused   Instant // no permit is dated before it

	tat atomic.Int64
}

// frozen is the word while the bucket has the state.
const frozen = math.MinInt64

// The ranges of the clock and of the state ahead of it, in ticks: half and a
// quarter of an int64. No sum of the two overflows. A cost that goes beyond is
// decided under the lock.
const (
	clockRange = math.MaxInt64 / 2
	stateRange = math.MaxInt64 / 4
)

// newQuick returns the quick form of b, the one rule of s, from now on. If b
// does not fit, it returns nil.
func newQuick(s *set, b *bucket, now Instant) *quick {
	unit, den, burst, tolerance := b.pace.unit, b.pace.den, b.burst(), s.tolerance
	paused := Instant(s.pausedTo.Load())
	// Beyond an origin about 9 years ago nothing is gained.
	span := time.Duration(min(clockRange/den, math.MaxInt64>>5))
	if burst > stateRange/unit || span < time.Second || !fitsState(b.floor(now, tolerance), now, den) {
		return nil
	}
	q := &quick{
		origin:    now,
		unit:      unit,
		den:       den,
		burst:     burst,
		reserved:  s.reserved[0],
		leaky:     b.leaky(),
		tolerance: int64(tolerance),
		most:      burst,
		from:      max(now.Add(-span), paused, s.tunedAt),
		to:        now.Add(span),
		paused:    paused,
	}
	if q.leaky {
		q.most = stateRange / unit
	}
	for q.most > 1 && costly(b.limit, q.most) { // a costlier one is remembered
		q.most /= 2
	}
	q.tat.Store(q.ticks(b.floor(now, tolerance)))
	return q
}

// floor returns the tat, raised as far as makes no difference from now on. A bucket is
// no more than whole, however long it was.
func (b *bucket) floor(now Instant, tolerance time.Duration) point {
	floor := point{at: now}.before(b.pace.times(b.burst()), b.pace.den).at.Add(-tolerance)
	if b.tat.at < floor {
		return point{at: floor}
	}
	return b.tat
}

// fitsState reports whether a tat fits the word.
func fitsState(tat point, origin Instant, den int64) bool {
	ahead := int64(tat.at.Sub(origin))
	return ahead < stateRange/den && ahead > -stateRange/den
}

// ticks returns a tat in ticks since the origin.
func (q *quick) ticks(tat point) int64 { return int64(tat.at-q.origin)*q.den + tat.frac }

// freeze takes the state out of the word and returns it.
func (q *quick) freeze() int64 { return q.tat.Swap(frozen) }

// point returns the tat that a word holds.
func (q *quick) point(word int64) point {
	whole, frac := word/q.den, word%q.den
	if frac < 0 {
		whole, frac = whole-1, frac+q.den
	}
	return point{at: q.origin + Instant(whole), frac: frac}
}

// resume puts b's state into the word. It reports false if the state does not
// fit, or if there was a pause since q was made. When limits or the share of
// the rate change, q is not resumed.
func (q *quick) resume(s *set, b *bucket, now Instant) bool {
	tat := b.floor(now, s.tolerance)
	if q.paused != Instant(s.pausedTo.Load()) || !q.near(now) || !fitsState(tat, q.origin, q.den) {
		return false
	}
	q.tat.Store(q.ticks(tat))
	return true
}

// near reports whether q can decide at an instant.
func (q *quick) near(now Instant) bool { return q.from <= now && now < q.to }

// need returns how many permits must be at hand for r, which asks for the same of each
// limit. If ok is false, q cannot decide.
func (q *quick) need(now Instant, r *Request) (need int64, ok bool) {
	need = int64(r.N)
	if need < 1 || need > q.most || !q.near(now) {
		return 0, false
	}
	switch {
	case q.leaky:
		need = 1
	case !r.Urgent:
		need += q.reserved
	}
	return need, need <= q.burst
}

// line returns the ticks before which r is not dated.
func (q *quick) line(now Instant, r *Request) int64 {
	return int64(max(min(r.Since, now), now-Instant(q.tolerance), q.paused)-q.origin) * q.den
}

// atHand returns the instant at which take would let r go. If ok is false, that is after now,
// or q cannot decide.
func (q *quick) atHand(now Instant, r *Request) (at Instant, ok bool) {
	need, ok := q.need(now, r)
	tat := q.tat.Load()
	due := tat - (q.burst-need)*q.unit
	if !ok || tat == frozen || due > int64(now-q.origin)*q.den {
		return 0, false
	}
	return q.ceil(max(due, q.line(now, r))), true
}

// take decides r, which asks for the same of each limit, as the set's Take does. If ok is
// false, q cannot decide.
func (q *quick) take(now Instant, r *Request) (at Instant, ok bool) {
	need, ok := q.need(now, r)
	if !ok {
		return 0, false
	}
	n := int64(r.N)
	clock := int64(now-q.origin) * q.den
	line := q.line(now, r)
	for {
		tat := q.tat.Load()
		if tat == frozen {
			return 0, false
		}
		due := tat - (q.burst-need)*q.unit
		if due > clock {
			return q.ceil(due), true
		}
		due = max(due, line)
		next := tat
		if due-tat >= q.den { // a fraction of a nanosecond is kept, as in bucket.spend
			next = due
		}
		if q.tat.CompareAndSwap(tat, next+n*q.unit) {
			return q.ceil(due), true
		}
	}
}

// ceil returns the first instant that is not before t ticks after the origin.
func (q *quick) ceil(t int64) Instant {
	if q.den == 1 {
		return q.origin + Instant(t)
	}
	whole := t / q.den
	if t%q.den > 0 {
		whole++
	}
	return q.origin + Instant(whole)
}
