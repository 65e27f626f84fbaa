package shaping

import (
	"context"
	"math"

	"github.com/weirgo/weir/throttle"
)

// A Priority is a class of callers. The caller in line with the greatest priority
// departs first. The less urgent classes together are guaranteed a share
// ([Queue].LowPriorityShare). Any value may be used. Zero is PriorityNormal.
type Priority int8

// Priorities for most uses. A caller of PriorityHigh or more is urgent: it may spend what a limit
// reserves ([throttle.Limit].Reserve).
const (
	PriorityLow    Priority = -10
	PriorityNormal Priority = 0
	PriorityHigh   Priority = 10
)

// DefaultLowPriorityShare is the default share of the callers below the most urgent class together:
// one departure in twenty.
const DefaultLowPriorityShare = 0.05

// An urgency orders a caller, apart from its arrival.
type urgency struct {
	priority Priority
	tenant   string
	weight   int
	credit   float64 // virtual time for which it has waited elsewhere; zero: none
}

// urgent reports whether a caller may spend what limits reserve.
func (u urgency) urgent() bool { return u.priority >= PriorityHigh }

// maxWeight bounds a weight. The sums of such weights are exact.
const maxWeight = 1_000_000_000

// urgencyKey is the key of the urgency among a context's values.
type urgencyKey struct{}

// urgencyOf returns the urgency in a context.
func urgencyOf(ctx context.Context) urgency {
	u, _ := ctx.Value(urgencyKey{}).(urgency)
	return u
}

// WithPriority returns a context whose callers wait in the class p.
func WithPriority(ctx context.Context, p Priority) context.Context {
	u := urgencyOf(ctx)
	u.priority = p
	return context.WithValue(ctx, urgencyKey{}, u)
}

// WithTenant returns a context whose callers belong to a tenant. The tenants of a class share it in
// proportion to their weights, however many callers of each wait. The share is of cost, measured in
// time of the limit that a caller burdens most. A caller without permits counts as a hundredth of
// one. A weight below one counts as one, and one above a billion as a billion. The last weight
// named for a tenant applies to all its callers. Callers without a tenant are one tenant of weight
// one.
func WithTenant(ctx context.Context, tenant string, weight int) context.Context {
	u := urgencyOf(ctx)
	u.tenant, u.weight = tenant, weight
	return context.WithValue(ctx, urgencyKey{}, u)
}

// leastPermits is the cost of a caller without permits. It still takes a turn, and a place among
// the calls in flight. So a tenant of such callers must not go first forever: a hundred of them
// delay another tenant's single call.
const leastPermits = 0.01

// burden returns the cost of w in its tenant's share: seconds of the limit that it burdens most. If
// no rate is known, it is the number of permits.
func (q *Queue) burden(w *waiter) float64 {
	if q.rates == nil {
		q.rates = ratesOf(q.limiter.State(q.Now()))
	}
	return burdenOf(q.rates, throttle.Request{N: w.n, Each: w.each.get()})
}

// burdenOf returns the burden of a request on limits of these rates.
func burdenOf(rates []float64, r throttle.Request) (burden float64) {
	for i, rate := range rates {
		burden = max(burden, max(float64(r.Of(i)), leastPermits)/rate)
	}
	if len(rates) > 0 {
		return burden
	}
	for _, n := range r.Each {
		burden = max(burden, float64(n))
	}
	return max(burden, float64(r.N), leastPermits)
}

// ratesOf returns how many permits each limit grants in a second.
func ratesOf(s throttle.State) []float64 {
	rates := []float64{}
	for _, l := range s.Limits {
		rates = append(rates, l.Limit.PerSecond())
	}
	return rates
}

// lowPriorityShare returns LowPriorityShare or its default, between 0 and one
// half.
func (q *Queue) lowPriorityShare() float64 {
	share := q.LowPriorityShare
	if share == 0 || math.IsNaN(share) {
		share = DefaultLowPriorityShare
	}
	return min(max(share, 0), 0.5)
}
