package telemetry

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
)

// Recording reports whether the span of the call with the context is recorded.
func Recording(ctx context.Context) bool { return trace.SpanFromContext(ctx).IsRecording() }

// event adds an event about a lane to the span of the call with the context.
func event(ctx context.Context, name, lane string, with ...attribute.KeyValue) {
	if span := trace.SpanFromContext(ctx); span.IsRecording() {
		span.AddEvent(name, trace.WithAttributes(append(with, attribute.String("weir.lane", label(lane)))...))
	}
}

// Near reports which limit of a lane is nearly used up, and what share of it is used.
func Near(ctx context.Context, lane, limit string, used float64) {
	event(ctx, "weir.limit.near", lane, attribute.String("weir.limit", limit), attribute.Float64("weir.limit.used", used))
}

// Spike reports that many more calls come to a lane than usual, both per second.
func Spike(ctx context.Context, lane string, rate, usual float64) {
	event(ctx, "weir.arrivals.spike", lane, attribute.Float64("weir.arrivals.rate", rate), attribute.Float64("weir.arrivals.usual", usual))
}

// Differs reports for what share of a lane's requests shadow limits decide otherwise.
func Differs(ctx context.Context, lane string, share float64) {
	event(ctx, "weir.shadow.differs", lane, attribute.Float64("weir.shadow.share", share))
}

// Made reports with which limits a lane was made for the call.
func Made(ctx context.Context, lane string, limits []string) {
	event(ctx, "weir.lane.made", lane, attribute.StringSlice("weir.limits", limits))
}
