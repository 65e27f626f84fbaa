package weir

import (
	"context"
	"sync/atomic"
	"time"
	"weak"

	"go.opentelemetry.io/otel/trace"

	"github.com/weirgo/weir/internal/lane"
	"github.com/weirgo/weir/internal/learn"
	"github.com/weirgo/weir/internal/store"
	"github.com/weirgo/weir/internal/telemetry"
	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// WaitHook returns a hook for a queue of your own. It makes each wait that
// really waits a span "weir.wait", as a [Transport] does:
//
//	queue.Hook = weir.WaitHook("jobs", nil)
//
// The lane's name becomes an attribute, so there must be few of them. If
// provider is nil, the global one is used. One hook may serve several queues.
func WaitHook(lane string, provider trace.TracerProvider) *shaping.Hook {
	tracer := telemetry.NewTracer(provider)
	return &shaping.Hook{Wait: func(ctx context.Context, w shaping.Wait) func(error) {
		return tracer.Wait(ctx, lane, telemetry.StoreOf(w.Queue.State().Store), &w, nil)
	}}
}

// An observer shows in spans and metrics what happens in one lane. It also
// keeps, for the lane's calls, what HTTP has shown of the server. The lane
// itself knows nothing of HTTP or telemetry.
type observer struct {
	t      *Transport
	key    string
	meter  telemetry.Meter
	asking telemetry.Asking // waits for the store's answer
	server server
	calls  atomic.Uint64 // that have entered the lane: the ID of the last one
	counts counts
	watch  watch
	met    credentials
}

// observerOf returns the observer of a lane.
func observerOf(l *lane.Lane) *observer { return l.Observer.(*observer) }

// observe returns the observer of a new lane of a key.
func (t *Transport) observe(key string) lane.Observer {
	return &observer{t: t, key: key, meter: t.metrics.Meter(key)}
}

// Waits begins the span of a wait. The function that it returns ends the span.
func (o *observer) Waits(ctx context.Context, w shaping.Wait, store *throttle.StoreState) (ended func(error)) {
	settle := o.asking.Settle(&w)
	record := o.meter.Wait(ctx, &w, o.t.tracer.Wait(ctx, o.key, telemetry.StoreOf(store), &w, &o.asking))
	return func(err error) {
		settle()
		record(err)
	}
}

// Called counts a call to the store, and makes it a span of each caller that waited for it.
func (o *observer) Called(c store.Call) {
	o.t.metrics.Called(&c)
	o.asking.Called(&c)
}

// Strayed counts how replicas diverged, and adds an event to the spans of waits for the store.
func (o *observer) Strayed(e store.Event) {
	o.meter.Strayed(e)
	o.asking.Strayed(e)
}

// Paused counts a pause. The server asked for asked, and the lane is paused for
// held.
func (o *observer) Paused(asked, held time.Duration) { o.meter.Pause(asked, held) }

// Learned adds the learned limit to the span of the call whose answer taught it.
func (o *observer) Learned(ctx context.Context, k learn.Known) {
	telemetry.Learned(ctx, o.key, k.Rate, k.InFlight)
}

// Closed counts a closed lane's losses in its store.
func (o *observer) Closed(store *throttle.StoreState) { o.meter.Lost(context.Background(), store) }

// observed returns the lanes for the metrics. It does not keep the lanes in
// memory, because a Transport may be dropped without having been closed.
func observed(s *lane.Lanes) telemetry.Lanes {
	lanes := weak.Make(s)
	return func(yield func(*telemetry.Meter, telemetry.State) bool) {
		if s := lanes.Value(); s != nil {
			s.Each(func(l *lane.Lane) bool {
				o := observerOf(l)
				return yield(&o.meter, telemetry.State{State: l.Queue.State(), MostWaiting: o.t.mostWaiting(), Configured: l.Configured(), Learned: l.Course.Known().Rate})
			})
		}
	}
}
