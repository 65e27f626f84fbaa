package weir_test

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
	"github.com/weirgo/weir/internal/testserver"
	"github.com/weirgo/weir/throttle"
)

// No secret of a request, and no text of a vendor's, reaches a span, a metric, an
// error or a log.

const canary = "canary-5f3a"

// secretive returns a request with the canary wherever a secret may stand.
func (r *rig) secretive(ctx context.Context) *http.Request {
	req, err := http.NewRequestWithContext(ctx, http.MethodPut,
		"http://"+canary+":"+canary+"@vendor.test/"+canary+"?key="+canary+"#"+canary, strings.NewReader(canary))
	if err != nil {
		r.Fatal(err)
	}
	req.Header.Set("Authorization", canary)
	req.Header.Set("X-Api-Key", canary)
	req.Header.Set("Cookie", canary)
	req.Header.Set("Idempotency-Key", canary)
	return req
}

// sinks runs a request of every fate and returns all that was told of it.
func sinks(t *testing.T) (spans []sdktrace.ReadOnlySpan, texts []string, points []point) {
	told := http.Header{"Retry-After": {canary}, "X-Ratelimit-Limit": {canary}, "Ratelimit": {`"` + canary + `";r=0;t=1`}, "X-Reason": {canary}}
	long := hints("600")
	long.Set("X-Reason", canary)
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
		{weir.Transport{Limits: every(time.Second)}, nil},
		{weir.Transport{Limits: every(time.Hour)}, nil},
		{weir.Transport{Key: weir.ByHeader("Authorization"), Limits: every(time.Second)}, nil},
		{weir.Transport{Key: weir.ByRoute("/{secret}"), Limits: every(time.Second)}, nil},
		{weir.Transport{Limits: []throttle.Limit{{Permits: -1}}}, nil},
		{weir.Transport{MaxLanes: 1}, nil},
		{weir.Transport{Base: baseFunc(func(req *http.Request) (*http.Response, error) {
			return nil, fmt.Errorf("proxy: %w", &url.Error{Op: "Put", URL: req.URL.String(), Err: errAny})
		})}, nil},
	}
	for i := range fates {
		synctest.Test(t, func(t *testing.T) {
			fate := &fates[i]
			var log strings.Builder
			recorded, metered := newSpanLog(), newMeterLog()
			fate.transport.TracerProvider, fate.transport.MeterProvider = recorded, metered
			fate.transport.Logger = slog.New(slog.NewTextHandler(&log, nil))
			r := pipeRig(t, &testserver.Vendor{Faults: fate.faults}, &fate.transport)
			for _, change := range []func(context.Context) context.Context{
				func(ctx context.Context) context.Context { return ctx },
				func(ctx context.Context) context.Context { return weir.WithCost(ctx, 2) },
				func(ctx context.Context) context.Context { return ctx },
			} {
				ctx, cancel := context.WithTimeout(change(t.Context()), 30*time.Second)
				resp, err := fate.transport.RoundTrip(r.secretive(ctx))
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
			spans = append(spans, recorded.recorder.Ended()...)
			points = append(points, metered.points(t)...)
		})
	}
	return spans, append(texts, text(points)...), points
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
		if text := fmt.Sprint(s.Name(), s.Attributes(), s.Events(), s.Status(), s.Links()); strings.Contains(text, canary) {
			t.Errorf("span = %s, want no canary", text)
		}
	}
	for _, text := range texts {
		if strings.Contains(text, canary) {
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
