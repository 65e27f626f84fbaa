package shaping

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/weirgo/weir/throttle"
)

// An Overflow says who is rejected when a line is full. The zero value rejects
// the newcomer.
type Overflow uint8

// The choices.
const (
	// OverflowReject rejects the newcomer.
	OverflowReject Overflow = iota
	// OverflowShedLeastUrgent rejects a caller of the least urgent class in line:
	// the newest caller of the tenant that has the most in line for its weight.
	// That may be the newcomer.
	OverflowShedLeastUrgent
	// OverflowShedOldest rejects the caller who came first. It is for calls that
	// are worth less the longer they wait.
	OverflowShedOldest
)

// admit returns the error that rejects w, or nil, and reports whether others were
// rejected to make room. W has just entered the line, and has to wait until bound at
// least. A turn that comes back was admitted before: it had a place.
func (q *Queue) admit(w *waiter, had place, bound, now throttle.Instant) (shed bool, err error) {
	switch {
	case bound > w.deadline:
		return false, q.reject(w, ErrDeadline, now)
	case had.arrived != 0:
		return false, nil
	case q.MaxForecast > 0 && q.expected(w, bound, now) > q.MaxForecast:
		return false, q.reject(w, ErrQueueFull, now)
	}
	return q.makeRoom(w, now)
}

// makeRoom rejects callers until the line, with w in it, is within its bounds.
// If w is the one to go, it returns w's error. It reports whether others were rejected.
// One caller alone is never too many.
func (q *Queue) makeRoom(w *waiter, now throttle.Instant) (shed bool, err error) {
	for q.line.count > 1 && q.overfull() {
		victim := q.line.victim(q.Overflow)
		if victim == nil || victim == w {
			return shed, q.reject(w, ErrQueueFull, now)
		}
		q.sendAway(victim, q.reject(victim, ErrQueueFull, now))
		shed = true
	}
	return shed, nil
}

// overfull reports whether the line is beyond its bounds.
func (q *Queue) overfull() bool {
	return q.line.count > q.maxWaiting() || q.MaxWaitingBytes > 0 && q.line.bytes > q.MaxWaitingBytes
}

// victim returns the caller who is rejected for want of room, and nil for the
// newcomer.
func (l *line) victim(o Overflow) *waiter {
	switch o {
	case OverflowShedLeastUrgent:
		most := slices.MaxFunc(l.classes[len(l.classes)-1].tenants, func(a, b *tenant) int {
			return cmp.Or(cmp.Compare(a.cost/a.weight, b.cost/b.weight), a.last.compare(b.last))
		})
		return slices.MaxFunc(most.waiting.list(), func(a, b *waiter) int { return a.compare(b.place) })
	case OverflowShedOldest:
		var oldest *waiter
		for _, c := range l.classes {
			for _, t := range c.tenants {
				if first := t.waiting.first(); oldest == nil || first.before(oldest.place) {
					oldest = first
				}
			}
		}
		return oldest
	default:
		return nil
	}
}

// expected returns how long w is expected to wait. If nobody were before it, it
// could go at the instant bound. Others who come and go may change it.
func (q *Queue) expected(w *waiter, bound, now throttle.Instant) time.Duration {
	wait := bound.Sub(now)
	if len(q.rates) == 0 || bound == throttle.Never {
		return wait
	}
	_, cost := q.line.ahead(w)
	if cost *= float64(time.Second); cost >= float64(math.MaxInt64-wait) {
		return math.MaxInt64
	}
	return wait + time.Duration(cost)
}

// ahead returns how many callers will depart before w, and their cost, if
// nobody comes or leaves. Inside a tenant the answer is exact. Of another
// tenant, all callers are taken to cost the same.
func (l *line) ahead(w *waiter) (n int, cost float64) {
	own := w.tenant
	if w.place == own.last { // as with every newcomer
		n, cost = own.waiting.Len()-1, own.cost-w.cost
	} else {
		for _, other := range own.waiting.list() {
			if other.before(w.place) {
				n, cost = n+1, cost+other.cost
			}
		}
	}
	start := own.start + cost/own.weight
	for _, t := range own.class.tenants {
		if t != own {
			part := min(max(0, start-t.start)*t.weight, t.cost)
			if t.cost > 0 {
				n += int(math.Ceil(float64(t.waiting.Len()) * part / t.cost))
			}
			cost += part
		}
	}
	for _, c := range l.classes {
		if c == own.class {
			break
		}
		for _, t := range c.tenants {
			n, cost = n+t.waiting.Len(), cost+t.cost
		}
	}
	return n, cost
}
