package telemetry_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/acceptance/harness"
	"github.com/weirgo/weir/internal/testserver"
	"github.com/weirgo/weir/throttle"
)

// No secret of a request, and no vendor's text, is in a span, a metric, an error or a log.

// sinks runs a request of every outcome and returns all reports of it.
func sinks(t *testing.T) (spans []sdktrace.ReadOnlySpan, texts []string, points []harness.Point) {
	told := http.Header{"Retry-After": {harness.Canary}, "X-Ratelimit-Limit": {harness.Canary}, "Ratelimit": {`"` + harness.Canary + `";r=0;t=1`}, "X-Reason": {harness.Canary}}
	long := harness.Hints("600")
	long.Set("X-Reason", harness.Canary)
	fates := []struct {
		transport weir.Transport
		faults    []testserver.Fault
	}{
		{weir.Transport{}, nil},
		{weir.Transport{}, []testserver.Fault{{Do: testserver.Answer, Header: told}}},
		{weir.Transport{}, []testserver.Fault{{Do: testserver.Answer, Header: long}}},
		{weir.Transport{}, []testserver.Fault{{Do: testserver.Answer, Status: 500, Header: told}}},
		{weir.Transport{}, []testserver.Fault{{Do: testserver.ResetEarly}}},
		{weir.Transport{}, []testserver.Fault{{Do: testserver.Hang}}},
		{weir.Transport{Limits: harness.Every(time.Second)}, nil},
		{weir.Transport{Limits: harness.Every(time.Hour)}, nil},
		{weir.Transport{Key: weir.ByHeader("Authorization"), Limits: harness.Every(time.Second)}, nil},
		{weir.Transport{Key: weir.ByRoute("/{secret}"), Limits: harness.Every(time.Second)}, nil},
		{weir.Transport{Limits: []throttle.Limit{{Permits: -1}}}, nil},
		{weir.Transport{MaxLanes: 1}, nil},
		{weir.Transport{Shadow: harness.Every(time.Hour)}, nil},
		{weir.Transport{Base: harness.BaseFunc(func(req *http.Request) (*http.Response, error) {
			return nil, fmt.Errorf("proxy: %w", &url.Error{Op: "Put", URL: req.URL.String(), Err: harness.ErrAny})
		})}, nil},
	}
	for i := range fates {
		synctest.Test(t, func(t *testing.T) {
			fate := &fates[i]
			var log strings.Builder
			recorded, metered := harness.NewSpanLog(), harness.NewMeterLog()
			fate.transport.TracerProvider, fate.transport.MeterProvider = recorded, metered
			fate.transport.Logger = slog.New(slog.NewTextHandler(&log, nil))
			r := harness.PipeRig(t, &testserver.Vendor{Faults: fate.faults}, &fate.transport)
			for _, change := range []func(context.Context) context.Context{
				func(ctx context.Context) context.Context { return ctx },
				func(ctx context.Context) context.Context { return weir.WithCost(ctx, 2) },
				func(ctx context.Context) context.Context { return ctx },
			} {
				ctx, cancel := context.WithTimeout(change(t.Context()), 30*time.Second)
				resp, err := fate.transport.RoundTrip(r.Secretive(ctx))
				if err == nil {
					resp.Body.Close()
				} else {
					texts = append(texts, err.Error(), fmt.Sprintf("%v %+v", err, err))
					var ours *weir.Error
					if !errors.As(err, &ours) {
						t.Errorf("RoundTrip = %T, want *weir.Error", err)
					}
				}
				cancel()
			}
			for _, lane := range fate.transport.Snapshot() {
				texts = append(texts, fmt.Sprintf("%+v", lane))
			}
			texts = append(texts, log.String())
			spans = append(spans, recorded.Recorder.Ended()...)
			points = append(points, metered.Points(t)...)
		})
	}
	return spans, append(texts, harness.Text(points)...), points
}

func canarySpans(t *testing.T) []sdktrace.ReadOnlySpan {
	t.Helper()
	spans, _, _ := sinks(t)
	if len(spans) < 5 {
		t.Fatalf("spans = %d, want some of each kind", len(spans))
	}
	return spans
}

func TestNoSecretLeaks(t *testing.T) {
	spans, texts, _ := sinks(t)
	if len(spans) < 5 || len(texts) < 20 {
		t.Fatalf("spans, texts = %d, %d, want some of each kind", len(spans), len(texts))
	}
	for _, s := range spans {
		if text := fmt.Sprint(s.Name(), s.Attributes(), s.Events(), s.Status(), s.Links()); strings.Contains(text, harness.Canary) {
			t.Errorf("span = %s, want no canary", text)
		}
	}
	for _, text := range texts {
		if strings.Contains(text, harness.Canary) {
			t.Errorf("text = %s, want no canary", text)
		}
		for _, c := range text {
			if c != '\n' && (c < 0x20 || c > 0x7e) {
				t.Errorf("text = %q, want printable ASCII", text)
				break
			}
		}
	}
}
