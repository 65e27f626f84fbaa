package shaping

import (
	"slices"
	"time"

	"github.com/weirgo/weir/throttle"
)

// watchFor is for how long after a void permit the queue watches the callers whom it wakes. It is
// several times longer than a busy machine delays a goroutine.
const watchFor = time.Second

// mostAsleep is the most callers that are watched. It is more than those with valid permits at
// 5,000/s, and few enough to scan under the lock.
const mostAsleep = 64

// sleepers are granted callers that have not run since. They are watched once a permit was void
// because its caller woke up too late.
type sleepers struct {
	until throttle.Instant // until when granted callers are watched
	list  []*waiter        // the earliest first
}

// add adds w, which was granted. If there are too many, the earliest is no longer watched.
func (s *sleepers) add(w *waiter) {
	w.watched = s != nil && w.out.granted <= s.until
	if !w.watched {
		return
	}
	if len(s.list) == mostAsleep {
		s.remove(0)
	}
	s.list = append(s.list, w)
}

func (s *sleepers) remove(i int) { s.list = slices.Delete(s.list, i, i+1) }

// wakes removes w, which runs or has given up.
func (s *sleepers) wakes(w *waiter) {
	if !w.watched {
		return
	}
	if i := slices.Index(s.list, w); i >= 0 {
		s.remove(i)
	}
}

// missed reports whether w must stand in line again: its permits are void, and no others are due.
// It takes the lock only if they are void or may have been taken back. Otherwise callers that were
// woken together would wait again, for the lock.
func (q *Queue) missed(w *waiter) bool {
	if now := q.Now(); !w.watched && !q.void(w, now) {
		w.out.granted = now // it departs with this last look
	} else if !q.holdsOrRetakes(w) {
		w.late = true
		return true
	}
	now := w.out.granted
	if late := now.Sub(w.out.due); late > 0 {
		q.lateTo.Store(int64(now.Add(time.Duration(q.tolerance.Load()))))
		q.late.Store(int64(late))
	}
	return false
}

// void reports whether the permits of w, which was granted, are void. They are in three cases: w
// runs so late that others may have the next permits, a pause was set since the grant, or they were
// taken back.
func (q *Queue) void(w *waiter, now throttle.Instant) bool {
	late := now.Sub(w.out.grant.At) > time.Duration(q.tolerance.Load())
	return late || w.out.granted <= throttle.Instant(q.pausedAt.Load())
}

// holdsOrRetakes reports whether w, which runs, holds valid permits, or could take others in their
// place. Either way it is dated when it was looked at, however long it waited for the lock.
func (q *Queue) holdsOrRetakes(w *waiter) bool {
	q.lock()
	defer q.unlock()
	now := q.Now()
	if q.asleep.wakes(w); !q.void(w, now) {
		w.out.granted = now
		return true
	}
	if q.asleep == nil {
		q.asleep = new(sleepers)
	}
	q.asleep.until = now.Add(watchFor)
	q.takeBack(w, now)
	g, err := q.retake(w, now)
	if err != nil || g.At > now {
		return false
	}
	w.out.grant, w.out.granted, w.out.due = g, now, g.At
	q.advance(now) // others may have given back more than w took
	return true
}

// retake takes permits for w, whose turn it was: due ones, or else those of a caller that was
// granted later and still sleeps. On a machine that wakes all callers too late, every permit is
// void when its own caller runs. So a caller that runs earlier spends it.
//
// Void permits are taken back first, because a window counts them. A bucket gives permits
// that came back only to a caller of the same cost.
func (q *Queue) retake(w *waiter, now throttle.Instant) (throttle.Grant, error) {
	w.since = q.since(now)
	g, err := q.take(w, now)
	for i := 0; i < len(q.asleep.list) && err == nil && g.At > now; {
		other := q.asleep.list[i]
		valid := !q.void(other, now)
		if valid && (other.n != w.n || !slices.Equal(other.each.get(), w.each.get())) {
			i++
			continue
		}
		q.asleep.remove(i)
		q.takeBack(other, now)
		if valid {
			w.since = min(w.since, other.out.grant.At)
			return q.take(w, now)
		}
		g, err = q.take(w, now)
	}
	return g, err
}

// takeBack gives the permits of w back to the limiter, unless it already did.
func (q *Queue) takeBack(w *waiter, now throttle.Instant) {
	if w.out.granted == 0 {
		return
	}
	if q.void(w, now) {
		q.stale++
		q.joint().voided()
	}
	q.refund(now, w.out, w.request())
	w.out.granted = 0
}
