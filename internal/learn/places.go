package learn

import "github.com/weirgo/weir/throttle"

// Places bounds the calls in flight. In Start it grows as TCP's window does, in Trial it tests whether the
// vendor counts calls in flight, in Flight the vendor does. The zero value bounds nothing yet.
type Places struct {
	Cap    float64          // most calls in flight
	Ceil   float64          // bound of Cap's growth, in Trial and Flight
	Usual  float64          // seven of eight served calls departed with no more calls in flight; zero: no call was served
	Step   float64          // by how much Ceil was raised last; zero: unchanged
	Run    int              // answers in a row with Cap at Ceil
	Crowds int              // episodes in a row that began with more than Usual in flight
	Back   bool             // more than Ceil were tried and refused
	Proven bool             // and Ceil was served for long after that
	Ban    float64          // seconds from the last failed trial to the next
	Banned throttle.Instant // until then, refusals are not blamed on calls in flight
}

const (
	leastPlaces = 5     // in flight at the first refusal: with fewer, a rate wastes less than a bound that is one too low. Rows "drain bare", "drain 8 in flight"
	quickStart  = 8     // in flight up to which each answer adds one; above, half of one, or the first refusal meets twice the vendor's bound
	nearCeil    = 0.75  // of Ceil: a bound met before is reached again as quickly. Row "flood of 60/s"
	lessCap     = 0.8   // of Ceil: a refused trial continues below it, so that the refused rate is not kept at once. Row "flood of 60/s"
	proof       = 50    // answers in a row at Ceil that end a trial, or a step
	patience    = 200   // answers in a row at Ceil before it is raised: 0.5 % are refused. Rows "16 in flight"
	slowAnswers = 0.020 // seconds: for faster ones a fleet's store bounds no calls in flight
	mostCrowds  = 4     // a rate refuses one of eight calls with more than Usual in flight: four in a row are one in 4,000. Test "PacedLaneFindsThePlaces"
	usualGain   = 0.25  // of a call: five answers above Usual raise it by one. Row "drain bare, 50 ms service"
	firstBan    = 2     // seconds. Over sockets a ban of a minute used 8 places to 0.65 until a drain ended
	moreBan     = 4     // times: a vendor that counts a rate bears five trials in its first two minutes. Test "RefusalWithTheUsualInFlightIsARate"
	longestBan  = 60    // seconds. Test "RefusalWithTheUsualInFlightIsARate"
)

// note records how many calls were in flight when a served call departed.
func (p *Places) note(f *Fact) {
	if float64(f.Flying) > p.Usual {
		p.Usual += max(usualGain*7/8, (float64(f.Flying)-p.Usual)/8)
	} else {
		p.Usual = max(0, p.Usual-usualGain/8)
	}
}

// try begins a trial, with fewer calls in flight than when f was refused.
func (p *Places) try(f *Fact) {
	p.Ceil, p.Run, p.Step, p.Crowds, p.Back = float64(f.Flying-1), 0, 0, 0, false
}

// ban ends a trial that failed. The next comes four times as late.
func (p *Places) ban(now throttle.Instant) {
	p.Ban = min(max(firstBan, moreBan*p.Ban), longestBan)
	p.Banned, p.Proven = now.Add(seconds(p.Ban)), false
}

// grow lets one more call, or half a one, be in flight, because f was served. It returns the mode.
func (p *Places) grow(f *Fact, m Mode) Mode {
	if float64(f.Flying)*2 < p.Cap {
		return m
	}
	step := 0.5
	if p.Cap < max(quickStart, nearCeil*p.Ceil) {
		step = 1
	}
	switch {
	case m == Start:
		p.Cap = min(p.Cap+step, 1<<20)
		return m
	case p.Cap < p.Ceil:
		p.Cap = min(p.Cap+step, p.Ceil)
		return m
	}
	p.Run++
	switch {
	case m == Trial && p.Run >= proof: // the first step comes after as many again: the trial may have ended too low
		m, p.Run, p.Step, p.Ban, p.Proven = Flight, patience-proof, 0, 0, false
	case m == Flight && (p.Run >= patience || p.Step > 0 && p.Run >= proof):
		if p.Step > 0 { // more are served than were refused before
			p.Proven, p.Back = false, false
		}
		p.Proven = p.Proven || p.Back
		p.Step = max(1, 2*p.Step)
		p.Ceil += p.Step
		p.Cap, p.Run = p.Ceil, 0
	}
	return m
}

// refused handles a refusal in Trial or Flight. It returns the mode from then on, and whether single calls probe first.
func (p *Places) refused(f *Fact, m Mode, now throttle.Instant) (then Mode, asks bool) {
	switch {
	case m == Trial && !f.alone() && float64(f.Flying) > p.Usual && (p.Proven || f.Flying >= leastPlaces):
		asks = float64(f.Flying) > p.Cap+1 // more are in flight than the trial allows, as overdue calls do not count
		p.Ceil = max(1, min(p.Ceil, float64(f.Flying-1)))
		p.Cap, p.Run = min(p.Cap, max(1, lessCap*p.Ceil)), 0
		return Trial, asks
	case m == Trial && f.alone() && p.Proven: // others have all places
		return Trial, true
	case m == Trial: // a rate: with few in flight it is not exceeded
	case p.Step > 0 && float64(f.Flying) > p.Ceil-p.Step-2:
		p.Ceil = max(1, p.Ceil-p.Step)
		p.Cap, p.Step, p.Run, p.Back = p.Ceil, 0, 0, true
		return Flight, false
	case p.Run >= proof: // calls overtake each other on the way
		p.Run = 0
		return Flight, false
	case p.Proven: // the bound has fallen
		p.try(f)
		return Trial, true
	}
	p.ban(now)
	return Rate, true
}

// crowded counts refusals of paced calls that departed with more in flight than usual, without those that the rising rate
// adds. It reports whether this is the fourth in a row: then the vendor may count calls in flight.
func (p *Places) crowded(f *Fact, flying float64, now throttle.Instant) bool {
	if f.Until > 0 || f.Flying <= 1 || p.Usual == 0 || flying <= p.Usual || now < p.Banned {
		p.Crowds = 0
		return false
	}
	p.Crowds++
	return p.Crowds >= mostCrowds
}

// firstRefusal chooses what the vendor is assumed to count.
func (s *State) firstRefusal(f *Fact, now throttle.Instant) {
	switch {
	case s.configured() && !s.off(Near):
		s.toRate()
		s.W, s.U, s.R = near*s.Setting.Configured, 1-near, near*s.Setting.Configured
	case f.Until > 0 || f.Flying < leastPlaces && !s.Setting.Shared || now < s.Banned || s.off(Trials):
		s.toRate()
	default:
		s.Mode = Trial
		if s.try(f); s.Setting.Shared { // f knows of no call of processes that have not sent anything yet
			s.Ceil = max(2*s.Ceil, leastPlaces)
		}
	}
	s.begin(f, now, s.leaving(f))
}

// toRate begins to search for a rate, which is unknown yet.
func (s *State) toRate() {
	s.Mode = Rate
	s.W, s.U, s.X = 0, mostWidth, 0
}

// thin lowers the calls in flight, because others use places. The first refusal after many calls, or after the bound was
// raised, lowers nothing: calls overtake each other. If f was alone, others have all places: single probes are sent, and no rate is learned from them.
func (s *State) thin(f *Fact, now throttle.Instant) {
	if s.Mode != Flight || s.Run < proof && s.Step == 0 {
		s.Ceil = max(1, float64(f.Flying-1))
	}
	asked := s.Mode == Flight && s.Episode
	s.Mode, s.Run, s.Step = Flight, 0, 0
	switch {
	case !f.alone():
		s.Episode, s.Probing = false, false
	case asked:
		s.probeRefused(f, now)
	default:
		s.begin(f, now, s.leaving(f))
		s.Ceil, s.Probing = 1, true
	}
	s.Cap, s.Before.Rate = s.Ceil, 0
}

// raisePlaces raises the bound again while the vendor reports free places: by one for four answers in each place,
// and at least by half of the free places beyond the calls in flight, because the others may have stopped.
func (s *State) raisePlaces(f *Fact) {
	q, most := s.reportedPlaces(f)
	if s.Mode != Flight || q == nil || q.Remaining < 1 || s.Ceil >= most || s.off(Room) {
		return
	}
	s.Ceil = min(max(s.Ceil+0.25/s.Ceil, float64(f.Flying)+q.Remaining/2), most)
}
