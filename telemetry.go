package weir

import (
	"context"

	"go.opentelemetry.io/otel/trace"

	"github.com/weirgo/weir/internal/telemetry"
	"github.com/weirgo/weir/shaping"
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
