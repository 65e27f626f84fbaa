package learn

import (
	"math"
	"time"

	"github.com/weirgo/weir/throttle"
)

// Observe returns the state after one more answer, heard now. It does not
// change s.
func Observe(s State, f *Fact, now throttle.Instant) State {
	s.observe(f, now)
	return s
}

// observe takes one more answer in.
func (s *State) observe(f *Fact, now throttle.Instant) {
	s.meet(f, now)
	s.read(f)
	if f.Refused {
		s.refused(f, now)
	} else {
		s.served(f, now)
	}
	if f.Ordinal > s.Last.Ordinal {
		s.Last = Mark{f.Ordinal, f.Departed}
	}
}

// meet notes what every answer tells: how late facts are, and the rate at which
// calls really leave.
func (s *State) meet(f *Fact, now throttle.Instant) {
	rtt := max(0, min(now.Sub(f.Departed), max(0, f.Landed.Sub(f.Departed))+mostLag).Seconds())
	if s.RTT == 0 {
		s.RTT = rtt
		s.End = Mark{f.Ordinal - 1, f.Departed}
		s.Pace = [2]Mark{s.End, s.End}
	}
	s.RTT += (rtt - s.RTT) / 8
	s.Before.steady(s, f)
	if f.Ordinal-s.Pace[1].Ordinal >= 8 {
		s.Pace = [2]Mark{s.Pace[1], {f.Ordinal, f.Departed}}
	}
	if !s.off(Idle) && !s.Episode && s.Last.Ordinal > 0 && f.Ordinal > s.Last.Ordinal && idle(f.Departed.Sub(s.Last.At), s.R) {
		s.restart(Mark{f.Ordinal - 1, f.Departed})
		s.Pace = [2]Mark{s.End, s.End}
	}
}

// idle reports whether nobody called for so long at a rate that what was counted
// before, and the time since, show no rate.
func idle(since time.Duration, rate float64) bool {
	return rate > 0 && since.Seconds() > max(1, 10/rate)
}

// restart begins to count calls from end on.
func (s *State) restart(end Mark) { s.End, s.Refused = end, 0 }

// slack reports whether one call in ten, or more, leaves without anybody waiting. Then
// counts and paces show how much is asked of the vendor, and not how much it serves,
// and there is no need to look for more.
func (s *State) slack() bool { return !s.off(Slack) && s.W > 0 && s.Slack > 0.1 }

// leaving returns the rate at which calls really left before f did. If nothing
// is known yet, many calls in flight at once show a burst (Little's law).
func (s *State) leaving(f *Fact) float64 {
	n, t := s.lately(f)
	switch {
	case s.W > 0 && n >= 4 && t > 0:
		return n / t
	case s.W > 0: // too few since the last silence to tell
		return math.Inf(1)
	}
	burst := float64(f.Flying) / max(s.RTT, 1e-6)
	if n >= 1 && t > 0 {
		return max(n/t, burst)
	}
	return burst
}

// lately returns how many calls left before f since the last but one mark, and in
// how many seconds.
func (s *State) lately(f *Fact) (n, t float64) {
	last := Mark{f.Ordinal, f.Departed}
	if last.Ordinal < s.Pace[1].Ordinal {
		last = s.Pace[1]
	}
	return float64(last.Ordinal - s.Pace[0].Ordinal), last.At.Sub(s.Pace[0].At).Seconds()
}

// pace returns the rate at which calls left, silences between them included; zero
// if too few have left to tell.
func (s *State) pace(f *Fact) float64 {
	if n, t := s.lately(f); n >= 8 && t > 0 {
		return n / t
	}
	return 0
}

// refused takes in a refusal.
func (s *State) refused(f *Fact, now throttle.Instant) {
	if f.Ordinal > s.End.Ordinal {
		s.Refused++
	}
	s.tell(f)
	if f.Ordinal <= s.Cut {
		s.stale(f)
		return
	}
	s.Cut = max(f.Granted, f.Ordinal)
	if limit := s.crammed(f); limit > 0 {
		s.thin(f, limit, now)
		return
	}
	if !s.Episode && s.Blamed < 3 {
		if blamed, asked := s.blames(f, now); asked {
			return
		} else if blamed {
			s.Blamed++
			return
		}
	}
	switch {
	case s.Episode:
		s.probeRefused(f, now)
	case s.Mode == Start:
		s.firstRefusal(f, now)
	case s.Mode == Rate:
		// R rose since f left, by as many answers as were in flight.
		s.begin(f, now, s.R*math.Exp(-min(mostRise, s.Rise*float64(f.Flying-1))))
	default:
		s.flightRefused(f, now)
	}
}

// tell notes until when a refusal asks to wait. A time in whole seconds was
// rounded up.
func (s *State) tell(f *Fact) {
	s.Until = max(s.Until, f.Until)
	told := f.Until
	if f.Until.Sub(f.Landed)%time.Second == 0 {
		told = told.Add(-time.Second)
	}
	s.Told = max(s.Told, told)
}

// stale notes the refusal of a call that left before an earlier refusal was
// heard.
func (s *State) stale(f *Fact) {
	if s.Episode && f.Ordinal < s.Ref.Ordinal && f.Ordinal > s.End.Ordinal {
		s.Ref = Mark{f.Ordinal, f.Departed}
	}
}

// served takes in that a call was served.
func (s *State) served(f *Fact, now throttle.Instant) {
	free := 0.0
	if !f.Waited {
		free = 1
	}
	s.Slack = min(s.Slack+(free-s.Slack)/32, 0.2) // no more, or a flood waits long for the rate to rise
	if f.Ordinal <= s.Cut {
		return
	}
	if s.Episode {
		s.end(f)
		return
	}
	s.Blamed = 0
	s.note(f)
	if !f.Waited {
		return
	}
	switch s.Mode {
	case Rate:
		if (!s.slack() || s.R < 1.1*s.pace(f)) && !s.bounded(now, f.Granted) { // a worker alone asks for more if it is served faster
			s.grow(f)
		}
	default:
		s.room(f)
		if s.Mode = s.Places.grow(f, s.Mode); s.Mode == Flight {
			s.Before.Rate = 0
		}
	}
}

// bounded reports whether told quotas set the pace, and not what was learned
// from refusals.
func (s *State) bounded(now throttle.Instant, granted int64) bool {
	return s.Plan(now, granted).Bounded
}
