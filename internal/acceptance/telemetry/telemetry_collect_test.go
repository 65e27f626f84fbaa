package telemetry_test

import (
	"context"
	"net/http"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/acceptance/harness"
	"github.com/weirgo/weir/throttle"
)

// A watched provider counts its calls.
type watchedProvider struct {
	metric.MeterProvider
	callbacks, ended atomic.Int64
}

func (p *watchedProvider) Meter(name string, options ...metric.MeterOption) metric.Meter {
	return watchedMeter{p.MeterProvider.Meter(name, options...), p}
}

type watchedMeter struct {
	metric.Meter
	p *watchedProvider
}

func (m watchedMeter) RegisterCallback(f metric.Callback, of ...metric.Observable) (metric.Registration, error) {
	m.p.callbacks.Add(1)
	r, err := m.Meter.RegisterCallback(f, of...)
	return watchedRegistration{r, m.p}, err
}

type watchedRegistration struct {
	metric.Registration
	p *watchedProvider
}

func (r watchedRegistration) Unregister() error {
	r.p.ended.Add(1)
	return r.Registration.Unregister()
}

// open sends one call through the transport.
func open(t *testing.T, transport *weir.Transport) *weir.Transport {
	t.Helper()
	req, err := http.NewRequest(http.MethodGet, "http://vendor.test", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return transport
}

func TestNoCollectorNothingIsObserved(t *testing.T) {
	for name, provider := range map[string]metric.MeterProvider{
		"none set":  otel.GetMeterProvider(),
		"no-op":     noop.NewMeterProvider(),
		"no reader": sdkmetric.NewMeterProvider(),
	} {
		watched := &watchedProvider{MeterProvider: provider}
		open(t, &weir.Transport{Base: harness.Stub{}, MeterProvider: watched}).Close()
		if got := watched.callbacks.Load(); got != 0 {
			t.Errorf("callbacks with %s = %d, want 0", name, got)
		}
	}
}

func TestCloseEndsObservationOnce(t *testing.T) {
	watched := &watchedProvider{MeterProvider: harness.NewMeterLog()}
	transport := open(t, &weir.Transport{Base: harness.Stub{}, MeterProvider: watched})
	for range 2 {
		transport.Close()
	}
	if begun, ended := watched.callbacks.Load(), watched.ended.Load(); begun != 1 || ended != 1 {
		t.Errorf("callbacks begun, ended = %d, %d, want 1, 1", begun, ended)
	}
}

// Dropping a transport without closing it loses nothing.
func TestForgottenTransportEndsObservation(t *testing.T) {
	watched := &watchedProvider{MeterProvider: harness.NewMeterLog()}
	for range 10 {
		open(t, &weir.Transport{Base: harness.Stub{}, MeterProvider: watched, Limits: harness.Every(time.Second)})
	}
	for deadline := time.Now().Add(time.Minute); watched.ended.Load() < 9; runtime.Gosched() {
		if runtime.GC(); time.Now().After(deadline) {
			t.Fatalf("callbacks ended = %d of 10, want nearly all", watched.ended.Load())
		}
	}
}

// Collecting while lanes come and go takes nothing held by a store.
func TestCollectWhileLimiterIsMade(t *testing.T) {
	log := harness.NewMeterLog()
	collected := make(chan []harness.Point, 2)
	transport := &weir.Transport{
		Base: harness.Stub{}, MeterProvider: log,
		Store: harness.StoreFunc(func(key string, limits ...throttle.Limit) (throttle.Limiter, error) {
			points := make(chan []harness.Point)
			go func() { points <- log.Points(t) }()
			select {
			case got := <-points:
				collected <- got
			case <-time.After(20 * time.Second):
				t.Errorf("collecting waits for the limiter of %q", key)
				go func() { <-points }()
				collected <- nil
			}
			return throttle.Local{}.Limiter(key, limits...)
		}),
	}
	defer transport.Close()
	for before, host := range []string{"a.test", "b.test"} {
		resp, err := transport.RoundTrip(harness.GetOf(host))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		harness.WantSum(t, <-collected, float64(before), "weir.keys.active")
	}
}

// A collector may call Snapshot meanwhile, even before the first request.
func TestSnapshotWhileCollecting(t *testing.T) {
	log := harness.NewMeterLog()
	transport := &weir.Transport{Base: harness.Stub{}, MeterProvider: log}
	meter := log.Meter("user")
	lanes, err := meter.Int64ObservableGauge("lanes")
	if err != nil {
		t.Fatal(err)
	}
	_, err = meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		o.ObserveInt64(lanes, int64(len(transport.Snapshot())))
		return nil
	}, lanes)
	if err != nil {
		t.Fatal(err)
	}
	var into metricdata.ResourceMetrics
	for want := range int64(2) {
		if err := log.Reader.Collect(t.Context(), &into); err != nil {
			t.Fatal(err)
		}
		for _, of := range into.ScopeMetrics {
			if gauge, ok := of.Metrics[0].Data.(metricdata.Gauge[int64]); ok && gauge.DataPoints[0].Value != want {
				t.Errorf("lanes = %d, want %d", gauge.DataPoints[0].Value, want)
			}
		}
		open(t, transport)
	}
	transport.Close()
}

// Metrics cost a call without a wait no allocation.
func TestMetricsAllocateNothingForACall(t *testing.T) {
	perCall := func(provider metric.MeterProvider) float64 {
		f := harness.NewCrowd(1, 1, harness.Wide)
		defer f.Transport.Close()
		f.Transport.MeterProvider = provider
		f.Req.URL.Host = f.Keys[0]
		return testing.AllocsPerRun(100, func() {
			resp, err := f.Transport.RoundTrip(f.Req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
		})
	}
	if off, on := perCall(nil), perCall(harness.NewMeterLog()); off > 1 || on > off { // the stub's response
		t.Errorf("allocations per call = %v without metrics and %v with, want 1 and no more", off, on)
	}
}

// BenchmarkMetricsCollect measures a collection's cost for each lane.
func BenchmarkMetricsCollect(b *testing.B) {
	log := harness.NewMeterLog()
	f := harness.NewCrowd(*harness.ManyLanes, *harness.ManyLanes, harness.Wide)
	defer f.Transport.Close()
	f.Transport.MeterProvider = log
	f.Open(b)
	var into metricdata.ResourceMetrics
	for b.Loop() {
		if err := log.Reader.Collect(b.Context(), &into); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(*harness.ManyLanes), "ns/lane")
}
