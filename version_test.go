package weir_test

import (
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"

	"go.opentelemetry.io/otel/sdk/instrumentation"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/weirgo/weir"
)

// unavailable answers 503 once, and then 200.
type unavailable struct{ answered bool }

func (u *unavailable) RoundTrip(req *http.Request) (*http.Response, error) {
	status := http.StatusOK
	if !u.answered {
		status, u.answered = http.StatusServiceUnavailable, true
	}
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: http.NoBody, Request: req}, nil
}

// Spans and metrics name the version of their instrumentation scope.
func TestTelemetryNamesTheVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		spans, reader := tracetest.NewSpanRecorder(), sdkmetric.NewManualReader()
		transport := &weir.Transport{
			Base:           new(unavailable),
			TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)),
			MeterProvider:  sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)),
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://vendor.example/", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := transport.RoundTrip(req); err != nil {
			t.Fatal(err)
		}
		var metrics metricdata.ResourceMetrics
		if err := reader.Collect(t.Context(), &metrics); err != nil || len(metrics.ScopeMetrics) == 0 || len(spans.Ended()) == 0 {
			t.Fatalf("Collect = %v, %d scopes, and %d spans, want some", err, len(metrics.ScopeMetrics), len(spans.Ended()))
		}
		scopes := []instrumentation.Scope{metrics.ScopeMetrics[0].Scope, spans.Ended()[0].InstrumentationScope()}
		for _, scope := range scopes {
			if scope.Version != weir.Version {
				t.Errorf("scope %s has version %q, want %q", scope.Name, scope.Version, weir.Version)
			}
		}
	})
}

// The newest section of the changelog has the current version.
func TestChangelogBeginsWithTheVersion(t *testing.T) {
	text, err := os.ReadFile("CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	_, sections, _ := strings.Cut(string(text), "\n## ")
	if !strings.HasPrefix(sections, weir.Version+" ") {
		t.Errorf("CHANGELOG.md begins with section %.20q, want %s", sections, weir.Version)
	}
}
