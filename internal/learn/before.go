package learn

import "github.com/weirgo/weir/throttle"

// Before is the rate served before refusals led to a far lower one. Perhaps others called for a while, and have left. So the
// rate is raised to it again: soon, and after a refusal four times as late. The zero value has no such rate.
type Before struct {
	Rate   float64          // served calls per second; zero: no rate to return to
	Next   throttle.Instant // when the rate is raised
	Gap    float64          // seconds from a refusal until then
	Rising bool             // the rate is being raised
}

const (
	firstReturn = 1.0  // seconds after a refusal until the earlier rate is first tried. Test "RateFromBeforeIsTriedAgain"
	lastReturn  = 60.0 // seconds after a refusal for which it is too late to try. Test "RateFromBeforeIsGivenUp"
	fallen      = 0.85 // below this share of the earlier rate, the rate has fallen. Row "flood of 60/s"
	soonAgain   = 16   // times Gap after a return: a refusal before makes Gap longer, a later one begins with a short Gap again
	mostOthers  = 2.5  // seconds of a silence after which a spent window is as likely as others
)

// refused notes the rate before f began an episode. In a spent window there is no rate to return to.
func (b *Before) refused(f *Fact, rate float64, windows bool) {
	switch {
	case b.Rising:
	case b.Rate == 0 && !windows:
		b.Rate = rate
	default:
		return
	}
	if b.Rising = false; f.Departed.Sub(b.Next).Seconds() > soonAgain*b.Gap {
		b.Gap = firstReturn
	} else if b.Gap = min(4*b.Gap, 4*lastReturn); b.Gap > lastReturn {
		b.Rate = 0
	}
}

// over ends an episode with f, served after a silence. The rate is tried again if it has fallen, and the silence was short.
func (b *Before) over(f *Fact, r *Search, silence float64) {
	if r.R >= fallen*b.Rate || silence > mostOthers {
		b.Rate = 0
		return
	}
	b.Next = max(b.Next, f.Departed.Add(seconds(max(b.Gap, silence))))
}

// raise returns the least growth of the logarithm of the rate in force, for f, which was served.
func (b *Before) raise(f *Fact, r *Search) (least float64) {
	if b.Rate == 0 || f.Departed < b.Next {
		return 0
	}
	if b.Rising = r.R < b.Rate; !b.Rising {
		b.Rate = 0
		return 0
	}
	r.X = max(r.X, 1)
	return mostRise
}
