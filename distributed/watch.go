package distributed

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/weirgo/weir/internal/store"
)

// A watched tells of calls to the store whoever watches a limiter, or slots.
type watched struct {
	by atomic.Pointer[store.Watch] // nil: nobody
}

var (
	_ store.Watchable = (*limiter)(nil)
	_ store.Watchable = (*slots)(nil)
)

// Watch implements [store.Watchable].
func (w *watched) Watch(by store.Watch) { w.by.Store(&by) }

// called tells of a call that has ended, of which a failure has a cause.
func (w *watched) called(operation store.Operation, began time.Time, took time.Duration, cause string) {
	if by := w.by.Load(); by != nil && by.Called != nil {
		by.Called(store.Call{Operation: operation, Began: began, Took: took, Cause: cause})
	}
}

// strayed tells the operator, and whoever watches, how replicas fell out of step. No
// lock is held.
func (l *limiter) strayed(events []store.Event) {
	for _, event := range events {
		level := slog.LevelWarn
		if event == store.EventLimitsAgree {
			level = slog.LevelInfo
		}
		l.store.logger().LogAttrs(context.Background(), level, sentences[event],
			slog.String("lane", l.name), slog.String("namespace", l.store.namespace))
		if by := l.by.Load(); by != nil && by.Strayed != nil {
			by.Strayed(event)
		}
	}
}

// sentences are what the operator is told of an event.
var sentences = map[store.Event]string{
	store.EventLimitsDiffer: "weir: other replicas claim stricter limits, and those hold",
	store.EventLimitsAgree:  "weir: no other replica claims stricter limits any more",
	store.EventStateLost:    "weir: the state of shared limits was lost, and begins anew",
	store.EventStateForeign: "weir: the state of shared limits was none of this version's, and begins anew: somebody else writes to it",
	store.EventClockStepped: "weir: the clocks of Redis and of this process moved apart: one of them was set, or stood still",
	store.EventPermitsVoid:  "weir: most permits are void before they can be used: the way to Redis is slow, or this process stands still",
}

// operation returns what a call that leaves now is for.
func (l *limiter) operation() store.Operation {
	switch {
	case l.lost:
		return store.OperationProbe
	case len(l.flight.groups) > 0:
		return store.OperationReserve
	default:
		return store.OperationTell
	}
}
