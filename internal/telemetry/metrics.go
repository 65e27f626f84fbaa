// Package telemetry shows waits, delays and lanes in spans and metrics of
// OpenTelemetry. Its callers report events as they happen. The states of the
// lanes are read when metrics are collected.
package telemetry

import (
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"sync"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/weirgo/weir/shaping"
)

// Bounds on the size of one transport's metrics. They are needed because others may choose a lane's
// key.
const (
	maxNamed  = 50  // lanes with a name of their own in metrics
	maxSeries = 200 // attribute sets of one instrument
	maxRest   = 50  // of those, the sets kept free for the lanes without such a name
)

// rest is the name of all lanes that have no name of their own in metrics.
const rest = "other"

// Metrics are the instruments of one transport. Counters and histograms are
// written when something happens; the others are read when metrics are
// collected. A nil *Metrics does nothing. It is safe for concurrent use.
type Metrics struct {
	admissions metric.Int64Counter
	waits      metric.Float64Histogram
	throttled  metric.Int64Counter
	pauses     metric.Float64Histogram
	retries    metric.Int64Counter
	losses     metric.Int64Counter
	voids      metric.Int64Counter
	calls      metric.Float64Histogram
	shadows    metric.Int64Counter
	strayed    metric.Int64Counter

	depth    metric.Int64ObservableUpDownCounter
	bound    metric.Int64ObservableUpDownCounter
	keys     metric.Int64ObservableUpDownCounter
	headroom metric.Float64ObservableGauge
	rate     metric.Float64ObservableGauge
	fallback metric.Int64ObservableUpDownCounter
	differ   metric.Int64ObservableUpDownCounter

	seen struct{ admissions, waits, throttled, pauses, retries, shadows, strayed series }

	called calls // attributes of the calls to the store

	servers map[string]bool // hosts with a name of their own; nil: no host is an attribute

	unregister func()

	mu     sync.Mutex        // also guards the content of servers
	groups map[string]*group // by name
}

// A State is the state of a lane, with the requests per second that its limits
// allow.
type State struct {
	shaping.State
	MostWaiting int // requests in line, at most

	Configured float64 // by the configured limits; zero: any number
	Learned    float64 // by the learned limit of the server; zero: none
}

// Lanes goes through the lanes of a transport, each with its meter and state.
// It is called at each collection, on any goroutine. It may leave out a lane
// that is made or removed meanwhile.
type Lanes iter.Seq2[*Meter, State]

// NewMetrics returns the metrics of lanes, made by provider. If provider is nil, the global one is
// used. It returns nil if metrics are not collected. Errors of the provider go to the handler of
// package otel.
func NewMetrics(provider metric.MeterProvider, lanes Lanes) *Metrics {
	if provider == nil {
		provider = otel.GetMeterProvider()
	}
	from := provider.Meter(instrumentation, metric.WithInstrumentationVersion(version))
	m := &Metrics{groups: make(map[string]*group), unregister: func() {}}
	if err := m.make(from); err != nil {
		otel.Handle(err)
		return nil
	}
	if !m.collected() {
		return nil
	}
	registered, err := m.observe(from, lanes)
	if err != nil {
		otel.Handle(err)
		return m
	}
	m.unregister = sync.OnceFunc(func() {
		if err := registered.Unregister(); err != nil {
			otel.Handle(err)
		}
	})
	return m
}

// The bounds of the histograms' buckets, in seconds.
var (
	waitBounds  = metric.WithExplicitBucketBoundaries(.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300)
	callBounds  = metric.WithExplicitBucketBoundaries(.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1)
	pauseBounds = metric.WithExplicitBucketBoundaries(.1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600)
)

// make makes the counters and histograms.
func (m *Metrics) make(from metric.Meter) error {
	var errs [10]error
	m.admissions, errs[0] = from.Int64Counter("weir.admissions", metric.WithUnit("{request}"),
		metric.WithDescription("Turns in the line of a lane, one for each attempt, by how they ended."))
	m.waits, errs[1] = from.Float64Histogram("weir.wait.duration", metric.WithUnit("s"), waitBounds,
		metric.WithDescription("Waits in the line of a lane that really waited."))
	m.throttled, errs[2] = from.Int64Counter("weir.responses.throttled", metric.WithUnit("{response}"),
		metric.WithDescription("Responses with which the server refused for now."))
	m.pauses, errs[3] = from.Float64Histogram("weir.pause.duration", metric.WithUnit("s"), pauseBounds,
		metric.WithDescription("Pauses that the server asked for, at most an hour."))
	m.retries, errs[4] = from.Int64Counter("weir.retries", metric.WithUnit("{retry}"),
		metric.WithDescription("Retries of what may be tried again, and why there was none."))
	m.losses, errs[5] = from.Int64Counter("weir.store.takes.unknown", metric.WithUnit("{request}"),
		metric.WithDescription("Permits asked for in calls that the store did not answer: they may be lost."))
	m.voids, errs[6] = from.Int64Counter("weir.store.permits.void", metric.WithUnit("{permit}"),
		metric.WithDescription("Permits of the store that nobody took in time: many where the way to it is slow."))
	m.calls, errs[7] = from.Float64Histogram("weir.store.operation.duration", metric.WithUnit("s"), callBounds,
		metric.WithDescription("Calls to the store, by what they were for and, if they failed, why."))
	m.shadows, errs[8] = from.Int64Counter("weir.shadow.decisions", metric.WithUnit("{decision}"),
		metric.WithDescription("Requests, by what the enforced limits did with them and what the shadow limits would have done."))
	m.strayed, errs[9] = from.Int64Counter("weir.store.strayed", metric.WithUnit("{event}"),
		metric.WithDescription("Times at which the processes that share limits fell out of step, by how."))
	return errors.Join(errs[:]...)
}

// collected reports whether the metrics are collected. They are not if the global
// provider is not set yet, or does nothing.
func (m *Metrics) collected() bool {
	ctx := context.Background()
	return m.admissions.Enabled(ctx) || m.waits.Enabled(ctx) || m.throttled.Enabled(ctx) ||
		m.pauses.Enabled(ctx) || m.retries.Enabled(ctx) || m.losses.Enabled(ctx) || m.voids.Enabled(ctx) || m.calls.Enabled(ctx) ||
		m.shadows.Enabled(ctx) || m.strayed.Enabled(ctx)
}

// observe makes the instruments that are read at each collection.
func (m *Metrics) observe(from metric.Meter, lanes Lanes) (metric.Registration, error) {
	var errs [7]error
	m.depth, errs[0] = from.Int64ObservableUpDownCounter("weir.queue.depth", metric.WithUnit("{request}"),
		metric.WithDescription("Requests in the line of a lane."))
	m.keys, errs[1] = from.Int64ObservableUpDownCounter("weir.keys.active", metric.WithUnit("{key}"),
		metric.WithDescription("Keys that have a lane."))
	m.headroom, errs[2] = from.Float64ObservableGauge("weir.limit.headroom", metric.WithUnit("1"),
		metric.WithDescription("Share of a limit that is left; of the lane's limits the least. Negative in debt."))
	m.fallback, errs[3] = from.Int64ObservableUpDownCounter("weir.store.fallback.active", metric.WithUnit("{lane}"),
		metric.WithDescription("Lanes whose store does not answer, so that the policy for its loss holds."))
	m.rate, errs[4] = from.Float64ObservableGauge("weir.limit.rate", metric.WithUnit("{request}/s"),
		metric.WithDescription("Requests per second that a lane's limits of up to a minute let out, or that it has learned of the server's; of several the least."))
	m.bound, errs[5] = from.Int64ObservableUpDownCounter("weir.queue.limit", metric.WithUnit("{request}"),
		metric.WithDescription("Requests that the line of a lane holds at most."))
	m.differ, errs[6] = from.Int64ObservableUpDownCounter("weir.store.limits.differ", metric.WithUnit("{lane}"),
		metric.WithDescription("Lanes for which another process claims stricter limits, so that those hold."))
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	return from.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		m.read(ctx, o, lanes)
		return nil
	}, m.depth, m.bound, m.keys, m.headroom, m.fallback, m.differ, m.rate)
}

// read reports the current lanes. A name without lanes is reported as zero.
func (m *Metrics) read(ctx context.Context, o metric.Observer, lanes Lanes) {
	readings := make(map[*group]*reading)
	for meter, s := range lanes {
		r := readings[meter.group]
		if r == nil {
			r = new(reading)
			readings[meter.group] = r
		}
		r.add(&s)
		meter.Lost(ctx, s.Store)
	}
	m.mu.Lock()
	groups := slices.Collect(maps.Values(m.groups))
	m.mu.Unlock()
	for _, g := range groups {
		r := readings[g]
		if r == nil {
			r = new(reading)
		}
		g.report(o, r)
	}
}

// Close ends the reading of lanes at collections. Events still count. Calling it again does
// nothing.
func (m *Metrics) Close() {
	if m != nil {
		m.unregister()
	}
}

// Meter returns a meter for the lane of a key. The first maxNamed names are
// named, and all others share one.
func (m *Metrics) Meter(key string) Meter {
	if m == nil {
		return Meter{}
	}
	name := label(key)
	m.mu.Lock()
	defer m.mu.Unlock()
	if name == "" || m.groups[name] == nil && len(m.groups) >= maxNamed {
		name = rest
	}
	if m.groups[name] == nil {
		m.groups[name] = newGroup(m, name)
	}
	return Meter{group: m.groups[name]}
}

// A series bounds the number of attribute sets of one instrument.
type series struct {
	mu    sync.Mutex
	known map[attribute.Distinct]bool
}

// of returns the attributes with the lane's name. If the instrument has too
// many sets already, the lane is counted as one of the rest.
func (s *series) of(lane string, with ...attribute.KeyValue) metric.MeasurementOption {
	named := setOf(lane, with)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case lane == rest || s.known[named.Equivalent()]:
	case len(s.known) >= maxSeries-maxRest:
		named = setOf(rest, with)
	default:
		if s.known == nil {
			s.known = make(map[attribute.Distinct]bool)
		}
		s.known[named.Equivalent()] = true
	}
	return metric.WithAttributeSet(named)
}

// setOf returns the attributes with a lane's name.
func setOf(lane string, with []attribute.KeyValue) attribute.Set {
	with = slices.Clone(with)
	if lane == rest {
		with = nameless(with)
	}
	return attribute.NewSet(append(with, attribute.String("weir.lane", lane))...)
}
