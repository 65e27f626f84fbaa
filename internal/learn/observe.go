package learn

import (
	"cmp"
	"math"
	"time"

	"github.com/weirgo/weir/throttle"
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

// rest restarts the counts if there were no calls for long until f, though the plan let them depart: earlier
// counts, and the time since, show no rate. The newest answered call may be old although others departed since:
// their answers are slow. In an episode it takes a minute, and the callers cause the silence. A caller that rests
// for seconds after each refusal is measured: it has no other measure. If no rate is known and callers begin to
// wait, those of before were idle if they used a tenth of what a single caller can.
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
		s.doubt(s.RefR)
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
	if q, most := s.reported(f); q != nil && f.Until == 0 && q.Remaining < 1 && (most > 1 || !f.alone()) { // for too many in flight
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
		// R rose since f left, by as many answers as were in flight.
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

// outage reports whether a Retry-After teaches no rate: reported quotas set the pace, and calls were served at
// it for longer than the wait. If a hidden limit refused f, at least half of that limit is used.
func (s *State) outage(f *Fact, now throttle.Instant) bool {
	wait, served := f.Until.Sub(f.Landed), f.Departed.Sub(s.End.At)
	if wait <= rounding || wait > served || !s.Plan(now, f.Granted).Bounded {
		return false
	}
	s.restart(Mark{f.Ordinal, f.Departed})
	return true
}

// served applies a served call.
func (s *State) served(f *Fact, now throttle.Instant) {
	if s.Slack -= s.Slack / smoothSlack; !f.Waited {
		s.Slack = min(s.Slack+1.0/smoothSlack, mostSlack)
	}
	if f.Ordinal <= s.Cut {
		s.Usual = cmp.Or(s.Usual, usualGain) // no longer unknown: see Passed
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
		s.room(f)
		s.Cap = s.Ceil
	case s.Mode != Rate:
		s.room(f)
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
	s.R = min(s.R, above*s.ceiling())
	if whole := s.whole(); whole > 0 {
		s.R = min(s.R, whole)
		if s.X > forgiven {
			s.Missed = 0
		}
	}
}
