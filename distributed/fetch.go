package distributed

import (
	"iter"
	"slices"
	"time"

	"github.com/weirgo/weir/throttle"
)

// A call asks for so many even where its turn is less: what is at hand need not
// wait for turns.
const atHand = 256

// Fetch implements [throttle.Remote]. Once what is in hand is about to run out
// it calls for more.
func (l *limiter) Fetch(now throttle.Instant, n int, line iter.Seq[throttle.Request]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.clock.anchor(now)
	if l.demand.waiting = n > 0; !l.demand.waiting {
		l.demand.again = 0
		if len(l.hand) > 0 {
			l.surrender() // those they were for have gone
		}
		return
	}
	// Who has just departed may be back in a moment: the line is as long as it
	// was at its longest since the last run.
	l.demand.peak = max(l.demand.peak, n)
	if l.closed || l.flight.underway || l.outage.on || len(l.limits) == 0 && !l.unborn() {
		return
	}
	if l.unborn() && len(l.limits) == 0 {
		l.start(nil)
		return
	}
	if now < l.paused {
		l.askOfPause(now)
		return
	}
	l.expire(now)
	l.returnFar(now)
	// The last permit in hand ends the turn.
	if last := len(l.hand) - 1; last >= 0 {
		if early := l.hand[last].at.Add(-l.trip.lead()); early > now && l.covers(line) {
			if l.hand.after(now.Add(askAgain)) {
				early = min(early, l.known.at.Add(askAgain))
			}
			l.wakeAt(&l.ahead, early.Sub(now))
			return
		}
	}
	if now < l.demand.again {
		l.wakeAt(&l.ahead, l.demand.again.Sub(now))
		return
	}
	if groups := l.uncovered(now, n, line); len(groups) > 0 {
		l.demand.peak = n
		l.start(groups)
	}
}

// covers reports whether the first in line has a permit in hand.
func (l *limiter) covers(line iter.Seq[throttle.Request]) bool {
	for r := range line {
		return l.hand.find(l.costs(&r)) >= 0
	}
	return false
}

// uncovered returns the requests in line that nothing in hand is for, equal
// neighbours together, as many as a call may bring permits for: few of the
// future, those of its turn, and more that are at hand.
func (l *limiter) uncovered(now throttle.Instant, n int, line iter.Seq[throttle.Request]) []group {
	hand := slices.Clone(l.hand)
	left := max(n-hand.count(), 1)
	asked, most, until := 0, 0, throttle.Instant(0)
	groups := l.flight.request.groups[:0]
	for r := range line {
		c := l.costs(&r)
		if c.nothing() {
			continue
		}
		if i := hand.find(c); i >= 0 {
			hand.take(i)
			continue
		}
		age := time.Duration(0)
		if r.Since != 0 {
			age = max(now.Sub(r.Since), 0)
		}
		if last := len(groups) - 1; last >= 0 && c.equal(groups[last].costs) {
			groups[last].count++
			groups[last].age = min(groups[last].age, age)
		} else {
			groups = append(groups, group{count: 1, age: age, costs: c.list()})
		}
		if until = max(until, r.Until); r.Until == 0 {
			until = throttle.Never
		}
		if asked++; asked == 1 {
			l.flight.request.most = l.turn(groups[0].costs, l.demand.peak, left)
			most = min(left, max(l.flight.request.most, atHand))
		}
		if asked >= most {
			break
		}
	}
	l.flight.request.groups = groups
	if asked > 0 {
		l.flight.request.latest = min(l.reach(groups), max(until.Sub(now), 0))
	}
	return groups
}

// turn returns how many permits of the future a run may hold: what the horizon
// has for one replica of those alive, and at most half of the line. Evenly split
// over turns, so that the last in line need not wait for one more.
func (l *limiter) turn(costs []int64, n, left int) int {
	horizon := max(l.store.set.horizon, l.trip.lead()).Seconds()
	most := float64((n + 1) / 2)
	for i, rate := range l.rates {
		if costs[i] > 0 {
			most = min(most, rate*horizon/float64(max(l.known.alive, 1))/float64(costs[i]))
		}
	}
	run := max(1, int(most))
	turns := (n + run - 1) / run
	return min((n+turns-1)/turns, left)
}

// wakeAt has the queue ask again after a time.
func (l *limiter) wakeAt(t **time.Timer, d time.Duration) {
	if *t == nil {
		*t = time.AfterFunc(d, l.wakeQueue)
	} else {
		(*t).Reset(d)
	}
}

// wakeQueue wakes the queue, if there is one.
func (l *limiter) wakeQueue() {
	l.mu.Lock()
	wake := l.wake
	l.mu.Unlock()
	if wake != nil {
		wake()
	}
}

// start begins a call for the groups in the background, and tells what there is
// to tell. It reports whether a call is under way.
func (l *limiter) start(groups []group) bool {
	if l.flight.underway {
		return true
	}
	s := l.store
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed && !l.closed {
		return false
	}
	l.flight.begin(l.encoded)
	s.calling.Go(func() { l.call(groups) })
	return true
}

// askAgain is how long what the store told of permits to come is believed: they
// may be nearer by then, because an estimate was settled, a permit came back, or
// the state was lost.
const askAgain = time.Second

// askOfPauses is how often a replica with a line asks whether its pause still holds:
// the news that an operator has ended it may be lost.
const askOfPauses = 5 * time.Second

func (l *limiter) askOfPause(now throttle.Instant) {
	switch due := l.known.at.Add(askOfPauses); {
	case due >= l.paused:
	case due <= now:
		l.start(nil)
	default:
		l.wakeAt(&l.ahead, due.Sub(now))
	}
}

// returnFar gives permits in hand back that are far off if the store was not asked for
// a while: the call that takes them back brings them again, or nearer ones.
func (l *limiter) returnFar(now throttle.Instant) {
	if !l.hand.after(now.Add(askAgain)) || now.Sub(l.known.at) < askAgain {
		return
	}
	back := l.hand
	l.hand = nil
	for _, p := range slices.Backward(back) {
		l.credit(p)
	}
}

// reach returns how far ahead a permit for the groups is taken. A permit of a later
// window closes the one in force, to which estimates may still give back; so what
// is farther is asked for once it is near. Buckets give back whatever is promised:
// there each replica alive may have one in the line, so that they take turns.
func (l *limiter) reach(groups []group) time.Duration {
	reach := max(askAgain, l.store.set.horizon+2*l.trip.lead())
	for i := range groups {
		for k, rate := range l.rates {
			if !l.counting(k) {
				turns := float64(groups[i].costs[k]*int64(l.known.alive+1)) / (rate * l.cut.share())
				reach = max(reach, time.Duration(min(turns, mostReach.Seconds())*float64(time.Second)))
			}
		}
	}
	return reach
}

// mostReach is the farthest that a permit is taken ahead.
const mostReach = 30 * 24 * time.Hour

// refrain notes when to ask for what was not granted: once it is near, and now and
// then, for it may be nearer than the store told.
func (l *limiter) refrain(now throttle.Instant, first int64) {
	near := l.clock.here(first).Add(-l.trip.lead())
	l.demand.again = min(max(near, now.Add(l.trip.lead())), now.Add(askAgain))
}
