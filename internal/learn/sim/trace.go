package sim

import (
	"fmt"
	"io"
	"time"

	"github.com/weirgo/weir/internal/course"
	"github.com/weirgo/weir/internal/learn"
)

// TraceTo writes a line for each refusal and each end of an episode in a run from now on, or for
// every answer.
func TraceTo(out io.Writer, all bool) {
	var old learn.State
	Trace = func(w *world, a *course.Answer) {
		s, p := w.course.Learned()
		if all || a.Refused || s.Mode != old.Mode || s.Episode != old.Episode {
			fmt.Fprintf(out, "%9.4f #%d flying %d refused %v until %.2f: %s, at %.4g/s held %.3f\n", time.Duration(w.now-w.start).Seconds(),
				a.ID, w.flying, a.Refused, max(0, time.Duration(int64(a.Until)-w.now).Seconds()), line(&s),
				p.Rate, max(0, time.Duration(int64(p.Hold)-w.now).Seconds()))
		}
		old = s
	}
}

// line returns a line about the learned state.
func line(s *learn.State) string {
	text := [...]string{"start", "trial", "flight", "rate"}[s.Mode]
	if s.Episode {
		text += " refused"
	}
	text += fmt.Sprintf(" cap %.1f/%.0f R %.4g W %.4g U %.3f X %.2f G %.2f P %.1f", s.Cap, s.Ceil, s.R, s.W, s.U, s.X, s.G, s.P)
	for _, t := range s.Ceilings {
		if t.Key == 0 {
			continue
		}
		text += fmt.Sprintf(" [%.0f left %.1f slope %.3g±%.3g C %.1f V %.1f gap %.3g", t.Limit, t.V-float64(s.Last.Ordinal), t.Slope, t.Blur, t.C, t.V, t.Gap)
		if t.Stands {
			text += fmt.Sprintf(" stands P %.3g ends %d moves %d", t.Period, t.Ends, t.Moves)
		}
		if t.Whole {
			text += " whole"
		}
		text += "]"
	}
	return text
}
