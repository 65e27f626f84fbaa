package telemetry

import (
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/weirgo/weir/shaping"
)

// A group is the lanes of one name.
type group struct {
	*Metrics
	name     string
	here     metric.MeasurementOption // the name alone
	source   metric.MeasurementOption // and that what is told of limits is known here
	admitted [stores]atomic.Pointer[[]metric.AddOption]
	shared   atomic.Bool // a lane of it has, or had, a store
}

func newGroup(m *Metrics, name string) *group {
	lane := attribute.String("weir.lane", name)
	return &group{
		Metrics: m,
		name:    name,
		here:    metric.WithAttributeSet(attribute.NewSet(lane)),
		source:  metric.WithAttributeSet(attribute.NewSet(lane, attribute.String("weir.source", "local"))),
	}
}

// tell tells the observer of the lanes of that name.
func (g *group) tell(o metric.Observer, r *reading) {
	o.ObserveInt64(g.depth, r.depth, g.here)
	o.ObserveInt64(g.keys, r.keys, g.here)
	if r.limited {
		o.ObserveFloat64(g.headroom, r.left, g.source)
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
}

func (r *reading) add(s *shaping.State) {
	r.keys++
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
