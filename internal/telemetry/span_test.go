package telemetry

import (
	"context"
	"errors"
	"fmt"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/weirgo/weir/backoff"
	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

func TestErrorTypeIsAWordOfOurs(t *testing.T) {
	tests := []struct {
		err  error
		want string
	}{
		{&shaping.Error{Err: shaping.ErrDeadline, Reason: throttle.ReasonPause}, "deadline_too_short"},
		{shaping.ErrQueueFull, "queue_full"},
		{fmt.Errorf("lane: %w", shaping.ErrClosed), "closed"},
		{throttle.ErrExceedsBurst, "exceeds_burst"},
		{&shaping.Error{Err: errors.New("secret"), Reason: throttle.ReasonPause}, "paused"},
		{&shaping.Error{Err: errors.New("secret"), Reason: throttle.ReasonRate}, "_OTHER"},
		{context.DeadlineExceeded, "_OTHER"},
		{errors.New("secret"), "_OTHER"},
	}
	for _, tt := range tests {
		if got := errorType(tt.err); got != tt.want {
			t.Errorf("errorType(%v) = %q, want %q", tt.err, got, tt.want)
		}
	}
}

// The event goes to the caller's span alone, if that is recorded.
func TestNotRetriedIsAnEventOfTheCaller(t *testing.T) {
	NotRetried(t.Context(), "a", "5xx", 1)
	recorder := tracetest.NewSpanRecorder()
	ctx, span := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder)).Tracer("caller").Start(t.Context(), "caller")
	NotRetried(ctx, "a\xff", "5xx", 2)
	span.End()
	spans := recorder.Ended()
	if len(spans) != 1 || len(spans[0].Events()) != 1 {
		t.Fatalf("spans = %v, want the caller's with one event", spans)
	}
	got := fmt.Sprint(spans[0].Events()[0].Name)
	for _, kv := range spans[0].Events()[0].Attributes {
		got += fmt.Sprint(" ", kv.Key, "=", kv.Value.AsInterface())
	}
	if want := "weir.not_retried weir.lane=a weir.retry.outcome=body error.type=5xx weir.attempt=2"; got != want {
		t.Errorf("event = %s, want %s", got, want)
	}
}

// A caller's cancellation is no error of the wait.
func TestCanceledWaitHasNoStatus(t *testing.T) {
	recorder := tracetest.NewSpanRecorder()
	tracer := NewTracer(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder)))
	tracer.Delay(t.Context(), "a", 1, backoff.Decision{Reason: backoff.ReasonFailed})(context.Canceled)
	tracer.Wait(t.Context(), "a", StoreFallback, &shaping.Wait{}, nil)(shaping.ErrClosed)
	if ended := recorder.Ended(); ended[0].Status().Description != "" || ended[1].Status().Description != "closed" {
		t.Errorf("status of a delay given up, of a wait that was closed = %v, %v", ended[0].Status(), ended[1].Status())
	}
}
