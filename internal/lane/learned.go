package lane

import (
	"context"
	"math"

	"github.com/weirgo/weir/internal/course"
)

// An Answer is the outcome of a call that departed from a lane.
type Answer = course.Answer

// Learned passes a report to the observer and the log.
func (l *Lane) Learned(ctx context.Context, r course.Report) {
	if r.Event {
		l.Observer.Learned(ctx, r.Known)
	}
	if !r.Line {
		return
	}
	with := []any{"lane", l.Key}
	if r.Known.Rate > 0 {
		with = append(with, "per_second", math.Round(r.Known.Rate*100)/100)
	}
	if r.Known.InFlight > 0 {
		with = append(with, "in_flight", r.Known.InFlight)
	}
	l.settings.Logger().Info("weir: a limit was learned from the server's answers", with...)
}
