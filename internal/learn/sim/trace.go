package sim

import (
	"fmt"
	"io"
	"time"

	"github.com/weirgo/weir/internal/course"
	"github.com/weirgo/weir/internal/learn"
)

// TraceTo writes a line for each refusal and each episode's end that a run
// meets from now on, or for every answer.
func TraceTo(out io.Writer, all bool) {
	var old learn.State
	Trace = func(w *world, a *course.Answer) {
		s, p := w.course.Learned()
		if all || a.Refused || s.Mode != old.Mode || s.Episode != old.Episode {
			fmt.Fprintf(out, "%9.4f #%d flying %d refused %v until %.2f: %v, at %.4g/s held %.3f\n", time.Duration(w.now-w.start).Seconds(),
				a.ID, w.flying, a.Refused, max(0, time.Duration(int64(a.Until)-w.now).Seconds()), &s,
				p.Rate, max(0, time.Duration(int64(p.Hold)-w.now).Seconds()))
		}
		old = s
	}
}
