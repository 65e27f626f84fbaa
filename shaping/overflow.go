package shaping

import (
	"cmp"
	"fmt"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/weirgo/weir/throttle"
)

// An Overflow selects the caller that is rejected when a line is full. The zero value rejects the
// newcomer.
type Overflow uint8

// The choices.
const (
	// OverflowReject rejects the newcomer.
	OverflowReject Overflow = iota
	// OverflowShedLeastUrgent rejects from the least urgent class in line. The tenant
	// that has the most in line for its weight loses its newest caller, which may be
	// the newcomer.
	OverflowShedLeastUrgent
	// OverflowShedOldest rejects the caller that came first. It is for calls whose value falls
	// while they wait. A caller whose turn it was, and whose permits were void before it
	// departed, stays: otherwise, where each is that slow, none would ever depart.
	OverflowShedOldest
)

// overflowWords are the choices as texts, in the order of their constants.
var overflowWords = [...]string{"reject", "shedLeastUrgent", "shedOldest"}

// MarshalText implements [encoding.TextMarshaler]. The texts are "reject", "shedLeastUrgent"
// and "shedOldest".
func (o Overflow) MarshalText() ([]byte, error) {
	if int(o) >= len(overflowWords) {
		return nil, fmt.Errorf("shaping: Overflow %d is unknown", o)
	}
	return []byte(overflowWords[o]), nil
}

// UnmarshalText implements [encoding.TextUnmarshaler]. It reads what MarshalText writes.
func (o *Overflow) UnmarshalText(text []byte) error {
	i := slices.Index(overflowWords[:], string(text))
	if i < 0 {
		return fmt.Errorf("shaping: Overflow %q is none of reject, shedLeastUrgent and shedOldest", text)
	}
	*o = Overflow(i)
	return nil
}

// admit returns the error that rejects w, or nil, and reports whether others were
// rejected to make room. W has just entered the line, and has to wait until bound at
// least. A turn that comes back was admitted before: it had a place.
func (q *Queue) admit(w *waiter, had place, bound, now throttle.Instant) (shed bool, err error) {
	switch {
	case bound > w.deadline:
		return false, q.reject(w, q.lateFor(w), now)
	case had.arrived != 0:
		return false, nil
	}
	victims, ok := q.victims(w, bound, now)
	if !ok {
		return false, q.reject(w, ErrQueueFull, now)
	}
	for _, v := range victims {
		q.sendAway(v, q.reject(v, ErrQueueFull, now))
	}
	return len(victims) > 0, nil
}

// overfull reports whether this many callers, with this many bytes, exceed the bounds of the line.
func (q *Queue) overfull(count int, bytes int64) bool {
	most := q.MaxWaiting
	if most <= 0 {
		most = DefaultMaxWaiting
	}
	return count > 1 && (count > most || q.MaxWaitingBytes > 0 && bytes > q.MaxWaitingBytes)
}

// victims returns the callers to reject so that the line, with w in it, is within its bounds, and
// false if w is to be rejected instead. A single caller is always within them.
func (q *Queue) victims(w *waiter, bound, now throttle.Instant) (all []*waiter, ok bool) {
	if q.MaxForecast > 0 && q.expected(w, bound, now) > q.MaxForecast {
		return nil, false
	}
	count, bytes := q.line.count, q.line.bytes
	if j := q.joint(); j != nil { // other queues may wait for the same limiter
		others, theirs := j.others()
		count, bytes = count+others, bytes+theirs
	}
	if !q.overfull(count, bytes) {
		return nil, true
	}
	for v := range q.line.victims(q.Overflow) {
		if v == w {
			break
		}
		all = append(all, v)
		if count, bytes = count-1, bytes-v.bytes; !q.overfull(count, bytes) {
			return all, true
		}
	}
	return nil, false
}

// victims yields the callers in line in the order in which they are rejected for lack of room. It
// yields none if the newcomer is rejected. Mostly one is enough.
func (l *line) victims(o Overflow) iter.Seq[*waiter] {
	return func(yield func(*waiter) bool) {
		switch o {
		case OverflowShedLeastUrgent:
			one := l.classes[len(l.classes)-1].victim()
			if !yield(one) {
				return
			}
			for _, c := range slices.Backward(l.classes) {
				for w := range c.victims() {
					if w != one && !yield(w) {
						return
					}
				}
			}
		case OverflowShedOldest:
			one := l.oldest()
			if one == nil || !yield(one) {
				return
			}
			for _, w := range slices.SortedFunc(l.all(), func(a, b *waiter) int { return a.compare(b.place) }) {
				if w != one && !w.late && !yield(w) {
					return
				}
			}
		}
	}
}

// oldest returns the caller in line that came first, of those who have not had their turn; nil: all
// have.
func (l *line) oldest() *waiter {
	var oldest *waiter
	for _, c := range l.classes {
		for _, t := range c.tenants {
			some := t.waiting.list()
			if !some[0].late {
				some = some[:1]
			}
			for _, w := range some {
				if !w.late && (oldest == nil || w.before(oldest.place)) {
					oldest = w
				}
			}
		}
	}
	return oldest
}

// victim returns the newest caller of the tenant that has the most in line for its weight.
func (c *class) victim() *waiter {
	most := slices.MaxFunc(c.tenants, func(a, b *tenant) int {
		return cmp.Or(cmp.Compare(a.cost/float64(a.weight), b.cost/float64(b.weight)), a.last.compare(b.last))
	})
	return slices.MaxFunc(most.waiting.list(), func(a, b *waiter) int { return a.compare(b.place) })
}

// victims yields the callers of a class in that order, each as if the previous ones had left.
func (c *class) victims() iter.Seq[*waiter] {
	type had struct {
		*tenant
		cost float64   // of the remaining callers
		left []*waiter // the newest last
	}
	return func(yield func(*waiter) bool) {
		all := make([]had, len(c.tenants))
		for i, t := range c.tenants {
			all[i] = had{t, t.cost, slices.SortedFunc(slices.Values(t.waiting.list()), func(a, b *waiter) int { return a.compare(b.place) })}
		}
		for len(all) > 0 {
			most := 0
			for i, t := range all {
				if o := all[most]; cmp.Or(cmp.Compare(t.cost/float64(t.weight), o.cost/float64(o.weight)), t.last.compare(o.last)) > 0 {
					most = i
				}
			}
			t := &all[most]
			w := pop(&t.left)
			t.cost -= w.cost
			if len(t.left) == 0 {
				all = slices.Delete(all, most, most+1)
			}
			if !yield(w) {
				return
			}
		}
	}
}

// expected returns how long w is expected to wait. Alone in line, it could depart at the instant
// bound. Later arrivals and departures may change it.
func (q *Queue) expected(w *waiter, bound, now throttle.Instant) time.Duration {
	wait := max(0, bound.Sub(now)) // permits may have been at hand for long
	if len(q.rates) == 0 || bound == throttle.Never {
		return wait
	}
	_, cost := q.ahead(w)
	if cost *= float64(time.Second); cost >= float64(math.MaxInt64-wait) {
		return math.MaxInt64
	}
	return wait + time.Duration(cost)
}

// ahead returns how many callers will depart before w, and their cost. It includes known callers of
// other queues that wait for the same limiter.
func (q *Queue) ahead(w *waiter) (n int, cost float64) {
	n, cost = q.line.ahead(w)
	if j := q.joint(); j != nil {
		others, theirs := j.ahead(w, n+1)
		n, cost = n+others, max(cost, theirs)
	}
	return n, cost
}

// ahead returns how many callers will depart before w, and their cost, if no caller comes or
// leaves. Inside a tenant the answer is exact. It assumes equal costs of another tenant's callers,
// and that all callers with whom w has the share of the less urgent classes came before it.
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
	start := own.start + cost/float64(own.weight)
	for _, t := range own.class.tenants {
		if t == own || start < t.start || t.cost <= 0 {
			continue
		}
		waiting := float64(t.waiting.Len())
		starts := (start - t.start) * float64(t.weight) * waiting / t.cost
		before := math.Ceil(starts)
		if before == starts && t.waiting.first().before(w.place) { // the last of them starts with w
			before++
		}
		before = min(before, waiting)
		n, cost = n+int(before), cost+before*t.cost/waiting
	}
	low, theirs := n, cost // of the callers with whom w shares, if it shares at all
	for i, c := range l.classes {
		count, sum := c.all()
		if c.priority > own.class.priority {
			n, cost = n+count, cost+sum
		}
		if i > 0 && c != own.class {
			low, theirs = low+count, theirs+sum
		}
	}
	if own.class == l.classes[0] || l.share == 0 {
		return n, cost
	}
	urgent, sum := l.classes[0].all()
	meanwhile := max(0, (theirs+w.cost)*(1-l.share)-l.classes[1].owed) / l.share
	if total := theirs + meanwhile; total < cost {
		return low + int(math.Ceil(float64(urgent)*meanwhile/sum-rounding)), total
	}
	return n, cost
}

// rounding is more than what sums of costs are wrong, in callers.
const rounding = 1e-6

// all returns how many callers wait in a class, and their cost.
func (c *class) all() (n int, cost float64) {
	for _, t := range c.tenants {
		n, cost = n+t.waiting.Len(), cost+t.cost
	}
	return n, cost
}
