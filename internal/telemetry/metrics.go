// Package telemetry tells of waits, delays and lanes: spans and metrics, in the
// API of OpenTelemetry. What happens it is told of when it happens; the lanes'
// states it pulls when somebody collects.
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

// The bounds of what metrics cost whoever stores them. A lane's key may be made
// of what somebody else controls.
const (
	maxNamed  = 50  // lanes that metrics tell apart
	maxSeries = 200 // attribute sets of one instrument
	maxRest   = 50  // of those, as many as the lanes without a name need
)

// rest is the name of the lanes beyond those that metrics tell apart.
const rest = "other"

// Metrics are the instruments of a transport. What happens is counted when it
// happens; what is there is read when somebody collects. Nil Metrics do nothing.
type Metrics struct {
	admissions metric.Int64Counter
	waits      metric.Float64Histogram
	throttled  metric.Int64Counter
	pauses     metric.Float64Histogram
	retries    metric.Int64Counter
	losses     metric.Int64Counter
	voids      metric.Int64Counter

	depth    metric.Int64ObservableUpDownCounter
	keys     metric.Int64ObservableUpDownCounter
	headroom metric.Float64ObservableGauge
	rate     metric.Float64ObservableGauge
	fallback metric.Int64ObservableUpDownCounter

	seen struct{ admissions, waits, throttled, pauses, retries series }

	unregister func()

	mu     sync.Mutex
	groups map[string]*group // by their names
}

// A State is the state of a lane, and how many requests per second its limits let
// out.
type State struct {
	shaping.State
	Configured float64 // by the configured limits; zero: any number
	Learned    float64 // by what was learned of the server's; zero: nothing was
}

// Lanes are the lanes there are, each with its meter and its state. They are gone
// through at each collection, on any goroutine. A lane made or gone meanwhile may
// be left out.
type Lanes iter.Seq2[*Meter, State]

// NewMetrics returns the metrics of lanes, made by the provider or, if that is
// nil, by the global one. It returns nil if nobody collects any.
func NewMetrics(provider metric.MeterProvider, lanes Lanes) *Metrics {
	if provider == nil {
		provider = otel.GetMeterProvider()
	}
	from := provider.Meter(instrumentation)
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
	pauseBounds = metric.WithExplicitBucketBoundaries(.1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600)
)

// make makes the instruments that events are counted with.
func (m *Metrics) make(from metric.Meter) error {
	var errs [7]error
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
	return errors.Join(errs[:]...)
}

// collected reports whether anybody collects what is counted. The global
// provider does not before one is set, nor does one that is told to do nothing.
func (m *Metrics) collected() bool {
	ctx := context.Background()
	return m.admissions.Enabled(ctx) || m.waits.Enabled(ctx) || m.throttled.Enabled(ctx) ||
		m.pauses.Enabled(ctx) || m.retries.Enabled(ctx) || m.losses.Enabled(ctx) || m.voids.Enabled(ctx)
}

// observe makes the instruments that are read when somebody collects.
func (m *Metrics) observe(from metric.Meter, lanes Lanes) (metric.Registration, error) {
	var errs [5]error
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
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	return from.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		m.read(ctx, o, lanes)
		return nil
	}, m.depth, m.keys, m.headroom, m.fallback, m.rate)
}

// read tells the observer of the lanes as they are. A name that no lane has any
// more has nothing.
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
		g.tell(o, r)
	}
}

// Close ends the observation. Events are counted all the same. Calling it again
// does nothing.
func (m *Metrics) Close() {
	if m != nil {
		m.unregister()
	}
}

// Meter returns what counts for a lane of the key.
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

// A series bounds the attribute sets of an instrument.
type series struct {
	mu    sync.Mutex
	known map[attribute.Distinct]bool
}

// of returns the attributes with the lane's name or, where there are too many
// sets with one, as of the rest.
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

func setOf(lane string, with []attribute.KeyValue) attribute.Set {
	return attribute.NewSet(append(slices.Clone(with), attribute.String("weir.lane", lane))...)
}
