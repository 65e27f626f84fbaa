package learn

import (
	"cmp"
	"math"
	"time"

	"github.com/weirgo/weir/throttle"
)

// Traffic is how long an answer takes, and the actual pace of departures. The zero value knows nothing.
type Traffic struct {
	RTT   float64 // seconds from a departure until its fact is observed, smoothed
	Last  Mark    // the newest departure observed
	Slack float64 // share of calls without waiting callers, smoothed
	Pace  [2]Mark // two older departures, each at least eight calls after the previous
}

const (
	smoothTrip  = 8       // RFC 6298 section 2: an eighth of each round trip
	smoothSlack = 32      // calls
	mostSlack   = 0.2     // a higher bound would delay the rate's rise for a flood
	slack       = 0.1     // of the calls: then paces show the demand, not the vendor's limit. Test LowDemandIsNoLimit
	paceCalls   = 8       // the pace of fewer departures, a few milliseconds apart, is random
	unknownRate = 1.0 / 6 // calls per second for which a minute is idle, if no rate is known
	idleCalls   = 10      // calls that would have departed, and a second, without calls: the time shows no rate
)

// Observe applies one more answer, observed now.
func (s *State) Observe(f *Fact, now throttle.Instant) {
	s.meet(f, now)
	s.read(f)
	if f.Refused {
		s.refused(f, now)
	} else {
		s.served(f, now)
	}
}

// meet notes the facts of every answer: how long it took, how late it is observed, and the rate of departures.
func (s *State) meet(f *Fact, now throttle.Instant) {
	if s.RTT == 0 {
		s.End = Mark{f.Ordinal - 1, f.Departed}
		s.Pace = [2]Mark{s.End, s.End}
	}
	rtt := max(1e-9, min(now.Sub(f.Departed), max(0, f.Landed.Sub(f.Departed))+mostLag).Seconds())
	s.RTT = cmp.Or(s.RTT, rtt)
	s.RTT += (rtt - s.RTT) / smoothTrip
	if f.Ordinal-s.Pace[1].Ordinal >= paceCalls {
		s.Pace = [2]Mark{s.Pace[1], {f.Ordinal, f.Departed}}
	}
	if f.Ordinal > s.Last.Ordinal {
		if s.Last.Ordinal > 0 {
			s.rest(f)
		}
		s.Last = Mark{f.Ordinal, f.Departed}
	}
}

// rest restarts the counts if there were no calls for long until f, though the plan let them depart: they show no rate. The
// newest answered call may be old although others departed since: their answers are slow. In an episode a minute without calls
// is needed, as a shorter rest after each refusal is measured. Before any rate is known, callers that begin to wait were idle
// if they called less than once in ten round trips, or in a second.
func (s *State) rest(f *Fact) {
	now, unknown := Mark{f.Ordinal - 1, f.Departed}, unknownRate
	if f.Waited && len(f.Quotas) == 0 {
		unknown = max(unknown, 1/s.RTT)
	}
	since := now.At.Sub(max(s.Last.At, s.Until, s.Next)) / time.Duration(f.Ordinal-s.Last.Ordinal)
	rate := cmp.Or(s.R, s.RefR, unknown)
	if !idle(since, rate) || s.Episode && since < time.Minute || !idle(since, cmp.Or(s.Plan(now.At, now.Ordinal).Rate, rate)) {
		return
	}
	s.restart(now)
	s.Pace = [2]Mark{now, now}
	if s.Episode && s.Mode == Rate {
		s.Episode, s.Probing = false, false
		s.widen(s.RefR)
		s.again()
	}
}

// refused applies a refusal. If its call departed before another one was known, the episode is the same.
func (s *State) refused(f *Fact, now throttle.Instant) {
	if f.Ordinal > s.End.Ordinal {
		s.Refused++
	}
	took, until := f.Landed.Sub(f.Departed).Seconds(), f.Until
	if until.Sub(f.Landed)%time.Second == 0 { // rounded up
		until = until.Add(-time.Second)
	}
	s.Took = max(took, s.Took+(took-s.Took)/smoothTrip)
	s.Until, s.Barred = max(s.Until, f.Until), max(s.Barred, until)
	if f.Ordinal <= s.Cut {
		return
	}
	if !s.Episode || !s.Probing || f.Ordinal == s.Cut+1 { // otherwise the vendor still answers the probe before
		s.Cut = max(f.Granted, f.Ordinal)
	}
	if q, most := s.reportedPlaces(f); q != nil && f.Until == 0 && q.Remaining < 1 && (most > 1 || !f.alone()) { // refused for too many in flight
		s.thin(f, now)
		return
	}
	if !s.Episode && (s.blames(f, now) || s.outage(f, now)) {
		return
	}
	switch {
	case s.Episode:
		s.probeRefused(f, now)
	case s.Mode == Start:
		s.firstRefusal(f, now)
	case s.Mode == Rate:
		// R rose since f departed, by as many answers as were in flight.
		s.begin(f, now, s.shared(s.R)*math.Exp(-min(mostRise, s.Rise*float64(f.Flying-1))))
	default:
		then, asks := s.Places.refused(f, s.Mode, now)
		if s.Mode = then; then == Rate {
			s.toRate()
		}
		if asks {
			s.begin(f, now, s.leaving(f))
		}
	}
}

// outage reports whether a Retry-After teaches no rate, and then counts anew: reported quotas set the pace, and calls were
// served at it for longer than the wait. If a hidden limit refused f, at least half of that limit is used.
func (s *State) outage(f *Fact, now throttle.Instant) bool {
	wait, served := f.Until.Sub(f.Landed), f.Departed.Sub(s.End.At)
	if wait <= rounding || wait > served || !s.Plan(now, f.Granted).Bounded {
		return false
	}
	s.restart(Mark{f.Ordinal, f.Departed})
	return true
}

// served applies the answer of a served call.
func (s *State) served(f *Fact, now throttle.Instant) {
	if s.Slack -= s.Slack / smoothSlack; !f.Waited {
		s.Slack = min(s.Slack+1.0/smoothSlack, mostSlack)
	}
	if f.Ordinal <= s.Cut {
		s.Usual = cmp.Or(s.Usual, usualGain) // a call was served: see Passed
		return
	}
	if s.Episode {
		s.end(f)
		return
	}
	s.note(f)
	switch {
	case !f.Waited:
	case s.Mode == Flight && s.Cap >= s.Ceil && s.Setting.part() < 1: // fewer are in flight, so only a report shows more
		s.raisePlaces(f)
		s.Cap = s.Ceil
	case s.Mode != Rate:
		s.raisePlaces(f)
		if s.Mode = s.Places.grow(f, s.Mode); s.Mode == Flight {
			s.Before.Rate = 0
		}
	case s.W > 0 && s.Slack > slack && s.R >= 1.1*s.pace(f): // there is no need to look for more
	case s.Empty && s.Full == f.Ordinal: // its refusals taught too low a rate
		s.grow(f, unspent)
	case !s.Plan(now, f.Granted).Bounded: // otherwise reported quotas set the pace, and not what refusals taught
		s.grow(f, 0)
	}
}

// grow raises the rate for a call that was served while a caller waited, by a step at least.
func (s *State) grow(f *Fact, least float64) {
	if !s.off(Others) {
		least = max(least, s.Before.raise(f, &s.Search))
	}
	s.Search.grow(f, s.asked(), least)
	s.R = min(s.R, above*s.configuredRate())
	if whole := s.whole(); whole > 0 {
		s.R = min(s.R, whole)
		if s.X > forgiven {
			s.Missed = 0
		}
	}
}

// idle reports whether there were no calls for so long, at a rate, that earlier counts and the time since show no rate.
func idle(since time.Duration, rate float64) bool {
	return since.Seconds() > max(1, idleCalls/rate)
}

// lately returns how many calls departed before f since the last but one mark, and in how many seconds.
func (t *Traffic) lately(f *Fact) (n, d float64) {
	last := Mark{f.Ordinal, f.Departed}
	if last.Ordinal < t.Pace[1].Ordinal {
		last = t.Pace[1]
	}
	return float64(last.Ordinal - t.Pace[0].Ordinal), last.At.Sub(t.Pace[0].At).Seconds()
}

// pace returns the departures per second, silences included; zero if too few departed.
func (t *Traffic) pace(f *Fact) float64 {
	if n, d := t.lately(f); n >= paceCalls && d > 0 {
		return n / d
	}
	return 0
}

// leaving returns the departures per second before f. Many in flight at once show a burst (Little's law).
func (t *Traffic) leaving(f *Fact) float64 {
	burst := float64(f.Flying) / max(t.RTT, 1e-6)
	if n, d := t.lately(f); n >= 1 && d > 0 {
		return max(n/d, burst)
	}
	return burst
}
