package shaping

import (
	"time"

	"github.com/weirgo/weir/throttle"
)

// overtakers is how many callers behind the head are looked at, the next to
// depart first, if one of them may overtake it. So a departure costs the same
// in a line of any length.
const overtakers = 16

// delays are by how much callers in line were delayed, while they were its head,
// by those who overtook them.
type delays map[*waiter]time.Duration

// mayOvertake reports whether callers may overtake the head at all.
func (q *Queue) mayOvertake() bool {
	if q.MaxHeadDelay <= 0 || q.line.count < 2 {
		return false
	}
	_, ok := q.limiter.(throttle.Overtaker)
	return ok
}

// overtake lets one caller go who may overtake the head, and reports whether
// there is one. Otherwise it sets when to look again.
func (q *Queue) overtake(head *waiter, now throttle.Instant) bool {
	for w := range q.line.behind(head) {
		if w.ctx.Err() != nil {
			continue // its goroutine is on its way out
		}
		if at := q.tryOvertake(w, head, now); at <= now {
			q.letGo(w, outcome{charged: at, granted: now, due: now})
			return true
		}
	}
	return false
}

// newcomerOvertakes asks for w, who has just entered the line behind others.
// Those before w cannot overtake the head now: they were asked before. It
// returns when w is granted, or when the head asks again. It is not inlined,
// because that would enlarge the stack of everybody who joins a line.
//
//go:noinline
func (q *Queue) newcomerOvertakes(w *waiter, now throttle.Instant) throttle.Instant {
	head := q.line.first()
	for other := range q.line.behind(head) {
		if other != w {
			continue
		}
		if at := q.tryOvertake(w, head, now); at <= now {
			return at
		}
		break
	}
	return q.due
}

// tryOvertake asks for w, which is granted if head then still goes in time: no
// later than it would alone by MaxHeadDelay, of which others may have used a
// part, and by its deadline. It returns when w is granted; if that is after now,
// it is when to ask again.
func (q *Queue) tryOvertake(w, head *waiter, now throttle.Instant) throttle.Instant {
	r, before := w.request(), head.request()
	if !asksLess(r, before) {
		return throttle.Never // it cannot go before head can
	}
	most := min(q.MaxHeadDelay-q.delays[head], head.deadline.Sub(q.due))
	at, delay, err := q.limiter.(throttle.Overtaker).Overtake(now, r, before, most)
	switch {
	case err != nil: // it is told once it is the head
		return throttle.Never
	case at > now:
		q.overtakes = min(q.overtakes, at)
	case delay > 0:
		if q.delays == nil {
			q.delays = make(delays)
		}
		q.delays[head] += delay
	}
	return at
}

// asksLess reports whether r asks for fewer permits of a limit than head does.
func asksLess(r, head throttle.Request) bool {
	for i := range max(len(r.Each), len(head.Each)) + 1 {
		if r.Of(i) < head.Of(i) {
			return true
		}
	}
	return false
}
