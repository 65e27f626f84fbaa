package reserve

import (
	"context"
	"log/slog"

	"github.com/weirgo/weir/internal/store"
)

// strayed logs how replicas fell out of step, and passes it to the watch. No lock is held.
func (l *Limiter) strayed(events []store.Event) {
	for _, event := range events {
		level := slog.LevelWarn
		if event == store.EventLimitsAgree {
			level = slog.LevelInfo
		}
		l.log(level, sentences[event])
		if by := l.By.Load(); by != nil && by.Strayed != nil {
			by.Strayed(event)
		}
	}
}

func (l *Limiter) log(level slog.Level, text string) {
	l.Hub.Logger().Log(context.Background(), level, text, "lane", l.name, "namespace", l.Hub.Namespace)
}

// sentences describe events in logs.
var sentences = map[store.Event]string{
	store.EventLimitsDiffer: "weir: other replicas claim stricter limits, and those hold",
	store.EventLimitsAgree:  "weir: no other replica claims stricter limits any more",
	store.EventStateLost:    "weir: the state of shared limits was lost, and begins anew",
	store.EventStateForeign: "weir: the state of shared limits was not written by this version, and begins anew: another program writes to it",
	store.EventClockStepped: "weir: the clocks of Redis and of this process moved apart: one of them was set, or stood still",
	store.EventPermitsVoid:  "weir: most permits are void before they can be used: the way to Redis is slow, or this process stands still",
}
