package telemetry_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/headers"
	"github.com/weirgo/weir/internal/acceptance/harness"
	"github.com/weirgo/weir/internal/redispipe"
	"github.com/weirgo/weir/internal/testserver"
	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// Each wait that really waits is a span.

// wantSpan fails the test unless the span has exactly these attributes and this length.
func wantSpan(t *testing.T, s sdktrace.ReadOnlySpan, length time.Duration, want map[string]any) {
	t.Helper()
	got := harness.Attributes(s)
	for key, value := range want {
		if got[key] != value {
			t.Errorf("%s of %s = %v, want %v", key, s.Name(), got[key], value)
		}
	}
	for key, value := range got {
		if _, ok := want[key]; !ok {
			t.Errorf("%s of %s = %v, want none", key, s.Name(), value)
		}
	}
	if took := s.EndTime().Sub(s.StartTime()); took != length {
		t.Errorf("length of %s = %v, want %v", s.Name(), took, length)
	}
	if len(s.Events()) > 0 || s.SpanKind() != trace.SpanKindInternal || s.InstrumentationScope().Name != "github.com/weirgo/weir" {
		t.Errorf("%s = %v events, kind %v, scope %v, want none, internal, ours", s.Name(), s.Events(), s.SpanKind(), s.InstrumentationScope())
	}
}

func TestNoSpanWhereNothingWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := harness.NewSpanLog()
		r := harness.PipeRig(t, &testserver.Vendor{}, &weir.Transport{TracerProvider: log, Limits: harness.Every(time.Second)})
		r.Spend()
		r.Get(weir.WithMaxWait(t.Context(), time.Millisecond), "refused")
		r.Get(weir.WithCost(t.Context(), 2), "oversized")
		if got := log.Recorder.Started(); len(got) != 0 {
			t.Errorf("spans = %d, want none", len(got))
		}
	})
}

func TestWaitForRateIsSpan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := harness.NewSpanLog()
		limit := throttle.TokenBucket(1, time.Second, 1).Named("per second")
		r := harness.PipeRig(t, &testserver.Vendor{}, &weir.Transport{TracerProvider: log, Limits: []throttle.Limit{limit}})
		ctx, parent := log.Tracer("caller").Start(t.Context(), "caller")
		r.Callers(ctx, 3).Wait()
		parent.End()
		spans := log.Named("weir.wait")
		if len(spans) != 2 {
			t.Fatalf("wait spans = %d, want 2", len(spans))
		}
		for i, s := range spans {
			wantSpan(t, s, time.Duration(i+1)*time.Second, map[string]any{
				"weir.lane": "vendor.test", "weir.wait.reason": "rate", "weir.store": "local", "weir.limit": "per second",
				"weir.wait.planned_ms": int64(1000), "weir.wait.actual_ms": int64(1000 * (i + 1)),
				"weir.queue.position": int64(i + 1), "weir.attempt": int64(1),
			})
			if s.Parent().SpanID() != parent.SpanContext().SpanID() || s.Status().Code != codes.Unset {
				t.Errorf("parent, status of wait %d = %v, %v, want the caller's, unset", i, s.Parent().SpanID(), s.Status())
			}
		}
	})
}

func TestWaitForPauseIsSpanWithResendCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := harness.NewSpanLog()
		r := harness.PipeRig(t, &testserver.Vendor{Faults: []testserver.Fault{{Last: 2, Do: testserver.Answer, Header: harness.Hints("2")}}}, &weir.Transport{TracerProvider: log})
		r.Want("GET", r.Get(t.Context(), "a"), 200)
		if n := len(log.Named("weir.backoff")); n != 0 {
			t.Errorf("backoff spans = %d, want none: the pause is the delay", n)
		}
		spans := log.Named("weir.wait")
		if len(spans) != 2 {
			t.Fatalf("wait spans = %d, want 2", len(spans))
		}
		for i, s := range spans {
			wantSpan(t, s, 2*time.Second, map[string]any{
				"weir.lane": "vendor.test", "weir.wait.reason": "pause", "weir.store": "local",
				"weir.wait.planned_ms": int64(2000), "weir.wait.actual_ms": int64(2000),
				"weir.queue.position": int64(1), "weir.attempt": int64(i + 2), "http.request.resend_count": int64(i + 1),
			})
		}
	})
}

// The same for a sub-lane.
func TestWaitForPauseOfSublaneIsSpanWithResendCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := harness.NewSpanLog()
		r := harness.PipeRig(t, &testserver.Vendor{Faults: []testserver.Fault{{Last: 1, Do: testserver.Answer, Header: harness.Hints("2")}}},
			&weir.Transport{TracerProvider: log, Dialect: harness.ScopedBy(headers.ScopeRoute)})
		r.Want("GET", r.Get(t.Context(), "a"), 200)
		spans := log.Named("weir.wait")
		if len(spans) != 1 {
			t.Fatalf("wait spans = %d, want 1", len(spans))
		}
		if got := harness.Attributes(spans[0]); got["weir.attempt"] != int64(2) || got["http.request.resend_count"] != int64(1) {
			t.Errorf("attempt, resend_count = %v, %v, want 2, 1", got["weir.attempt"], got["http.request.resend_count"])
		}
	})
}

func TestWaitForOthersInFlightIsSpan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := harness.NewSpanLog()
		r := harness.ObeyingRig(t, &testserver.Vendor{Service: 100 * time.Millisecond, Faults: []testserver.Fault{harness.Refuse(1, 1, "300")}}, &weir.Transport{TracerProvider: log})
		r.Want("GET", r.Get(t.Context(), "a"), 429)
		time.Sleep(300 * time.Second)
		r.Callers(t.Context(), 2).Wait()
		spans := log.Named("weir.wait")
		if len(spans) != 1 {
			t.Fatalf("wait spans = %d, want 1", len(spans))
		}
		if got := harness.Attributes(spans[0]); got["weir.wait.reason"] != "concurrency" || got["weir.wait.actual_ms"] != int64(100) {
			t.Errorf("reason, actual = %v, %v ms, want concurrency, 100", got["weir.wait.reason"], got["weir.wait.actual_ms"])
		}
	})
}

func TestDelayIsSpan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := harness.NewSpanLog()
		r := harness.PipeRig(t,
			&testserver.Vendor{Faults: []testserver.Fault{
				{Last: 1, Do: testserver.Answer, Status: 500},
				{First: 2, Last: 2, Do: testserver.Answer},
			}},
			&weir.Transport{TracerProvider: log, Retry: harness.After(3 * time.Second)})
		ctx, parent := log.Tracer("caller").Start(t.Context(), "caller")
		r.Want("GET", r.Get(ctx, "a"), 200)
		parent.End()
		spans := log.Named("weir.backoff")
		if len(spans) != 2 || len(log.Named("weir.wait")) != 0 {
			t.Fatalf("backoff, wait spans = %d, %d, want 2, 0", len(spans), len(log.Named("weir.wait")))
		}
		for i, reason := range []string{"failed", "throttled"} {
			wantSpan(t, spans[i], 3*time.Second, map[string]any{
				"weir.lane": "vendor.test", "weir.retry.reason": reason,
				"weir.wait.planned_ms": int64(3000), "weir.wait.actual_ms": int64(3000),
				"weir.attempt": int64(i + 2), "http.request.resend_count": int64(i + 1),
			})
			if spans[i].Parent().SpanID() != parent.SpanContext().SpanID() {
				t.Errorf("parent of delay %d = %v, want the caller's", i, spans[i].Parent().SpanID())
			}
		}
	})
}

func TestSpanStatusNamesOurErrors(t *testing.T) {
	tests := []struct {
		name      string
		transport *weir.Transport
		faults    []testserver.Fault
		act       func(r *harness.Rig, ctx context.Context) // ends the second call's wait
		span      string
		word      string // empty: status unset
	}{
		{"cancelled in line", &weir.Transport{Limits: harness.Every(time.Hour)}, nil, cancelled, "weir.wait", ""},
		{"cancelled in delay", &weir.Transport{Retry: harness.After(time.Hour)}, []testserver.Fault{{First: 2, Do: testserver.Answer, Status: 500}}, cancelled, "weir.backoff", ""},
		{"closed in line", &weir.Transport{Limits: harness.Every(time.Hour)}, nil, closed, "weir.wait", "closed"},
		{"closed in delay", &weir.Transport{Retry: harness.After(time.Hour)}, []testserver.Fault{{First: 2, Do: testserver.Answer, Status: 500}}, closed, "weir.backoff", "closed"},
		{"expired in line", &weir.Transport{Store: harness.StoreFunc(func(string, ...throttle.Limit) (throttle.Limiter, error) { return harness.Once(), nil })}, nil,
			func(r *harness.Rig, ctx context.Context) { r.Get(weir.WithMaxWait(ctx, time.Second), "a") }, "weir.wait", "deadline_too_short"},
		{"paused in line", &weir.Transport{Limits: harness.Every(time.Second)}, []testserver.Fault{{Last: 1, Do: testserver.Answer, Delay: 500 * time.Millisecond, Header: harness.Hints("600")}},
			func(r *harness.Rig, ctx context.Context) { r.Get(ctx, "a") }, "weir.wait", "paused"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				log := harness.NewSpanLog()
				tt.transport.TracerProvider = log
				r := harness.PipeRig(t, &testserver.Vendor{Faults: tt.faults}, tt.transport)
				first := r.Start("first")
				tt.act(r, t.Context())
				<-first
				spans := log.Named(tt.span)
				if len(spans) != 1 {
					t.Fatalf("%s spans = %d, want 1", tt.span, len(spans))
				}
				word, _ := harness.Attributes(spans[0])["error.type"].(string)
				wantCode := map[bool]codes.Code{true: codes.Unset, false: codes.Error}[tt.word == ""]
				if status := spans[0].Status(); word != tt.word || status.Code != wantCode || status.Description != tt.word {
					t.Errorf("error.type, status = %q, %v, want %q, %v", word, status, tt.word, wantCode)
				}
			})
		})
	}
}

func cancelled(r *harness.Rig, ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	time.AfterFunc(time.Second, cancel)
	r.Get(ctx, "a")
}

func closed(r *harness.Rig, ctx context.Context) {
	time.AfterFunc(time.Second, func() { r.Transport.Close() })
	r.Get(ctx, "a")
}

// A lane's name is bounded, valid UTF-8: an exporter drops other text.
func TestLaneInTelemetryIsBoundedText(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := harness.NewSpanLog()
		key := "k" + strings.Repeat("ü", 200)
		r := harness.PipeRig(t, &testserver.Vendor{}, &weir.Transport{TracerProvider: log, Limits: harness.Every(time.Second), Key: func(*http.Request) string { return key }})
		r.Callers(t.Context(), 2).Wait()
		spans := log.Named("weir.wait")
		if len(spans) != 1 {
			t.Fatalf("wait spans = %d, want 1", len(spans))
		}
		lane, _ := harness.Attributes(spans[0])["weir.lane"].(string)
		if len(lane) > 128 || !utf8.ValidString(lane) || !strings.HasPrefix(key, lane) || len(lane) < 120 {
			t.Errorf("weir.lane = %q (%d bytes), want valid text of 128 bytes at most", lane, len(lane))
		}
	})
}

// A wait's span shows where the limits are enforced.
func TestWaitIsSpanWithStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := harness.NewSpanLog()
		f := harness.NewFleet(t, 1, &testserver.Vendor{}, harness.Every(time.Second)...)
		r := f.Replicas[0]
		r.Transport.TracerProvider = log
		r.Want("GET", r.Get(t.Context(), "a"), 200)
		f.Redis.Break(redispipe.Loading)
		r.Get(weir.WithMaxWait(t.Context(), time.Second), "finds it failing")
		r.Get(weir.WithMaxWait(t.Context(), time.Second), "knows")
		var got []string
		for _, s := range log.Named("weir.wait") {
			a := harness.Attributes(s)
			got = append(got, fmt.Sprint(a["weir.wait.reason"], " ", a["weir.store"]))
		}
		harness.WantEqual(t, "reason and store", got, []string{"store shared", "rate shared", "store fallback"})
	})
}

// Users without HTTP have the same spans.
func TestWaitHookMakesSpansOfAQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := harness.NewSpanLog()
		limiter, err := throttle.Local{}.Limiter("jobs", throttle.LeakyBucket(1, time.Second))
		if err != nil {
			t.Fatal(err)
		}
		q := shaping.NewQueue(limiter)
		q.Hook = weir.WaitHook("jobs", log)
		for range 2 {
			if err := q.Wait(t.Context()); err != nil {
				t.Errorf("Wait() = %v", err)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(500*time.Millisecond, cancel)
		if err := q.Wait(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("Wait() = %v, want canceled", err)
		}
		spans := log.Named("weir.wait")
		if len(spans) != 2 || harness.Attributes(spans[0])["weir.lane"] != "jobs" || harness.Attributes(spans[0])["weir.store"] != "local" || spans[1].Status().Code != codes.Unset {
			t.Errorf("wait spans = %v, want two of the lane jobs, the cancelled one without status", spans)
		}
	})
}

// Every attribute key is one of ours or of the conventions.
func TestSpanAttributesAreAllowed(t *testing.T) {
	allowed := map[attribute.Key]bool{
		"weir.lane": true, "weir.wait.reason": true, "weir.wait.planned_ms": true, "weir.wait.actual_ms": true,
		"weir.store": true, "weir.queue.position": true, "weir.attempt": true, "weir.limit": true, "weir.retry.reason": true,
		"http.request.resend_count": true, "error.type": true, "weir.store.operation": true,
	}
	for _, s := range canarySpans(t) {
		for _, kv := range s.Attributes() {
			if !allowed[kv.Key] {
				t.Errorf("attribute %s of %s is not allowed", kv.Key, s.Name())
			}
		}
	}
}
