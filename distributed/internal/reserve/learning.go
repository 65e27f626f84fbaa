package reserve

import (
	"time"

	"github.com/weirgo/weir/distributed/internal/script"
	"github.com/weirgo/weir/internal/store"
	"github.com/weirgo/weir/throttle"
)

// A learning is what a limiter's lane learns together with those of other replicas. They send each
// other messages about the vendor's answers through Redis, which keeps the messages in one order. A
// replica that has applied all of them up to a place, the number of bytes before it, knows what
// every other one knew there.
//
// No call is made for it: messages travel with the calls for permits, and their replies bring those
// of others. If each swapped a value of its own for that of the store, eight replicas at 200/s would
// lose nearly every swap, and call again.
type learning struct {
	learner store.Learner
	place   int64                // up to which messages were applied here; astray if the store's are others
	ordinal int64                // the latest that is known
	landed  int64                // departures whose answers the store knew of
	lapsed  []store.OrdinalRange // departures that were granted here and will not take place
	entry   store.Entry          // to send, or under way
	pace    store.Pacing         // in force here
	counted bool                 // the pace is the last of the limiter's limits
	begun   bool                 // the store has returned what others have learned
	hurry   bool                 // there is something to send at once
	revokes bool                 // the call under way revokes permits
	field   script.LearnedField  // as last returned
	lively  int                  // one of so many last replies carried messages of others; zero: no reply did
}

const (
	mostUnsent = 128 << 10 // bytes that wait to be sent, at most
	astray     = -1        // before all messages, so that the next reply has them all
	lively     = 4         // after so many replies without messages of others no more are expected
)

// Replicate implements [store.Replicator].
func (l *Limiter) Replicate(learner store.Learner) {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	l.learning = &learning{learner: learner}
}

// untaught reports whether Redis has not yet returned what others have learned.
func (l *Limiter) untaught() bool { return l.learning != nil && !l.learning.begun && !l.Lost }

// lapse takes in that departures will not take place. A departure that goes alone is waited for.
func (s *learning) lapse(p permit) {
	if s == nil || p.first == 0 {
		return
	}
	if n := len(s.lapsed); n > 0 && s.lapsed[n-1].First+s.lapsed[n-1].Count == p.first {
		s.lapsed[n-1].Count += int64(p.count)
	} else if n < 64 {
		s.lapsed = append(s.lapsed, store.OrdinalRange{First: p.first, Count: int64(p.count)})
	}
	s.hurry = s.hurry || s.pace.Probe
}

// hurries reports whether a message is to be sent at once.
func (l *Limiter) hurries() bool { return l.learning != nil && l.learning.hurry }

func (l *Limiter) view() store.FleetState {
	ahead := -time.Duration(l.clock.InForce())
	return store.FleetState{
		Now: l.clock.Now().Add(ahead), ClockOffset: ahead, Ordinal: l.learning.ordinal, Landed: l.learning.landed, Last: script.InstantOf(l.known.seen.Furthest),
		Replicas:  max(l.known.alive, 1), // no guess: it would multiply the calls in flight
		RoundTrip: l.Trip.Usual(),
	}
}

// propose returns what a call that leaves now sends; nil if the lane learns nothing.
// No lock is held.
func (l *Limiter) propose() *script.Update {
	l.Mu.Lock()
	s := l.learning
	if s == nil {
		l.Mu.Unlock()
		return nil
	}
	v, wanted := l.view(), s.field.To < s.place || s.place-s.field.From > script.Condense
	v.Canceled, s.lapsed, s.hurry = s.lapsed, nil, false
	l.Mu.Unlock()
	w := s.learner.Propose(v)
	p := s.learner.Pacing(v)
	t := script.NewUpdate(p)
	for _, lapsed := range v.Canceled {
		t.Lapsed += lapsed.Count
	}
	if wanted && s.place > 0 {
		t.Snapshot = s.learner.Snapshot()
	}
	l.Mu.Lock()
	defer l.Mu.Unlock()
	if l.Lost && p.Even != s.pace.Even { // a window has ended
		s.pace.Even = p.Even
		l.enforce()
	}
	s.entry.Join(w, mostUnsent)
	s.revokes = s.entry.Revoke
	t.Place, t.Ordinal, t.Landed, t.Entry, t.Seen, t.Lively = s.place, s.ordinal, s.landed, s.entry, s.field, s.lively > 0
	return t
}

// apply has the learner take in a reply. No lock is held.
func (l *Limiter) apply(got *script.Reply) {
	l.Mu.Lock()
	s, h := l.learning, &got.Learned
	place := s.place
	s.field = h.Field
	s.entry = s.entry.Rest(h.Took)
	s.revokes = false
	l.Mu.Unlock()
	others := 0 // messages of others
	if h.Took {
		others--
	}
	switch {
	case h.Field.To < place: // it was lost there, and is sent again
	case h.Field.From > place:
		s.learner.Restore([]byte(h.Snapshot))
		place = h.Field.From
		fallthrough
	default:
		n := script.Frames(h.Entries, func(message []byte, ordinal int64, at throttle.Instant) {
			others++
			s.learner.Apply(message, ordinal, at)
		})
		if place += n; n < int64(len(h.Entries)) {
			place = astray // Redis lost those before, and others sent as many again
		}
	}
	l.Mu.Lock()
	if s.lively = max(s.lively-1, 0); others > 0 {
		s.lively = lively
	}
	s.place, s.begun = place, true
	s.hurry = s.hurry || s.field.To < place // the store has less than was applied here
	s.ordinal, s.landed = max(s.ordinal, h.First+got.Count()), max(s.landed, h.Landed)
	v := l.view()
	l.Mu.Unlock()
	p := s.learner.Pacing(v)
	l.Mu.Lock()
	l.obey(p)
	l.Mu.Unlock()
}

// obey puts a pace in force here. Redis has just answered, so no outage is under way.
func (l *Limiter) obey(p store.Pacing) {
	s, old := l.learning, l.learning.pace
	s.pace = p
	if p.Counted != s.counted {
		s.counted = p.Counted
		_ = l.install(l.configured()) // they were in force before
		return
	}
	if p.Counted && p.Probe {
		l.discard(l.hand.until(p.ProbeAfter))
	}
	if p.Counted && p.Interval != old.Interval {
		l.learn(p.Interval)
	}
}
