package shaping

import (
	"cmp"
	"context"

	"github.com/weirgo/weir/throttle"
)

// A Priority is a class of callers: of two that wait the one with the greater
// priority departs first, but for the share that the less urgent ones are
// guaranteed together ([Queue].LowPriorityShare). Any value may be used; zero is
// PriorityNormal.
type Priority int8

// Priorities for those who need no more.
const (
	PriorityLow    Priority = -10
	PriorityNormal Priority = 0
	PriorityHigh   Priority = 10
)

// DefaultLowPriorityShare is what the callers below the most urgent class are
// guaranteed together where a queue sets nothing: one departure in twenty.
const DefaultLowPriorityShare = 0.05

// urgency says where a caller stands beside its arrival.
type urgency struct {
	priority Priority
	tenant   string
	weight   int
}

func (u urgency) weightOrOne() float64 { return float64(max(u.weight, 1)) }

type urgencyKey struct{}

func urgencyOf(ctx context.Context) urgency {
	u, _ := ctx.Value(urgencyKey{}).(urgency)
	return u
}

// of returns what the turn says, and what the context says where the turn says
// nothing.
func (u urgency) of(t *Turn) urgency {
	u.priority = cmp.Or(t.Priority, u.priority)
	if t.Tenant != "" {
		u.tenant, u.weight = t.Tenant, t.Weight
	}
	return u
}

// WithPriority returns a context whose callers wait in the class p.
func WithPriority(ctx context.Context, p Priority) context.Context {
	u := urgencyOf(ctx)
	u.priority = p
	return context.WithValue(ctx, urgencyKey{}, u)
}

// WithTenant returns a context whose callers share their class with other tenants'
// callers, as the weights are to each other, however many of them wait. The share
// is of cost, in time of the limit that a caller burdens most. A weight below one
// counts as one; the last one named holds for all of a tenant's callers. The callers
// that name no tenant are one tenant of weight one.
func WithTenant(ctx context.Context, tenant string, weight int) context.Context {
	u := urgencyOf(ctx)
	u.tenant, u.weight = tenant, weight
	return context.WithValue(ctx, urgencyKey{}, u)
}

// burden returns what r counts in its tenant's share: the seconds of the limit
// that it burdens most. Where no rate is known it is the number of permits.
func (q *Queue) burden(r throttle.Request) float64 {
	if q.rates == nil {
		q.readRates()
	}
	burden := float64(0)
	for i, rate := range q.rates {
		burden = max(burden, float64(r.Of(i))/rate)
	}
	if len(q.rates) == 0 {
		burden = float64(r.N)
	}
	return burden
}

// readRates reads how many permits each limit grants in a second.
func (q *Queue) readRates() {
	q.rates = []float64{}
	for _, l := range q.limiter.State(q.Now()).Limits {
		q.rates = append(q.rates, l.Limit.PerSecond())
	}
}

func (q *Queue) lowPriorityShare() float64 {
	return min(max(cmp.Or(q.LowPriorityShare, DefaultLowPriorityShare), 0), 0.5)
}
