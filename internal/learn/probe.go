package learn

import (
	"time"

	"github.com/weirgo/weir/throttle"
)

// A Probe tests whether a refusing vendor serves again: one call at a time, later after each
// refusal. The zero value is idle.
type Probe struct {
	Probing bool             // one call departs at a time
	Asked   Mark             // the newest refused probe; Ordinal zero: none
	Gap     float64          // seconds from the last probe to the next; zero: none
	Next    throttle.Instant // when the next call departs; zero: at any time
}

const (
	moreGap    = 1.5  // times: with twice, windows lose their beginnings (TRIED.md)
	longestGap = 3600 // seconds: few windows are longer, and the vendor is still probed
	freed      = 1    // seconds, or freedTrips: a place is free when a call ends, and not at the end of a window. Test "ToldPlacesThatOthersHave"
	freedTrips = 8    // round trips
	blockEnds  = 0.95 // of the last block: its end may be seen a probe late. Row "30 s block on exhaustion"
	leastRound = 0.5  // shortest rounded gap in seconds: the shortest window is a second
	lateRound  = 0.03 // seconds of a probe after a round instant, for clocks that differ
)

// after sets the instant of the next probe: first is the gap to the first one, and began is
// when the vendor's window may have begun.
func (p *Probe) after(now throttle.Instant, first float64, places bool, began throttle.Instant, rtt float64) {
	if p.Gap == 0 {
		p.Gap = first
	} else {
		p.Gap *= moreGap
	}
	if p.Gap = min(p.Gap, longestGap); places {
		p.Gap = min(p.Gap, max(freed, freedTrips*rtt))
	}
	p.Next = round(now, p.Gap, began, rtt)
}

// blocks delays a later probe until the end of a block that began with the refusal.
func (p *Probe) blocks(refused throttle.Instant, block float64) {
	if end := refused.Add(seconds(blockEnds * block)); p.Asked.Ordinal > 0 && end > p.Next {
		p.Next, p.Gap = end, max(p.Gap, (1-blockEnds)*block)
	}
}

// rounds are the lengths that windows have.
var rounds = [...]time.Duration{
	time.Hour, 30 * time.Minute, 15 * time.Minute, 10 * time.Minute, 5 * time.Minute, 2 * time.Minute, time.Minute,
	30 * time.Second, 15 * time.Second, 10 * time.Second, 5 * time.Second, 2 * time.Second, time.Second,
}

// round returns the roundest instant in the last two thirds of the gap, because windows
// end at multiples of their length, by the wall clock or since their first call:
//
//	asked at 12:00:21, gap 48 s: at 12:01:00 and a little, not at 12:01:09
func round(now throttle.Instant, gap float64, began throttle.Instant, rtt float64) throttle.Instant {
	end := now.Add(seconds(gap))
	if gap < leastRound {
		return end
	}
	begin := now.Add(seconds(gap / 3))
	late := seconds(lateRound + rtt/2)
	for _, unit := range rounds {
		if first := began.Add(unit + late); first >= begin && first <= end {
			return first
		}
		wall := end.Add(-late)
		wall -= wall % throttle.Instant(unit)
		if wall = wall.Add(late); wall >= begin {
			return wall
		}
	}
	return end
}
