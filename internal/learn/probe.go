package learn

import "github.com/weirgo/weir/throttle"

// A Probe tests whether a refusing vendor serves again: one call at a time, later after each
// refusal. The zero value is idle.
type Probe struct {
	Probing bool             // one call departs at a time
	Asked   Mark             // the newest refused probe; Ordinal zero: none
	Gap     float64          // seconds from the last probe to the next; zero: none
	Next    throttle.Instant // when the next call departs; zero: at any time
}

const (
	moreGap     = 1.5   // times: with twice, windows lose their beginnings (TRIED.md)
	longestGap  = 3600  // seconds: few windows are longer, and the vendor is still probed. Test "ProbesGoEverLater"
	freed       = 1     // seconds, or freedTrips: a place is free when a call ends, and not at the end of a window. Test "ReportedPlacesThatOthersHaveAreNoRate"
	freedTrips  = 8     // round trips
	passes      = 4     // times as long as a refusal takes. Test "WhenAProbeHasPassed"
	leastPassed = 0.050 // seconds: refusals of one vendor differ. Test "WhenAProbeHasPassed"
	tripParts   = 6     // of a round trip: a window that was spent is probed after one of them at the soonest. Test "SpentWindowIsProbedLater"
	soon        = 1     // seconds: without an answer, a call leaves in each. They show more than one probe in a long silence. Test "ProbeOfALongSilenceHasNotPassed"
	blockEnds   = 0.95  // of the last block: its end may be seen a probe late. Row "30 s block on exhaustion"
)

// after sets the instant of the next probe: first is the gap to the first one.
func (p *Probe) after(now throttle.Instant, first float64, places bool, rtt float64) {
	if p.Gap == 0 {
		p.Gap = first
	} else {
		p.Gap *= moreGap
	}
	if p.Gap = min(p.Gap, longestGap); places {
		p.Gap = min(p.Gap, max(freed, freedTrips*rtt))
	}
	p.Next = now.Add(seconds(p.Gap))
}

// blocks delays a later probe until the end of a block that began with the refusal.
func (p *Probe) blocks(refused throttle.Instant, block float64) {
	if end := refused.Add(seconds(blockEnds * block)); p.Asked.Ordinal > 0 && end > p.Next {
		p.Next, p.Gap = end, max(p.Gap, (1-blockEnds)*block)
	}
}
