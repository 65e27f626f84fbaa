package telemetry

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirgo/weir/internal/store"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/weirgo/weir/backoff"
	"github.com/weirgo/weir/headers"
	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// A crowd is lanes with metrics that are collected by hand.
type crowd struct {
	metrics *Metrics
	reader  *sdkmetric.ManualReader
	meters  []*Meter
	states  []State
}

// newCrowd returns lanes of these keys.
func newCrowd(keys ...string) *crowd {
	c := &crowd{reader: sdkmetric.NewManualReader(), states: make([]State, len(keys))}
	c.metrics = NewMetrics(sdkmetric.NewMeterProvider(sdkmetric.WithReader(c.reader)), func(yield func(*Meter, State) bool) {
		for i, m := range c.meters {
			if !yield(m, c.states[i]) {
				return
			}
		}
	})
	for _, key := range keys {
		m := c.metrics.Meter(key)
		c.meters = append(c.meters, &m)
	}
	return c
}

// collect returns the exported values, each as "name lane=value".
func (c *crowd) collect(t *testing.T) map[string]float64 {
	t.Helper()
	var into metricdata.ResourceMetrics
	if err := c.reader.Collect(t.Context(), &into); err != nil {
		t.Fatal(err)
	}
	values := make(map[string]float64)
	add := func(name string, set attribute.Set, value float64) {
		lane, _ := set.Value("weir.lane")
		values[name+" "+lane.AsString()] += value
	}
	for _, of := range into.ScopeMetrics {
		for _, m := range of.Metrics {
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range data.DataPoints {
					add(m.Name, p.Attributes, float64(p.Value))
				}
			case metricdata.Gauge[float64]:
				for _, p := range data.DataPoints {
					add(m.Name, p.Attributes, p.Value)
				}
			case metricdata.Histogram[float64]:
				for _, p := range data.DataPoints {
					add(m.Name, p.Attributes, float64(p.Count))
				}
			}
		}
	}
	return values
}

// want fails the test unless exactly these values are exported.
func (c *crowd) want(t *testing.T, want map[string]float64) {
	t.Helper()
	if got := c.collect(t); !maps.Equal(got, want) {
		t.Errorf("collected %v, want %v", got, want)
	}
}

func limited(utilization ...float64) (s State) {
	for _, u := range utilization {
		s.Limits = append(s.Limits, throttle.LimitState{Utilization: u})
	}
	return s
}

// The numbers of lanes with one name are added up. The headroom is that of the limit with the least
// left.
func TestLanesOfOneNameAreCountedTogether(t *testing.T) {
	c := newCrowd("a", "a", "b", "c")
	c.states[0], c.states[1], c.states[2] = limited(0.25, 0.5), limited(1.5), limited(0)
	c.states[0].Configured, c.states[1].Configured, c.states[2].Learned = 30, 20, 7
	c.states[0].Waiting, c.states[1].Waiting = 2, 3
	c.states[0].MostWaiting, c.states[1].MostWaiting, c.states[2].MostWaiting = 10, 20, 30
	c.states[1].Store, c.states[2].Store = &throttle.StoreState{Lost: true}, &throttle.StoreState{Differs: true}
	c.want(t, map[string]float64{
		"weir.keys.active a": 2, "weir.queue.depth a": 5, "weir.limit.headroom a": -0.5, "weir.store.fallback.active a": 1,
		"weir.keys.active b": 1, "weir.queue.depth b": 0, "weir.limit.headroom b": 1, "weir.store.fallback.active b": 0,
		"weir.keys.active c": 1, "weir.queue.depth c": 0,
		"weir.limit.rate a": 20, "weir.limit.rate b": 7,
		"weir.queue.limit a": 30, "weir.queue.limit b": 30, "weir.queue.limit c": 0,
		"weir.store.limits.differ a": 0, "weir.store.limits.differ b": 1,
		"weir.store.strayed a": 0, "weir.store.strayed b": 0,
		"weir.store.takes.unknown a": 0, "weir.store.takes.unknown b": 0, "weir.store.permits.void a": 0, "weir.store.permits.void b": 0,
	})
	c.meters[1].Strayed(store.EventStateLost)
	c.meters = nil
	c.want(t, map[string]float64{
		"weir.keys.active a": 0, "weir.queue.depth a": 0, "weir.store.fallback.active a": 0,
		"weir.keys.active b": 0, "weir.queue.depth b": 0, "weir.store.fallback.active b": 0,
		"weir.keys.active c": 0, "weir.queue.depth c": 0,
		"weir.queue.limit a": 0, "weir.queue.limit b": 0, "weir.queue.limit c": 0,
		"weir.store.limits.differ a": 0, "weir.store.limits.differ b": 0,
		"weir.store.strayed a": 1, "weir.store.strayed b": 0,
		"weir.store.takes.unknown a": 0, "weir.store.takes.unknown b": 0, "weir.store.permits.void a": 0, "weir.store.permits.void b": 0,
	})
	for range 2 {
		c.metrics.Close()
	}
	c.want(t, map[string]float64{
		"weir.store.strayed a": 1, "weir.store.strayed b": 0,
		"weir.store.takes.unknown a": 0, "weir.store.takes.unknown b": 0, "weir.store.permits.void a": 0, "weir.store.permits.void b": 0,
	})
}

// A store counts from its limiter's start, and a lane may have several limiters in turn.
func TestLossesAreCountedOnce(t *testing.T) {
	c := newCrowd("a", "a")
	for _, unknown := range []uint64{3, 3, 5, 1, 6} { // 1: a new limiter, below the earlier count
		c.states[0].Store = &throttle.StoreState{Unknown: unknown, Void: 2 * unknown}
		c.collect(t)
	}
	c.meters[1].Lost(t.Context(), &throttle.StoreState{Unknown: 10})
	c.meters[1].Lost(t.Context(), nil)
	got := c.collect(t)
	if unknown, void := got["weir.store.takes.unknown a"], got["weir.store.permits.void a"]; unknown != 16 || void != 12 {
		t.Errorf("unknown, void = %v, %v, want 6+10, 12", unknown, void)
	}
}

func TestOnlySomeLanesHaveAName(t *testing.T) {
	keys := []string{"", "\xff", strings.Repeat("ü", 100)}
	for i := range 60 {
		keys = append(keys, fmt.Sprint("key ", i))
	}
	c := newCrowd(keys...)
	got := c.collect(t)
	if n := got["weir.keys.active other"]; n != 2+60-48 {
		t.Errorf("other keys = %v, want %v", n, 2+60-48)
	}
	if n := got["weir.keys.active "+strings.Repeat("ü", 64)]; n != 1 {
		t.Errorf("keys of the long name = %v, want 1 under its first 128 bytes", n)
	}
	if names := len(got) / 3; names != 50 {
		t.Errorf("names = %d, want 50", names)
	}
}

func TestSeriesAreBounded(t *testing.T) {
	var s series
	sets := make(map[attribute.Distinct]bool)
	for i := range 1000 {
		s.of("lane", attribute.Int("i", i))
	}
	for set := range s.known {
		sets[set] = true
	}
	if len(sets) != maxSeries-maxRest {
		t.Errorf("sets with a name = %d, want %d", len(sets), maxSeries-maxRest)
	}
	s.of("lane", attribute.Int("i", 0)) // known before, so it keeps its name
	if len(s.known) != maxSeries-maxRest {
		t.Errorf("sets after a known one = %d, want %d", len(s.known), maxSeries-maxRest)
	}
}

func TestMetricsOfNobodyAreNil(t *testing.T) {
	m := NewMetrics(noop.NewMeterProvider(), nil)
	if m != nil {
		t.Error("NewMetrics under a provider that does nothing != nil")
	}
	m.Close()
	meter := m.Meter("a")
	ended := false
	meter.Turn(t.Context(), new(shaping.Turn), StoreLocal, nil)
	meter.Wait(t.Context(), new(shaping.Wait), func(error) { ended = true })(nil)
	meter.Refusal(t.Context(), nil, nil)
	meter.Pause(time.Second, time.Second)
	meter.Retry(t.Context(), backoff.Decision{}, nil, nil)
	meter.Lost(t.Context(), new(throttle.StoreState))
	meter.Shadow(t.Context(), "held", "admitted")
	meter.Strayed(store.EventStateLost)
	m.Called(new(store.Call))
	if !ended {
		t.Error("the wait's end was not passed on")
	}
}

func TestFailureOf(t *testing.T) {
	timeout := fmt.Errorf("sending: %w", os.ErrDeadlineExceeded)
	for status, want := range map[int]string{199: "_OTHER", 200: "2xx", 429: "4xx", 599: "5xx", 600: "_OTHER"} {
		if got := FailureOf(&http.Response{StatusCode: status}, nil); got != want {
			t.Errorf("FailureOf(%d) = %q, want %q", status, got, want)
		}
	}
	for err, want := range map[error]string{timeout: "timeout", errors.New("secret"): "_OTHER"} {
		if got := FailureOf(nil, err); got != want {
			t.Errorf("FailureOf(%v) = %q, want %q", err, got, want)
		}
	}
}

func TestHintOf(t *testing.T) {
	tests := []struct {
		header string
		signal headers.Signal
		want   string
	}{
		{"", headers.Signal{}, "none"},
		{"soon", headers.Signal{}, "invalid"},
		{"1", headers.Signal{RetryAfter: time.Second, HasRetryAfter: true}, "retry_after"},
		{"", headers.Signal{Quotas: []headers.Quota{{HasRemaining: true, HasReset: true, Reset: time.Second}}}, "ratelimit"},
	}
	for _, tt := range tests {
		resp := &http.Response{Header: make(http.Header)}
		if tt.header != "" {
			resp.Header.Set("Retry-After", tt.header)
		}
		if got := hintOf(resp, &tt.signal); got != tt.want {
			t.Errorf("hint of %q = %q, want %q", tt.header, got, tt.want)
		}
	}
}

func TestResultOf(t *testing.T) {
	tests := []struct {
		err   error
		stood bool
		want  result
	}{
		{nil, false, resultAdmitted},
		{nil, true, resultAdmitted},
		{&shaping.Error{Err: shaping.ErrClosed}, true, resultClosed},
		{context.Canceled, true, resultCanceled},
		{context.DeadlineExceeded, true, resultExpired},
		{context.DeadlineExceeded, false, resultExpired},
		{&shaping.Error{Err: shaping.ErrDeadline}, true, resultExpired},
		{&shaping.Error{Err: shaping.ErrDeadline}, false, resultRejected},
		{&shaping.Error{Err: shaping.ErrQueueFull}, false, resultRejected},
		{errors.New("other"), true, resultRejected},
	}
	for _, tt := range tests {
		if got := resultOf(tt.err, tt.stood); got != tt.want {
			t.Errorf("resultOf(%v, %v) = %q, want %q", tt.err, tt.stood, got, tt.want)
		}
	}
}

func TestStoreOf(t *testing.T) {
	got := []string{StoreOf(nil).String(), StoreOf(new(throttle.StoreState)).String(), StoreOf(&throttle.StoreState{Lost: true}).String()}
	if want := []string{"local", "shared", "fallback"}; !slices.Equal(got, want) {
		t.Errorf("stores = %q, want %q", got, want)
	}
}
