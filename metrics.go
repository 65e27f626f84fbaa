package weir

import (
	"context"
	"errors"
	"maps"
	"runtime"
	"slices"
	"sync"
	"weak"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
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

// metrics are the instruments of a Transport. What happens is counted when it
// happens; what is there is read when somebody collects.
type metrics struct {
	admissions metric.Int64Counter
	waits      metric.Float64Histogram
	throttled  metric.Int64Counter
	pauses     metric.Float64Histogram
	retries    metric.Int64Counter
	unknown    metric.Int64Counter
	void       metric.Int64Counter

	depth    metric.Int64ObservableUpDownCounter
	keys     metric.Int64ObservableUpDownCounter
	headroom metric.Float64ObservableGauge
	fallback metric.Int64ObservableUpDownCounter

	seen struct{ admissions, waits, throttled, pauses, retries series }

	unregister func()

	mu     sync.Mutex
	meters map[string]*meter // by the name of their lanes
}

// newMetrics returns the metrics of the lanes; nil where nobody collects any.
// Whoever forgets the lanes without closing them need not close the metrics.
func newMetrics(from metric.Meter, of *lanes) *metrics {
	m := &metrics{meters: make(map[string]*meter), unregister: func() {}}
	if err := m.make(from); err != nil {
		otel.Handle(err)
		return nil
	}
	if !m.collected() {
		return nil
	}
	registered, err := m.observe(from, weak.Make(of))
	if err != nil {
		otel.Handle(err)
		return m
	}
	m.unregister = sync.OnceFunc(func() {
		if err := registered.Unregister(); err != nil {
			otel.Handle(err)
		}
	})
	runtime.AddCleanup(of, func(unregister func()) { unregister() }, m.unregister)
	return m
}

// The bounds of the histograms' buckets, in seconds.
var (
	waitBounds  = metric.WithExplicitBucketBoundaries(.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300)
	pauseBounds = metric.WithExplicitBucketBoundaries(.1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600)
)

// make makes the instruments that events are counted with.
func (m *metrics) make(from metric.Meter) error {
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
	m.unknown, errs[5] = from.Int64Counter("weir.store.takes.unknown", metric.WithUnit("{request}"),
		metric.WithDescription("Permits asked for in calls that the store did not answer: they may be lost."))
	m.void, errs[6] = from.Int64Counter("weir.store.permits.void", metric.WithUnit("{permit}"),
		metric.WithDescription("Permits of the store that nobody took in time: many where the way to it is slow."))
	return errors.Join(errs[:]...)
}

// collected reports whether anybody collects what is counted. The global
// provider does not before one is set, nor does one that is told to do nothing.
func (m *metrics) collected() bool {
	ctx := context.Background()
	return m.admissions.Enabled(ctx) || m.waits.Enabled(ctx) || m.throttled.Enabled(ctx) ||
		m.pauses.Enabled(ctx) || m.retries.Enabled(ctx) || m.unknown.Enabled(ctx) || m.void.Enabled(ctx)
}

// observe makes the instruments that are read when somebody collects.
func (m *metrics) observe(from metric.Meter, of weak.Pointer[lanes]) (metric.Registration, error) {
	var errs [4]error
	m.depth, errs[0] = from.Int64ObservableUpDownCounter("weir.queue.depth", metric.WithUnit("{request}"),
		metric.WithDescription("Requests in the line of a lane."))
	m.keys, errs[1] = from.Int64ObservableUpDownCounter("weir.keys.active", metric.WithUnit("{key}"),
		metric.WithDescription("Keys that have a lane."))
	m.headroom, errs[2] = from.Float64ObservableGauge("weir.limit.headroom", metric.WithUnit("1"),
		metric.WithDescription("Share of a limit that is left; of the lane's limits the least. Negative in debt."))
	m.fallback, errs[3] = from.Int64ObservableUpDownCounter("weir.store.fallback.active", metric.WithUnit("{lane}"),
		metric.WithDescription("Lanes whose store does not answer, so that the policy for its loss holds."))
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	return from.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		if s := of.Value(); s != nil {
			m.read(ctx, o, s)
		}
		return nil
	}, m.depth, m.keys, m.headroom, m.fallback)
}

// read tells the observer of the lanes as they are. A name that no lane has any
// more has nothing.
func (m *metrics) read(ctx context.Context, o metric.Observer, of *lanes) {
	readings := make(map[*meter]*reading)
	of.each(func(l *lane) {
		r := readings[l.meter]
		if r == nil {
			r = new(reading)
			readings[l.meter] = r
		}
		s := l.queue.State()
		r.add(&s)
		l.meter.lost(ctx, l, s.Store)
	})
	m.mu.Lock()
	meters := slices.Collect(maps.Values(m.meters))
	m.mu.Unlock()
	for _, meter := range meters {
		r := readings[meter]
		if r == nil {
			r = new(reading)
		}
		meter.tell(o, r)
	}
}

// close ends the observation. Events are counted all the same.
func (m *metrics) close() {
	if m != nil {
		m.unregister()
	}
}

// meter returns what counts for the lane of a key; nil where nobody collects.
func (m *metrics) meter(key string) *meter {
	if m == nil {
		return nil
	}
	name := label(key)
	m.mu.Lock()
	defer m.mu.Unlock()
	if name == "" || m.meters[name] == nil && len(m.meters) >= maxNamed {
		name = rest
	}
	if m.meters[name] == nil {
		m.meters[name] = newMeter(m, name)
	}
	return m.meters[name]
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
