package shaping

import (
	"iter"
	"slices"
	"time"

	"github.com/weirgo/weir/internal/store"
	"github.com/weirgo/weir/throttle"
)

// moment is how soon a limiter must grant a caller for whom remote limiters keep or fetch the other
// permits meanwhile. Permits are valid at least that long.
const moment = 10 * time.Millisecond

// A remote limiter sees the callers of each queue that the other limiters will grant within
// shownFor, about the time of a run. It sees mostShown at most. Permits for more would be void
// before.
const (
	shownFor  = 100 * time.Millisecond
	mostShown = 64
)

// Notify implements [throttle.Remote]: a roster wakes the queue.
func (j *joint) Notify(func()) {}

// Fetch implements [throttle.Remote]. Each remote limiter sees the callers of all queues
// whose first caller waits for it.
func (j *joint) Fetch(now throttle.Instant, n int, line iter.Seq[throttle.Request]) {
	j.junction.mu.Lock()
	defer j.junction.unlock()
	j.waiting, j.dates = j.waiting[:0], 0
	whole := false
	if j.at != nowhere {
		most, at := j.shownMost(), j.rosters[j.at]
		whole = most == mostShown && at.line.count == 1 && len(at.guests) == 0 && at.expected == 0 // alone there, and no other limiter makes permits void
		for r := range line {
			if j.waiting = append(j.waiting, r); len(j.waiting) == most {
				break
			}
		}
		j.counts(n, j.bytes)
		j.show(len(j.waiting))
	}
	for i, r := range j.rosters {
		elsewhere := n > 0 && j.at != nowhere && i != j.at
		soon := elsewhere && j.soon(r, now)
		if elsewhere && !soon && j.foreseeable(r, now) {
			j.dates |= 1 << i
			r.changed = true // the instant may be another one
		}
		r.invite(j, soon || j.dates>>i&1 == 1)
		r.expect(j, i, elsewhere && j.full && j.before(i, j.at))
		switch {
		case i == j.at && whole:
			r.fetch(now, n, j.parts(line))
		case i == j.at || r.changed: // even an unchanged line may need another call
			r.fetch(now, r.sees(), r.requests())
		}
	}
}

// expect notes whether a queue's first caller needs a place in flight here once a call of a later roster
// ends. Processes that gave their places back meanwhile would exchange both for ever.
func (r *Roster) expect(j *joint, i int, does bool) {
	if bit := uint16(1) << i; does != (j.expects&bit != 0) {
		j.expects ^= bit
		if r.changed = true; does {
			r.expected++
		} else {
			r.expected--
		}
	}
}

// sees returns how many callers the limiter is shown. One may be more than requests yields: it needs
// a place in flight, and no permit yet.
func (r *Roster) sees() int { return r.shown + len(r.guests) + min(r.expected, 1) }

// parts yields what a line asks of the limiter for which its first caller waits.
func (j *joint) parts(line iter.Seq[throttle.Request]) iter.Seq[throttle.Request] {
	return func(yield func(throttle.Request) bool) {
		for r := range line {
			if !yield(j.part(j.at, r)) {
				return
			}
		}
	}
}

// holder is [store.Lender].Holder of the limiter for which the first caller waits, if nobody is
// before it there.
func (j *joint) holder(now throttle.Instant, line iter.Seq[throttle.Request]) (place int) {
	j.junction.mu.Lock()
	defer j.junction.mu.Unlock()
	if j.at == nowhere || j.rosters[j.at].first() != &j.seats[j.at] {
		return -1
	}
	if l, ok := j.rosters[j.at].limiter.(store.Lender); ok {
		return l.Holder(now, j.parts(line))
	}
	return -1
}

// shownMost returns how many callers are shown to the limiter for which the first one waits. If
// another limiter is slower, its permits come ever later than these, which are then void.
func (j *joint) shownMost() int {
	slowest := 0.0
	for i := range j.rosters {
		if i != j.at && len(j.rosters[i].rates) > 0 {
			slowest = max(slowest, j.round(i))
		}
	}
	if slowest == 0 {
		return mostShown
	}
	at := j.rosters[j.at]
	most := min(1+shownFor.Seconds()/at.here(slowest), mostShown) // the turns of other processes may all come first
	if later := slowest - j.round(j.at); later > 0 {
		most = min(most, max(at.holds().Seconds()/later, 1))
	}
	return int(most)
}

// round returns how many seconds it takes until each queue in line at a roster has had its
// permits there.
func (j *joint) round(i int) float64 {
	r := j.rosters[i]
	return r.here(j.burden(i, j.head) * float64(max(r.line.count, 1)))
}

// show sets how many callers are shown to the limiter for which the first one waits.
func (j *joint) show(n int) {
	if j.at != nowhere {
		j.rosters[j.at].shown += n - j.shows
		j.shows = n
	}
}

// holds returns for how long the permits of a roster are valid.
func (r *Roster) holds() time.Duration { return max(moment, r.limiter.Tolerance()) }

// soon reports whether the first caller is expected to depart while permits of a roster, fetched or
// kept for it now, are still valid. It is not if the caller before it waits for a place in flight.
func (j *joint) soon(r *Roster, now throttle.Instant) bool {
	holds := r.holds()
	if j.behind {
		at := j.rosters[j.at]
		return at.here(float64(at.line.count)*j.takes(j.at).Seconds()) <= holds.Seconds() && !at.heads[at.first()].full
	}
	return j.asking || j.heldTo.Sub(now) <= holds
}

// sparse reports whether processes share permits that fall due less often than 20 times a second.
func (r *Roster) sparse() bool {
	if r.sharers < 2 {
		return false
	}
	return slices.ContainsFunc(r.rates, func(rate float64) bool { return rate*shownFor.Seconds() < 2 })
}

// foreseeable reports whether it is known when the first caller departs. A limiter that processes
// share is then asked for a permit of that instant, because they may hold all sooner ones. If callers of
// another queue wait in its roster, they may take that turn.
func (j *joint) foreseeable(r *Roster, now throttle.Instant) bool {
	return r.sparse() && j.rosters[j.at].line.count == 1 && !j.behind && !j.asking && j.heldTo > now && j.heldTo < throttle.Never
}

// count reads how many processes share the limiter, if it has a store. A limiter without one never
// gets one.
func (r *Roster) count() {
	if r.alone {
		return
	}
	for q := range r.queues {
		store := r.limiter.State(q.Now()).Store
		if r.alone = store == nil; !r.alone {
			r.sharers = store.Replicas
		}
		return
	}
}

// here converts the seconds that permits take in all processes together to the seconds here:
// processes take turns. Permits of another limiter that are fetched too early are void before.
func (r *Roster) here(seconds float64) float64 { return seconds * float64(max(r.sharers, 1)) }

// Close implements [throttle.Remote]: the rosters forget the queue. The limiters are their
// owner's.
func (j *joint) Close() error {
	j.junction.mu.Lock()
	defer j.junction.mu.Unlock()
	for _, r := range j.rosters {
		delete(r.queues, j.queue)
	}
	return nil
}

// take spends permits for a queue, except those that a guest needs while it waits for a store. The
// reply may take a millisecond, and the guest was here first.
func (r *Roster) take(now throttle.Instant, j *joint, req throttle.Request) (g throttle.Grant, err error) {
	for _, guest := range r.guests {
		if guest == j || !guest.asking || len(guest.waiting) == 0 {
			continue
		}
		theirs := guest.part(slices.Index(guest.rosters, r), guest.waiting[0])
		theirs.ID = 0 // its call does not depart
		kept, err := r.limiter.Take(now, theirs)
		switch {
		case err != nil:
			continue
		case kept.At > now:
			return kept, nil
		}
		defer r.limiter.Refund(now, kept, theirs)
	}
	return r.limiter.Take(now, req)
}

// fetch shows a remote limiter the n callers who wait for it.
func (r *Roster) fetch(now throttle.Instant, n int, line iter.Seq[throttle.Request]) {
	remote, ok := r.limiter.(throttle.Remote)
	if !ok || n == 0 && !r.fetching {
		return
	}
	r.changed, r.fetching = false, n > 0
	remote.Fetch(now, n, line)
}

// invite makes a queue a guest, or no guest any more.
func (r *Roster) invite(j *joint, is bool) {
	i := slices.Index(r.guests, j)
	switch {
	case is == (i >= 0):
		return
	case is:
		r.guests = append(r.guests, j)
	default:
		r.guests = slices.Delete(r.guests, i, i+1)
	}
	r.changed = true
}

// requests yields what the callers ask of the limiter: the first ones of guests, and then
// those of each queue in turn.
func (r *Roster) requests() iter.Seq[throttle.Request] {
	holds := r.holds() // the limiter is locked while it reads the requests
	return func(yield func(throttle.Request) bool) {
		for _, j := range r.guests {
			if len(j.waiting) == 0 {
				continue
			}
			i := slices.Index(j.rosters, r)
			theirs := j.part(i, j.waiting[0])
			if j.dates>>i&1 == 1 {
				theirs.Since = j.heldTo
				if last := j.heldTo.Add(holds * 3 / 4); theirs.Until == 0 || last < theirs.Until {
					theirs.Until = last
				}
			}
			if !yield(theirs) {
				return
			}
		}
		heads := slices.DeleteFunc(slices.Collect(r.line.inOrder()), func(w *waiter) bool { return !r.heads[w].waitsIn(r) })
		for n := 0; len(heads) > 0; n++ {
			heads = slices.DeleteFunc(heads, func(w *waiter) bool { return n >= r.heads[w].shows })
			for _, w := range heads {
				j := r.heads[w]
				if !yield(j.part(j.at, j.waiting[n])) {
					return
				}
			}
		}
	}
}
