package telemetry

import (
	"context"
	"errors"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/weirgo/weir/backoff"
	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// instrumentation is the instrumentation scope of all spans and metrics.
const instrumentation = "github.com/weirgo/weir"

// version is the version of that scope. It is weir.Version, which this package cannot
// import; a test of the root compares them.
const version = "0.1.0"

// maxLabel bounds a lane's name in telemetry, in bytes.
const maxLabel = 128

// A Tracer makes the spans of waits and of delays. It is safe for concurrent
// use.
type Tracer struct{ trace.Tracer }

// NewTracer returns the tracer of a provider. If provider is nil, the global
// one is used.
func NewTracer(provider trace.TracerProvider) Tracer {
	if provider == nil {
		provider = otel.GetTracerProvider()
	}
	return Tracer{provider.Tracer(instrumentation, trace.WithInstrumentationVersion(version))}
}

// Wait begins the span of a wait in a lane's line. Store is who enforces the lane's limits. If the
// caller waits for the store's answer, asking has the span; nil: the store is not observed. The
// returned function ends the span, with the reason that w has then.
func (t Tracer) Wait(ctx context.Context, lane string, store Store, w *shaping.Wait, asking *Asking) (ended func(error)) {
	attributes := append(make([]attribute.KeyValue, 0, 9),
		attribute.String("weir.lane", label(lane)),
		attribute.String("weir.wait.reason", string(w.Reason)),
		attribute.String("weir.store", store.String()),
		attribute.Int64("weir.wait.planned_ms", w.Planned.Milliseconds()),
		attribute.Int("weir.queue.position", w.Waiting+1),
		attribute.Int("weir.attempt", w.Visits+1),
	)
	if w.Limit != "" {
		attributes = append(attributes, attribute.String("weir.limit", w.Limit))
	}
	if w.Visits > 0 {
		attributes = append(attributes, attribute.Int("http.request.resend_count", w.Visits))
	}
	ctx, end := t.start(ctx, "weir.wait", attributes)
	return asking.add(ctx, t, w.Reason, func(err error) {
		trace.SpanFromContext(ctx).SetAttributes(attribute.String("weir.wait.reason", string(w.Reason)))
		end(err)
	})
}

// Delay begins the span of the delay before a retry, after that many attempts.
// The function that it returns ends the span.
func (t Tracer) Delay(ctx context.Context, lane string, attempts int, d backoff.Decision) (ended func(error)) {
	_, ended = t.start(ctx, "weir.backoff", []attribute.KeyValue{
		attribute.String("weir.lane", label(lane)),
		attribute.String("weir.retry.reason", string(d.Reason)),
		attribute.Int64("weir.wait.planned_ms", d.Delay.Milliseconds()),
		attribute.Int("weir.attempt", attempts+1),
		attribute.Int("http.request.resend_count", attempts),
	})
	return ended
}

// start begins a span, which the context that it returns holds. The function that it
// returns ends the span, with the error of what it measured.
func (t Tracer) start(ctx context.Context, name string, attributes []attribute.KeyValue) (within context.Context, ended func(error)) {
	started := time.Now()
	within, span := t.Start(ctx, name, trace.WithAttributes(withServer(ctx, attributes)...))
	return within, func(err error) {
		span.SetAttributes(attribute.Int64("weir.wait.actual_ms", time.Since(started).Milliseconds()))
		// A caller that gives up is no error of the wait.
		if err != nil && !errors.Is(err, context.Canceled) {
			kind := errorType(err)
			span.SetAttributes(attribute.String("error.type", kind))
			span.SetStatus(codes.Error, kind)
		}
		span.End()
	}
}

// Learned adds an event to the span of the call whose response taught a limit: rate
// calls per second, or inFlight calls at a time. Zero: not learned.
func Learned(ctx context.Context, lane string, rate float64, inFlight int) {
	span := trace.SpanFromContext(ctx)
	if !span.IsRecording() {
		return
	}
	with := []attribute.KeyValue{attribute.String("weir.lane", label(lane))}
	if rate > 0 {
		with = append(with, attribute.Float64("weir.limit.rate", rate))
	}
	if inFlight > 0 {
		with = append(with, attribute.Int("weir.limit.in_flight", inFlight))
	}
	span.AddEvent("weir.limit.learned", trace.WithAttributes(with...))
}

// NotRetried adds an event to the caller's span. The call failed after that many attempts, and was
// not retried because its body cannot be read again.
func NotRetried(ctx context.Context, lane, failure string, attempts int) {
	span := trace.SpanFromContext(ctx)
	if !span.IsRecording() {
		return
	}
	span.AddEvent("weir.not_retried", trace.WithAttributes(
		attribute.String("weir.lane", label(lane)),
		attribute.String("weir.retry.outcome", string(backoff.ReasonBody)),
		attribute.String("error.type", failure),
		attribute.Int("weir.attempt", attempts),
	))
}

// errorType returns a word for an error. Its own text may hold anything, so it
// is not used.
func errorType(err error) string {
	for _, known := range [...]struct {
		err  error
		word string
	}{
		{shaping.ErrDeadline, "deadline_too_short"},
		{shaping.ErrQueueFull, "queue_full"},
		{shaping.ErrClosed, "closed"},
		{throttle.ErrExceedsBurst, "exceeds_burst"},
	} {
		if errors.Is(err, known.err) {
			return known.word
		}
	}
	if e, ok := errors.AsType[*shaping.Error](err); ok && e.Reason == throttle.ReasonPause {
		return "paused"
	}
	return "_OTHER"
}

// label returns a lane's name for telemetry: bounded, and valid UTF-8. An exporter
// drops a whole batch for one string that is not valid.
func label(lane string) string {
	if len(lane) > maxLabel {
		lane = lane[:maxLabel]
	}
	return strings.ToValidUTF8(lane, "")
}
