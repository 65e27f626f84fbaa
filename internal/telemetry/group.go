package telemetry

import (
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// A group is the lanes of one name.
type group struct {
	*Metrics
	name     string
	here     metric.MeasurementOption        // the name alone
	source   metric.MeasurementOption        // and that what is told of limits is known here
	kinds    [kinds]metric.MeasurementOption // and where a rate comes from
	admitted [stores]atomic.Pointer[[]metric.AddOption]
	shared   atomic.Bool // a lane of it has, or had, a store
}

// kinds is how many kinds of rates there are: configured, learned.
const kinds = 2

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

// tell tells the observer of the lanes of that name.
func (g *group) tell(o metric.Observer, r *reading) {
	o.ObserveInt64(g.depth, r.depth, g.here)
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
	}
}

// A reading is the state of the lanes of one name.
type reading struct {
	depth, keys, fallback int64

	left    float64 // of the limit of which the least is left
	limited bool    // there is one

	rates [kinds]float64 // the least of each kind; zero: there is none
}

func (r *reading) add(s *State) {
	r.keys++
	for kind, rate := range [kinds]float64{s.Configured, s.Learned} {
		if rate > 0 && (r.rates[kind] == 0 || rate < r.rates[kind]) {
			r.rates[kind] = rate
		}
	}
	r.depth += int64(s.Waiting)
	if s.Store != nil && s.Store.Lost {
		r.fallback++
	}
	for _, limit := range s.Limits {
		if left := 1 - limit.Utilization; !r.limited || left < r.left {
			r.left, r.limited = left, true
		}
	}
}
