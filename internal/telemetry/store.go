package telemetry

import (
	"context"
	"sync"

	"github.com/weirgo/weir/internal/store"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/weirgo/weir/throttle"
)

// A Store says who enforces a lane's limits.
type Store int32

// The stores.
const (
	StoreLocal    Store = iota // this process alone
	StoreShared                // a store, for several processes
	StoreFallback              // this process, while the store does not answer

	stores = iota
)

// String returns the word for spans and metrics.
func (s Store) String() string { return [stores]string{"local", "shared", "fallback"}[s] }

// StoreOf returns who enforces the limits of a limiter whose store is in state
// s. A limiter without a store has nil.
func StoreOf(s *throttle.StoreState) Store {
	switch {
	case s == nil:
		return StoreLocal
	case s.Lost:
		return StoreFallback
	default:
		return StoreShared
	}
}

// calls are the attributes of the calls to a store, made once for each kind of call.
type calls struct {
	mu    sync.Mutex
	known map[store.Call]metric.MeasurementOption // Began and Took are zero
}

// maxCalls bounds the kinds of calls, because a store of the user's may name causes
// of any kind.
const maxCalls = 100

// Called counts a call to the store.
func (m *Metrics) Called(c *store.Call) {
	if m != nil {
		m.calls.Record(context.Background(), c.Took.Seconds(), m.called.of(store.Call{Operation: c.Operation, Cause: c.Cause}))
	}
}

// of returns the attributes of a kind of call.
func (s *calls) of(kind store.Call) metric.MeasurementOption {
	s.mu.Lock()
	defer s.mu.Unlock()
	if with, ok := s.known[kind]; ok {
		return with
	}
	if len(s.known) >= maxCalls {
		return metric.WithAttributeSet(attribute.NewSet(attribute.String("weir.store.operation", rest)))
	}
	if s.known == nil {
		s.known = make(map[store.Call]metric.MeasurementOption)
	}
	s.known[kind] = metric.WithAttributeSet(attribute.NewSet(callAttributes(&kind)...))
	return s.known[kind]
}

// Strayed counts how processes that share the lane's limits diverged, or agree again.
func (m *Meter) Strayed(e store.Event) {
	if m.group != nil {
		m.group.stray(context.Background(), e, 1)
	}
}

// stray adds n to the count of an event.
func (g *group) stray(ctx context.Context, e store.Event, n int64) {
	g.strayed.Add(ctx, n, g.seen.strayed.of(g.name, attribute.String("weir.store.event", label(string(e)))))
}

// begin counts zero of each event of a store. Prometheus sees no increase in a counter whose first
// value is one, so an alert on the first event would never fire.
func (g *group) begin(ctx context.Context) {
	g.losses.Add(ctx, 0, g.here)
	g.voids.Add(ctx, 0, g.here)
	for _, e := range [...]store.Event{
		store.EventLimitsDiffer, store.EventLimitsAgree, store.EventStateLost, store.EventStateForeign, store.EventClockStepped, store.EventPermitsVoid,
	} {
		g.stray(ctx, e, 0)
	}
}

// callAttributes returns the operation of a call and, if it failed, the cause.
func callAttributes(c *store.Call) []attribute.KeyValue {
	with := []attribute.KeyValue{attribute.String("weir.store.operation", label(string(c.Operation)))}
	if c.Cause != "" {
		with = append(with, attribute.String("error.type", label(c.Cause)))
	}
	return with
}
