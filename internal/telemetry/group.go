package telemetry

import (
	"context"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// A group counts for all lanes of one name. The lanes that have no name of their own in
// metrics are one group.
type group struct {
	*Metrics
	name     string
	here     metric.MeasurementOption          // attributes: the name alone
	source   metric.MeasurementOption          // attributes: the name, and that limits are known in this process
	kinds    [kinds]metric.MeasurementOption   // attributes: the name, and where a rate comes from
	admitted [stores]atomic.Pointer[admission] // the last one, for each store; nil: none
	shared   atomic.Bool                       // a lane of the group has, or had, a store
}

// An admission has the attributes with which the last one was counted. If calls of a lane go
// to one host, they are made once.
type admission struct {
	server string // "": no attribute
	with   []metric.AddOption
}

// of returns the attributes with the names of the group and of the call's host.
func (g *group) of(ctx context.Context, s *series, with ...attribute.KeyValue) metric.MeasurementOption {
	if server := g.server(ctx); server != "" {
		with = append(with, serverAddress.String(server))
	}
	return s.of(g.name, with...)
}

// kinds is the number of kinds of rates: configured and learned.
const kinds = 2

// newGroup returns the group of a name, with the attributes that do not change.
func newGroup(m *Metrics, name string) *group {
	lane := attribute.String("weir.lane", name)
	return &group{
		Metrics: m,
		name:    name,
		here:    metric.WithAttributeSet(attribute.NewSet(lane)),
		kinds: [kinds]metric.MeasurementOption{
			metric.WithAttributeSet(attribute.NewSet(lane, attribute.String("weir.limit.kind", "configured"))),
			metric.WithAttributeSet(attribute.NewSet(lane, attribute.String("weir.limit.kind", "learned"))),
		},
		source: metric.WithAttributeSet(attribute.NewSet(lane, attribute.String("weir.source", "local"))),
	}
}

// report reports the state of the group's lanes to the observer.
func (g *group) report(o metric.Observer, r *reading) {
	o.ObserveInt64(g.depth, r.depth, g.here)
	o.ObserveInt64(g.bound, r.bound, g.here)
	o.ObserveInt64(g.keys, r.keys, g.here)
	if r.limited {
		o.ObserveFloat64(g.headroom, r.left, g.source)
	}
	for kind, rate := range r.rates {
		if rate > 0 {
			o.ObserveFloat64(g.rate, rate, g.kinds[kind])
		}
	}
	if g.shared.Load() {
		o.ObserveInt64(g.fallback, r.fallback, g.here)
		o.ObserveInt64(g.differ, r.differ, g.here)
	}
}

// A reading sums up the states of a group's lanes at one collection.
type reading struct {
	depth, bound, keys, fallback, differ int64

	left    float64 // share of the limit of which the least is left
	limited bool    // there is a limit

	rates [kinds]float64 // the least rate of each kind; zero: none
}

// add adds the state of one lane.
func (r *reading) add(s *State) {
	r.keys++
	for kind, rate := range [kinds]float64{s.Configured, s.Learned} {
		if rate > 0 && (r.rates[kind] == 0 || rate < r.rates[kind]) {
			r.rates[kind] = rate
		}
	}
	r.depth += int64(s.Waiting)
	r.bound += int64(s.MostWaiting)
	if s.Store != nil && s.Store.Lost {
		r.fallback++
	}
	if s.Store != nil && s.Store.Differs {
		r.differ++
	}
	for _, limit := range s.Limits {
		if left := 1 - limit.Utilization; !r.limited || left < r.left {
			r.left, r.limited = left, true
		}
	}
}
