package weir_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// A meterLog is a meter provider that is collected by hand.
type meterLog struct {
	*sdkmetric.MeterProvider
	reader *sdkmetric.ManualReader
}

func newMeterLog() meterLog {
	reader := sdkmetric.NewManualReader()
	return meterLog{sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)), reader}
}

// A point is one exported data point.
type point struct {
	name, unit, kind string
	attributes       map[string]string
	value            float64 // of a histogram: its sum
	count            uint64  // of a histogram
}

func (p point) has(attributes []string) bool {
	for _, a := range attributes {
		key, value, _ := strings.Cut(a, "=")
		if got, ok := p.attributes[key]; !ok || got != value {
			return false
		}
	}
	return true
}

// points collects.
func (l meterLog) points(t *testing.T) (points []point) {
	t.Helper()
	var collected metricdata.ResourceMetrics
	if err := l.reader.Collect(context.Background(), &collected); err != nil {
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

func pointsOf(t *testing.T, m metricdata.Metrics) (points []point) {
	t.Helper()
	add := func(kind string, set attribute.Set, value float64, count uint64) {
		p := point{name: m.Name, unit: m.Unit, kind: kind, attributes: make(map[string]string), value: value, count: count}
		for _, kv := range set.ToSlice() {
			p.attributes[string(kv.Key)] = kv.Value.String()
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

// wantSum fails the test unless the points of that name with those attributes,
// each "key=value", come to that sum.
func wantSum(t *testing.T, points []point, want float64, name string, attributes ...string) {
	t.Helper()
	var sum float64
	for _, p := range points {
		if p.name == name && p.has(attributes) {
			sum += p.value
		}
	}
	if sum != want {
		t.Errorf("%s%v = %v, want %v", name, attributes, sum, want)
	}
}

// wantCount is wantSum for the number of measurements of a histogram.
func wantCount(t *testing.T, points []point, want uint64, name string, attributes ...string) {
	t.Helper()
	var count uint64
	for _, p := range points {
		if p.name == name && p.has(attributes) {
			count += p.count
		}
	}
	if count != want {
		t.Errorf("%s%v = %d measurements, want %d", name, attributes, count, want)
	}
}

func text(points []point) (all []string) {
	for _, p := range points {
		all = append(all, fmt.Sprintf("%+v", p))
	}
	return all
}
