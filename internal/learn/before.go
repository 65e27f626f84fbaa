package learn

import (
	"time"

	"github.com/weirgo/weir/throttle"
)

// Before is what was served before refusals led to a far lower rate. Perhaps others
// called for a while, and have gone since. So the rate is raised to it again: soon, and
// after four times as long each time it was refused. The zero value knows of nothing.
type Before struct {
	Rate   float64          // calls per second that were served; zero: there is nothing to go back to
	Width  float64          // of the estimate at that time, as a share of it
	Next   throttle.Instant // when the rate is raised
	Gap    float64          // seconds from a refusal until then
	Rising bool             // the rate is being raised, or stands at Rate to see whether it is served
	There  Mark             // the latest departure when Rate was reached; its Ordinal is zero before
	Done   throttle.Instant // when Rate was last found to be served again
	Lately [2]Mark          // two older departures, each a second and eight calls after the one before, or more
}

const (
	firstReturn = 1.0  // seconds after a refusal until the rate from before is tried first
	lastReturn  = 60.0 // seconds after a refusal for which it is too late to try
	unknown     = 0.25 // width of what was served if no limit was known
	fallen      = 0.85 // share of the rate from before of which a lower one has fallen
	mostOthers  = 2.5  // seconds of a silence after which it is a window that was spent, as likely as others
)

// steady notes how fast calls leave. A time in which nobody called shows nothing.
func (b *Before) steady(s *State, f *Fact) {
	at := Mark{f.Ordinal, f.Departed}
	switch {
	case f.Ordinal <= b.Lately[1].Ordinal:
	case b.Lately[1].Ordinal == 0, f.Ordinal == s.Last.Ordinal+1 && idle(f.Departed.Sub(s.Last.At), max(s.R, 1)):
		b.Lately = [2]Mark{at, at}
	case f.Ordinal-b.Lately[1].Ordinal >= 8 && f.Departed.Sub(b.Lately[1].At) >= time.Second:
		b.Lately = [2]Mark{b.Lately[1], at}
	}
}

// pace returns how many calls left each second in the last second or two before f;
// zero if too few left, or for too short a time.
func (b *Before) pace(f *Fact) float64 {
	n, d := f.Ordinal-b.Lately[0].Ordinal, f.Departed.Sub(b.Lately[0].At)
	if b.Lately[0].Ordinal == 0 || n < 8 || d < time.Second {
		return 0
	}
	return float64(n) / d.Seconds()
}

// refused notes the rate before the refusal that begins an episode, unless windows are
// counted: there is nothing to go back to in one that is spent.
func (b *Before) refused(s *State, f *Fact) {
	switch {
	case b.Rising:
		b.Rising, b.There = false, Mark{}
		b.later()
	case b.Rate == 0 && !s.windows():
		b.Rate, b.Width = b.pace(f), unknown
		if s.Mode == Rate && s.W > 0 {
			b.Rate, b.Width = min(b.Rate, s.W), min(s.U, 0.24)
		}
		if f.Departed.Sub(b.Done).Seconds() > 16*b.Gap {
			b.Gap = firstReturn
		} else { // it was found to be served, and is refused soon after
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

// over ends an episode with f, which was served. If no limit was known before, the rate
// in force is what has fallen, however high the estimate is.
func (b *Before) over(s *State, f *Fact) {
	rate, silence := s.W, f.Departed.Sub(s.Ref.At).Seconds()
	if b.Width == unknown {
		rate = s.R
	}
	if rate >= fallen*b.Rate || silence > mostOthers {
		b.Rate = 0
		return
	}
	b.Next = max(b.Next, f.Departed.Add(seconds(max(b.Gap, silence))))
}

// raise returns the least growth of the logarithm of the rate in force, for f, which was
// served. If the rate from before is served for a second, it is the estimate again, and
// the silence was not the vendor's.
func (b *Before) raise(s *State, f *Fact) float64 {
	switch {
	case b.Rate == 0 || f.Departed < b.Next || s.off(Others):
		return 0
	case s.R < b.Rate:
		b.Rising, s.X = true, max(s.X, 1)
		return mostRise
	case !b.Rising: // it got there by itself
		b.Rate = 0
	case b.There.Ordinal == 0:
		b.There = Mark{f.Granted, f.Landed}
	case f.Ordinal-b.There.Ordinal >= 8 && f.Departed.Sub(b.There.At) >= time.Second:
		s.W, s.U, s.X, s.G, s.Marked, s.Wide = b.Rate, b.Width, 0.5, 0, 0, 0
		s.restart(Mark{f.Ordinal, f.Departed})
		b.Rate, b.Rising, b.There, b.Done = 0, false, Mark{}, f.Departed
	}
	return 0
}
