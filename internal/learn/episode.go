package learn

import (
	"time"

	"github.com/weirgo/weir/throttle"
)

// Refusals is what all machines need to know of refused calls: the episode, its probes, and the counts since the episode
// before. An episode lasts from a refusal to the first served call that departed after the refusal was known. The zero
// value knows of no refusal.
type Refusals struct {
	Episode bool             // a call was refused, and none was served since
	Cut     int64            // refusals of departures up to this ordinal are of this episode
	Until   throttle.Instant // before which the vendor wants no calls
	Barred  throttle.Instant // until then the vendor would have refused: Until, less what may be its rounding
	Ref     Mark             // the first refused departure
	RefR    float64          // rate in force at it
	End     Mark             // the call whose service ended the last episode; at first, the first departure
	Refused int              // calls refused since End
	Empty   bool             // the first refused answer reported that nothing was left
	Took    float64          // seconds that a refusal takes, a slow one; zero: unknown

	Probing bool             // one call departs at a time
	Asked   Mark             // the newest refused probe; Ordinal zero: none
	Gap     float64          // seconds from the last probe to the next; zero: none
	Next    throttle.Instant // when the next call departs; zero: at any time
}

const (
	moreGap     = 1.5   // times: with twice, windows lose their beginnings (TRIED.md)
	longestGap  = 3600  // seconds: few windows are longer, and the vendor is still probed. Test "ProbesGoEverLater"
	freed       = 1     // seconds, or freedTrips: longest gap between probes for a place, which any call that ends may free. Test "ReportedPlacesThatOthersHaveAreNoRate"
	freedTrips  = 8     // round trips
	passes      = 4     // times as long as a slow refusal takes: an unanswered probe was served. Test "UnansweredProbePassesIfRefusalsAreFast"
	leastPassed = 0.050 // seconds: the same at least, as refusals of one vendor differ. Test "UnansweredProbePassesIfRefusalsAreFast"
	tripParts   = 6     // of a round trip: the least gap before the first probe, if the vendor counts in windows. Test "SpentWindowIsProbedLater"
	soonGap     = 1     // seconds: largest gap after which an unanswered probe has passed, if no call was served. With a larger one, calls that depart unanswered, one a second, show more. Test "ProbeOfALongSilenceHasNotPassed"
	blockEnds   = 0.95  // of the last block: its end may be seen a probe late. Row "30 s block on exhaustion"
)

// asked reports whether the vendor asked for a wait that ends after the first refused departure.
func (r *Refusals) asked() bool { return r.Until > r.Ref.At }

// restart begins to count calls from end on.
func (r *Refusals) restart(end Mark) { r.End, r.Refused = end, 0 }

// count returns how many of the calls from End to f were served.
func (r *Refusals) count(f *Fact) float64 {
	return float64(f.Ordinal-r.End.Ordinal) - float64(r.Refused)
}

// forbidden returns the seconds from the first refusal until f in which the vendor would have refused, as it reported a time.
func (r *Refusals) forbidden(f *Fact) float64 {
	return min(r.Barred, f.Departed).Sub(r.Ref.At).Seconds()
}

// sample returns the counts up to f, which ended the episode.
func (s *State) sample(f *Fact) *sample {
	m := &sample{
		began: s.End, refused: s.Ref, rate: s.RefR, asked: s.asked(), rtt: s.RTT,
		idle:    s.W > 0 && s.Slack > slack || s.W == 0 && idle(s.Ref.At.Sub(s.End.At)/time.Duration(max(1, s.Ref.Ordinal-s.End.Ordinal)), 1/s.RTT),
		rough:   s.Setting.Shared && s.Measured,
		n:       max(1, s.count(f)),
		t:       max(f.Departed.Sub(s.End.At).Seconds(), 1e-6),
		silence: f.Departed.Sub(s.Ref.At).Seconds(),
		probed:  max(0, s.Asked.At.Sub(s.Ref.At).Seconds()),
		burst:   max(0, float64(s.Ref.Ordinal-s.End.Ordinal-2)), // without the first call's own permit, and the refused call
	}
	if s.Setting.Shared && !s.Measured { // calls without ordinals seem early, so all may be the burst; marks count the refused call, too
		m.burst = max(m.burst, m.n) + 1
		if s.Setting.part() == 1 { // a share is of a rate that is surely served
			m.spent = max(0, s.Ref.At.Sub(s.End.At).Seconds())
		}
	}
	if m.covered = m.probed; m.asked && m.probed == 0 { // it ended as reported
		m.covered = max(0, s.forbidden(f))
	}
	if s.off(Covered) {
		m.covered = 0
	}
	return m
}

// begin begins an episode with the refusal of f, which departed at a rate.
func (s *State) begin(f *Fact, now throttle.Instant, rate float64) {
	served := 0.0
	if n, d := s.count(f), f.Departed.Sub(s.End.At).Seconds(); n >= paceCalls && d > 1 { // fewer show no rate
		served = n / d
	}
	if s.W > 0 {
		served = min(served, s.W)
	}
	s.Before.refused(f, served, s.windows())
	if s.Mode == Rate && !s.Setting.Shared && !s.off(Trials) && s.crowded(f, float64(f.Flying)*rate/s.shared(s.R), now) {
		s.Mode = Trial
		s.try(f)
	}
	s.missed()
	rate = min(rate, s.configuredRate())
	s.Episode, s.Ref, s.RefR = true, Mark{f.Ordinal, f.Departed}, max(rate, 1e-6)
	left, ok := Left(f.Quotas)
	s.Empty = ok && left < 1
	s.Asked, s.Gap = Mark{}, 0 // the first probe is quick
	s.Probing = s.W == 0 || s.U > narrow || s.Mode == Trial
	if s.W != 0 { // the rate is lower until the episode ends, and lower still if the refusal came early in its search
		if s.R = min(s.R, s.W*(1-s.U)); s.X < earlyX {
			s.R *= tooEarly
		}
	}
	s.probe(now)
}

// probe sets the next probe: the first one a round trip after the refusal, or sooner if refusals are fast, but not within
// an interval of the rate. Each further one comes 1.5 times later, and waits for the end of a block.
func (s *State) probe(now throttle.Instant) {
	if s.Gap *= moreGap; s.Gap == 0 {
		s.Gap = max(min(s.RTT, max(s.Passed().Seconds(), min(s.P, s.RTT/tripParts))), 1/s.RefR)
	}
	if s.Gap = min(s.Gap, longestGap); s.Mode == Flight {
		s.Gap = min(s.Gap, max(freed, freedTrips*s.RTT))
	}
	s.Next = now.Add(seconds(s.Gap))
	if end := s.Ref.At.Add(seconds(blockEnds * s.Block)); s.Mode != Flight && s.Asked.Ordinal > 0 && end > s.Next {
		s.Next, s.Gap = end, max(s.Gap, (1-blockEnds)*s.Block)
	}
}

// probeRefused handles the refusal of a call that departed after the episode began.
func (s *State) probeRefused(f *Fact, now throttle.Instant) {
	// If processes share the lane, f seems to be alone until the first calls have landed.
	if s.Mode == Trial && f.alone() && !s.Proven && (s.Usual > 0 || !s.Setting.Shared) {
		s.ban(now)
		s.toRate()
	}
	s.Probing, s.Asked = true, Mark{f.Ordinal, f.Departed}
	s.probe(now)
}

// Passed returns how long after its departure a probe without an answer counts as served: a refusal would be here. It is
// known while a rate is searched and this is less than half a round trip, or if no call was served yet and probes are close
// together. Otherwise it is an hour: the probe may have the place of a served call, or others have spent a long window.
func (s *State) Passed() time.Duration {
	passed := max(leastPassed, passes*s.Took)
	if (s.Usual == 0 && s.Mode != Flight && s.Gap < max(soonGap, passed) || 2*passed < s.RTT && s.Mode == Rate) && !s.Setting.Shared {
		return seconds(passed)
	}
	return time.Hour
}

// Pass ends the episode before f, a probe that has passed, is answered.
func (s *State) Pass(f *Fact) {
	if s.Mode == Trial { // as many calls are in flight as when one was refused
		s.ban(f.Landed)
		s.toRate()
	}
	s.end(f)
}

// end ends the episode with f, a served probe. In Rate a new estimate is made, unless the calls since the last show too little.
func (s *State) end(f *Fact) {
	here := Mark{f.Ordinal, f.Departed}
	s.Episode, s.Probing, s.Next = false, false, 0
	s.Pace = [2]Mark{here, here}
	if s.Mode == Trial && s.Setting.Shared && f.Landed.Sub(f.Departed).Seconds() < slowAnswers {
		s.toRate()
	}
	if s.Mode != Rate {
		s.Cap, s.Usual = 1, usualGain
		s.restart(here)
		return
	}
	if s.W != 0 && s.U < narrow { // refusals in the first half of searches are usual beside other clients: searches then take longer
		if s.Early -= s.Early / 8; s.X < 0.5 {
			s.Early += 1.0 / 8
		}
	}
	switch {
	case s.W > 0 && !s.Measured && (s.configured() || s.RefR < 1.5*s.W): // from configured limits or a memory, and perhaps still right
		// Calls that departed long ago, at another rate or from a full bucket, show nothing.
		s.Measured, s.B, s.Burst, s.Spent = true, s.Setting.Burst, s.Setting.Burst, 0
		s.restart(here)
	case s.small(f): // counts go on
		s.widen(s.RefR)
	case s.mute(f):
		s.widen(s.RefR)
		s.restart(here)
	default:
		before := s.W
		s.measure(s.sample(f))
		s.restart(here)
		s.found(before)
	}
	if s.off(Windows) {
		s.P = 0
	}
	if s.off(Block) {
		s.Block = 0
	}
	s.again()
	s.Before.over(f, &s.Search, f.Departed.Sub(s.Ref.At).Seconds())
	if !s.off(Slowly) { // the limiter would admit a call at once, and a vendor with a burst of one would refuse it
		s.Next = f.Departed.Add(seconds(min(1/s.R, longestGap)))
	}
}

// mute reports whether a window was spent when it had hardly begun, which measures nothing, and then takes the wait for the
// period. Some vendors go on counting the last window, and report the end of this one. A second time in a row, the limit may
// have fallen.
func (s *State) mute(f *Fact) bool {
	if s.off(Mute) {
		return false
	}
	wait := s.forbidden(f)
	s.Mute = s.W > 0 && !s.Mute && wait > 2 && s.count(f) < s.W*f.Departed.Sub(s.End.At).Seconds()/4
	if s.Mute {
		s.P, s.G = max(s.P, wait), wait
	}
	return s.Mute
}

// small reports whether the episode shows no more than is known: a silence that is mostly rounding, or too few calls. A
// count of n is exact to 1/n, so 0.5/U calls are enough, or 16.
func (s *State) small(f *Fact) bool {
	silence := f.Departed.Sub(s.Ref.At).Seconds()
	if s.asked() && s.windows() && s.X < earlyX && s.U < narrow && s.forbidden(f) < silence/2 {
		return true // the silence may be the reported time's rounding for the most part
	}
	return s.W > 0 && s.count(f) < min(16, 0.5/s.U) && silence < max(bucketGains/s.W, bucketTrips*s.RTT)
}
