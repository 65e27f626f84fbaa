package slots

import (
	"strings"
	"time"
)

// A sent is the content of the last call, and what happened since.
type sent struct {
	number   int64     // of calls
	at       time.Time // when the last call left; zero: there was no call
	wants    int       // slots that were wanted
	learned  int       // bound that was sent
	summoned bool      // the store has asked this replica to call since

	since time.Time // start of the count
	peak  int       // the most slots that were wanted
}

// poll is how often a replica that wants more slots asks again without being asked to call: the
// message may be lost.
const poll = time.Second

// consider begins a call if one is due, or sets the timer for it.
func (f *Lane) consider(now time.Time) {
	if f.Closed || f.Underway {
		return
	}
	if f.idled(now) && f.sent.peak >= f.lease.holds(now) {
		f.sent.since, f.sent.peak = now, f.wants(now)
	}
	due := f.due(now)
	switch {
	case f.Lost && f.waiting > 0 && now.Before(f.lease.until): // then the policy holds
		f.timer.Set(f.lease.until.Sub(now))
	case due.IsZero():
	case !due.After(now):
		f.begin()
	default:
		f.timer.Set(due.Sub(now))
	}
}

// idled reports whether the peak was counted for long enough.
func (f *Lane) idled(now time.Time) bool { return now.Sub(f.sent.since) >= slotIdle }

// keeps returns how many slots this replica keeps. Unwanted slots go back if others are short, or
// after being idle for a while.
func (f *Lane) keeps(now time.Time) int {
	if f.Closed {
		return f.flying
	}
	n, wants := f.lease.holds(now), f.wants(now)
	switch {
	case f.Lost: // no other replica can have them
	case f.lease.Contended, f.sent.summoned:
		n = min(wants, f.lease.allows(now))
	case f.idled(now):
		n = min(n, f.sent.peak)
	}
	return max(n, f.flying)
}

// due returns when the next call is due; zero if no call is needed, and in a loss.
func (f *Lane) due(now time.Time) (due time.Time) {
	if f.Lost {
		return due
	}
	t, set := &f.sent, &f.Hub.Set
	wants, has := f.wants(now), f.lease.holds(now)
	soonest := func(at time.Time) {
		if due.IsZero() || at.Before(due) {
			due = at
		}
	}
	if wants > 0 || has > 0 {
		soonest(t.at.Add(set.Lease / 3))
	}
	switch {
	case t.summoned, f.keeps(now) < has, f.learned != t.learned && wants+has > 0:
		soonest(now)
	case has > wants:
		soonest(t.since.Add(slotIdle))
	case wants > has && has >= t.wants: // there was all that was asked for
		soonest(now)
	case wants > t.wants:
		soonest(t.at.Add(slotTurn))
	case wants > has:
		soonest(t.at.Add(poll))
	}
	if f.lease.Contended && now.Before(f.lease.turn) {
		soonest(f.lease.turn)
	}
	if wants > has && t.at.Before(f.lease.freed) {
		soonest(f.lease.freed)
	}
	return due
}

// tick checks again whether a call is due. It wakes callers in line in a loss, because the policy
// may allow more after a lease has ended.
func (f *Lane) tick() {
	f.Mu.Lock()
	f.consider(time.Now())
	lost := f.Lost
	f.Mu.Unlock()
	if lost {
		f.WakeQueue()
	}
}

// Deliver applies a message with the names of replicas that are to call, to receive slots or
// to give them back.
func (f *Lane) Deliver(names string) {
	if !strings.Contains(" "+names+" ", " "+f.id+" ") {
		return
	}
	f.Mu.Lock()
	defer f.Mu.Unlock()
	f.sent.summoned = true
	f.consider(time.Now())
}
