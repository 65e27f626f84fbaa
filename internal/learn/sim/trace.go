package sim

import (
	"fmt"
	"io"
	"time"

	"github.com/weirgo/weir/internal/learn"
)

// TraceTo writes a line for each refusal and each episode's end that a run
// meets from now on, or for every fact.
func TraceTo(out io.Writer, all bool) {
	var old learn.State
	Trace = func(w *world, f *learn.Fact) {
		s := &w.state
		if all || f.Refused || s.Mode != old.Mode || s.Episode != old.Episode {
			fmt.Fprintf(out, "%9.4f #%d flying %d refused %v until %.2f: %v, at %.4g/s held %.3f\n", time.Duration(w.now-w.start).Seconds(),
				f.Ordinal, f.Flying, f.Refused, max(0, f.Until.Sub(f.Landed).Seconds()), s,
				w.plan.Rate, max(0, time.Duration(int64(w.plan.Hold)-w.now).Seconds()))
		}
		old = *s
	}
}
