package harness

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/weirgo/weir/throttle"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

// A MeterLog is a meter provider collected by hand.
type MeterLog struct {
	*sdkmetric.MeterProvider
	Reader *sdkmetric.ManualReader
}

// NewMeterLog returns a MeterLog without collections.
func NewMeterLog() MeterLog {
	reader := sdkmetric.NewManualReader()
	return MeterLog{sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)), reader}
}

// A Point is one exported data point.
type Point struct {
	Name, Unit, Kind, Description string

	Attributes map[string]string
	value      float64 // of a histogram: its sum
	Count      uint64  // of a histogram
}

// Has reports whether the point has the attributes, each "key=value".
func (p Point) Has(attributes []string) bool {
	for _, a := range attributes {
		key, value, _ := strings.Cut(a, "=")
		if got, ok := p.Attributes[key]; !ok || got != value {
			return false
		}
	}
	return true
}

// Points collects the points.
func (l MeterLog) Points(t *testing.T) (points []Point) {
	t.Helper()
	var collected metricdata.ResourceMetrics
	if err := l.Reader.Collect(context.Background(), &collected); err != nil {
		t.Fatal(err)
	}
	for _, of := range collected.ScopeMetrics {
		if of.Scope.Name != "github.com/weirgo/weir" {
			t.Errorf("scope = %q, want ours", of.Scope.Name)
		}
		for _, m := range of.Metrics {
			points = append(points, pointsOf(t, m)...)
		}
	}
	return points
}

func pointsOf(t *testing.T, m metricdata.Metrics) (points []Point) {
	t.Helper()
	add := func(kind string, set attribute.Set, value float64, count uint64) {
		p := Point{Name: m.Name, Unit: m.Unit, Kind: kind, Description: m.Description, Attributes: make(map[string]string), value: value, Count: count}
		for _, kv := range set.ToSlice() {
			p.Attributes[string(kv.Key)] = kv.Value.String()
		}
		points = append(points, p)
	}
	switch data := m.Data.(type) {
	case metricdata.Sum[int64]:
		kind := "updown"
		if data.IsMonotonic {
			kind = "counter"
		}
		for _, p := range data.DataPoints {
			add(kind, p.Attributes, float64(p.Value), 0)
		}
	case metricdata.Gauge[float64]:
		for _, p := range data.DataPoints {
			add("gauge", p.Attributes, p.Value, 0)
		}
	case metricdata.Histogram[float64]:
		for _, p := range data.DataPoints {
			add("histogram", p.Attributes, p.Sum, p.Count)
		}
	default:
		t.Errorf("data of %s = %T, want a kind of ours", m.Name, data)
	}
	return points
}

// WantSum fails the test unless the points of that name with those attributes, each "key=value",
// have that sum.
func WantSum(t *testing.T, points []Point, want float64, name string, attributes ...string) {
	t.Helper()
	var sum float64
	for _, p := range points {
		if p.Name == name && p.Has(attributes) {
			sum += p.value
		}
	}
	if sum != want {
		t.Errorf("%s%v = %v, want %v", name, attributes, sum, want)
	}
}

// WantCount is WantSum for the number of measurements of a histogram.
func WantCount(t *testing.T, points []Point, want uint64, name string, attributes ...string) {
	t.Helper()
	var count uint64
	for _, p := range points {
		if p.Name == name && p.Has(attributes) {
			count += p.Count
		}
	}
	if count != want {
		t.Errorf("%s%v = %d measurements, want %d", name, attributes, count, want)
	}
}

// Text returns the points as text.
func Text(points []Point) (all []string) {
	for _, p := range points {
		all = append(all, fmt.Sprintf("%+v", p))
	}
	return all
}

// A SpanLog is a tracer provider that keeps ended spans.
type SpanLog struct {
	*sdktrace.TracerProvider
	Recorder *tracetest.SpanRecorder
}

// NewSpanLog returns a SpanLog without spans.
func NewSpanLog() SpanLog {
	recorder := tracetest.NewSpanRecorder()
	return SpanLog{sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder)), recorder}
}

// Named returns the spans of a name in the order of their ends.
func (l SpanLog) Named(name string) (spans []sdktrace.ReadOnlySpan) {
	for _, s := range l.Recorder.Ended() {
		if s.Name() == name {
			spans = append(spans, s)
		}
	}
	return spans
}

// Attributes returns the attributes of a span.
func Attributes(s sdktrace.ReadOnlySpan) map[string]any {
	m := make(map[string]any)
	for _, kv := range s.Attributes() {
		m[string(kv.Key)] = kv.Value.AsInterface()
	}
	return m
}

// Once returns a limiter that grants one permit and no more.
func Once() throttle.Limiter {
	spent := false
	return throttle.LimiterFunc(func(now throttle.Instant, _ throttle.Request) (throttle.Instant, error) {
		if spent {
			return throttle.Never, nil
		}
		spent = true
		return now, nil
	})
}

// Canary is in every place where a secret may be.
const Canary = "canary-5f3a"

// Secretive returns a request with the canary in every place for a secret.
func (r *Rig) Secretive(ctx context.Context) *http.Request {
	req, err := http.NewRequestWithContext(ctx, http.MethodPut,
		"http://"+Canary+":"+Canary+"@vendor.test/"+Canary+"?key="+Canary+"#"+Canary, strings.NewReader(Canary))
	if err != nil {
		r.Fatal(err)
	}
	req.Header.Set("Authorization", Canary)
	req.Header.Set("X-Api-Key", Canary)
	req.Header.Set("Cookie", Canary)
	req.Header.Set("Idempotency-Key", Canary)
	return req
}
