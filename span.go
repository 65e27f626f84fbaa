package weir

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

// scope is the instrumentation scope of the spans.
const scope = "github.com/weirgo/weir"

// maxLabel bounds a lane's name in telemetry.
const maxLabel = 128

// Observe makes each wait in the queue that really waits a span "weir.wait",
// for users without HTTP. The lane's name becomes an attribute, so it must not
// be one of many. If provider is nil, the global one is used. Call it before
// the queue's first use; it replaces the queue's Hook.
func Observe(q *shaping.Queue, lane string, provider trace.TracerProvider) {
	if provider == nil {
		provider = otel.GetTracerProvider()
	}
	q.Hook = waitSpans(provider.Tracer(scope), lane, func() storeWord { return storeWordOf(q.State().Store) })
}

func waitSpans(tracer trace.Tracer, lane string, store func() storeWord) *shaping.Hook {
	lane = label(lane)
	return &shaping.Hook{Wait: func(ctx context.Context, w shaping.Wait) func(error) {
		attributes := append(make([]attribute.KeyValue, 0, 8),
			attribute.String("weir.lane", lane),
			attribute.String("weir.wait.reason", string(w.Reason)),
			attribute.String("weir.store", store().String()),
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
		return startSpan(ctx, tracer, "weir.wait", attributes)
	}}
}

// delaySpan begins the span of a delay between attempts; what it returns ends
// it.
func (t *Transport) delaySpan(ctx context.Context, lane string, attempts int, d backoff.Decision) func(error) {
	return startSpan(ctx, t.tracer, "weir.backoff", []attribute.KeyValue{
		attribute.String("weir.lane", label(lane)),
		attribute.String("weir.retry.reason", string(d.Reason)),
		attribute.Int64("weir.wait.planned_ms", d.Delay.Milliseconds()),
		attribute.Int("weir.attempt", attempts+1),
		attribute.Int("http.request.resend_count", attempts),
	})
}

func startSpan(ctx context.Context, tracer trace.Tracer, name string, attributes []attribute.KeyValue) func(error) {
	started := time.Now()
	_, span := tracer.Start(ctx, name, trace.WithAttributes(attributes...))
	return func(err error) {
		span.SetAttributes(attribute.Int64("weir.wait.actual_ms", time.Since(started).Milliseconds()))
		// That a caller gives up is no error of the wait.
		if err != nil && !errors.Is(err, context.Canceled) {
			kind := errorType(err)
			span.SetAttributes(attribute.String("error.type", kind))
			span.SetStatus(codes.Error, kind)
		}
		span.End()
	}
}

// errorType returns a word of ours: an error's text may say anything.
func errorType(err error) string {
	for _, known := range [...]struct {
		err  error
		word string
	}{
		{shaping.ErrDeadline, "deadline_too_short"},
		{shaping.ErrQueueFull, "queue_full"},
		{shaping.ErrClosed, "closed"},
		{ErrPaused, "paused"},
		{throttle.ErrExceedsBurst, "exceeds_burst"},
	} {
		if errors.Is(err, known.err) {
			return known.word
		}
	}
	return "_OTHER"
}

// label returns a lane's name as telemetry may have it: an exporter drops a
// whole batch for what is not UTF-8.
func label(lane string) string {
	if len(lane) > maxLabel {
		lane = lane[:maxLabel]
	}
	return strings.ToValidUTF8(lane, "")
}

// A storeWord says in telemetry where a lane's limits are enforced.
type storeWord int32

// The words.
const (
	storeLocal    storeWord = iota // in this process alone
	storeShared                    // through a store
	storeFallback                  // here, while the store does not answer

	storeWords = iota
)

// String returns the word.
func (w storeWord) String() string { return [...]string{"local", "shared", "fallback"}[w] }

func storeWordOf(s *throttle.StoreState) storeWord {
	switch {
	case s == nil:
		return storeLocal
	case s.Lost:
		return storeFallback
	default:
		return storeShared
	}
}
