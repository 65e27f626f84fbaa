package learn

import (
	"time"

	"github.com/weirgo/weir/throttle"
)

// Before is the rate served before refusals led to a far lower one. Perhaps others called for a
// while, and have left since. So the rate is raised to it again: soon, and after a refusal only
// after four times as long. The zero value has no such rate.
type Before struct {
	Rate   float64          // served calls per second; zero: no rate to return to
	Width  float64          // of the estimate at that time, as a share of it
	Next   throttle.Instant // when the rate is raised
	Gap    float64          // seconds from a refusal until then
	Rising bool             // the rate is being raised, or tested at Rate
	There  Mark             // the latest departure when Rate was reached; its Ordinal is zero before
	Lately [2]Mark          // two older departures, each at least a second and eight calls after the previous
	Done   throttle.Instant // when Rate was last found to be served again
}

const (
	firstReturn = 1.0  // seconds after a refusal until the earlier rate is first tried
	lastReturn  = 60.0 // seconds after a refusal for which it is too late to try
	unknown     = 0.25 // width of the served rate if no limit was known
	fallen      = 0.85 // below this share of the earlier rate, the rate has fallen
	mostKnown   = 0.24 // greatest width of a known limit: less than unknown
	soonAgain   = 16   // times Gap: others that come again sooner come often
	mostOthers  = 2.5  // seconds of a silence after which a spent window is as likely as others
)

// depart notes a departure. An idle time before it shows no rate.
func (b *Before) depart(f *Fact, idle bool) {
	at := Mark{f.Ordinal, f.Departed}
	switch {
	case f.Ordinal <= b.Lately[1].Ordinal:
	case b.Lately[1].Ordinal == 0 || idle:
		b.Lately = [2]Mark{at, at}
	case proves(b.Lately[1], f):
		b.Lately = [2]Mark{b.Lately[1], at}
	}
}

// proves reports whether enough calls departed between m and f, over long enough, to show a rate.
func proves(m Mark, f *Fact) bool {
	return f.Ordinal-m.Ordinal >= paceCalls && f.Departed.Sub(m.At) >= time.Second
}

// pace returns the departures per second in the last second or two before f; zero if too few, or
// over too short a time.
func (b *Before) pace(f *Fact) float64 {
	if b.Lately[0].Ordinal == 0 || !proves(b.Lately[0], f) {
		return 0
	}
	return float64(f.Ordinal-b.Lately[0].Ordinal) / f.Departed.Sub(b.Lately[0].At).Seconds()
}

// refused notes the pace before f began an episode, and the estimate then; zero: none. In a spent
// window there is no rate to return to.
func (b *Before) refused(f *Fact, estimate, width float64, windows bool) {
	switch {
	case b.Rising:
		b.Rising, b.There = false, Mark{}
		b.later()
	case b.Rate == 0 && !windows:
		b.Rate, b.Width = b.pace(f), unknown
		if estimate > 0 {
			b.Rate, b.Width = min(b.Rate, estimate), min(width, mostKnown)
		}
		if f.Departed.Sub(b.Done).Seconds() > soonAgain*b.Gap {
			b.Gap = firstReturn
		} else { // it was served, and refused soon after
			b.later()
		}
	}
}

// later puts off the next attempt, or gives it up.
func (b *Before) later() {
	if b.Gap *= 4; b.Gap > lastReturn {
		b.Rate = 0
	}
}

// over ends an episode with f, which was served after a silence. If no limit was known before, the
// rate in force has fallen, however high the estimate is.
func (b *Before) over(f *Fact, r *Search, silence float64) {
	rate := r.W
	if b.Width == unknown {
		rate = r.R
	}
	if rate >= fallen*b.Rate || silence > mostOthers {
		b.Rate = 0
		return
	}
	b.Next = max(b.Next, f.Departed.Add(seconds(max(b.Gap, silence))))
}

// raise returns the least growth of the logarithm of the rate in force, for f, which was served. It
// also returns whether the earlier rate was served for a second. Then it is the estimate again, and
// the vendor did not cause the silence.
func (b *Before) raise(f *Fact, r *Search) (least float64, restored bool) {
	switch {
	case b.Rate == 0 || f.Departed < b.Next:
	case r.R < b.Rate:
		b.Rising, r.X = true, max(r.X, 1)
		return mostRise, false
	case !b.Rising: // it got there by itself
		b.Rate = 0
	case b.There.Ordinal == 0:
		b.There = Mark{f.Granted, f.Landed}
	case proves(b.There, f):
		r.W, r.U, r.X, r.G, r.Marked = b.Rate, b.Width, 0.5, 0, 0
		b.Rate, b.Rising, b.There, b.Done = 0, false, Mark{}, f.Departed
		return 0, true
	}
	return 0, false
}
