package weir

import (
	"cmp"
	"context"
	"maps"
	"time"

	"github.com/weirgo/weir/backoff"
	"github.com/weirgo/weir/shaping"
)

// options are a context's settings for its requests. They are one value, so that a request looks
// only once.
type options struct {
	cost    int            // zero: not set
	costOf  map[string]int // by unit; never changed; nil: not set
	spend   *Spend         // nil: the context is not tracked
	maxWait time.Duration
	retry   *backoff.Policy
}

// optionsKey is the key of the options among a context's values.
type optionsKey struct{}

// noOptions are those of a context without settings. They are never written.
var noOptions options

// optionsOf returns the options of a context, which must not be changed.
func optionsOf(ctx context.Context) *options {
	if o, ok := ctx.Value(optionsKey{}).(*options); ok {
		return o
	}
	return &noOptions
}

// with returns a context whose options differ from ctx's by set.
func with(ctx context.Context, set func(*options)) context.Context {
	o := *optionsOf(ctx)
	set(&o)
	return context.WithValue(ctx, optionsKey{}, &o)
}

// WithCost returns a context whose requests cost n permits of every limit, instead of
// Transport.Cost's. It panics if n is not positive.
func WithCost(ctx context.Context, n int) context.Context {
	if n <= 0 {
		panic("weir: WithCost of a cost that is not positive")
	}
	return with(ctx, func(o *options) { o.cost = n })
}

// WithCostOf returns a context whose requests cost n permits of every limit of a unit, such as
// "tokens", instead of Transport.Cost's and WithCost's. An empty unit means "requests". Costs of
// other units stay, so it may be called for several. If n is zero, the requests cost nothing of
// that unit. It panics if n is negative.
func WithCostOf(ctx context.Context, unit string, n int) context.Context {
	if n < 0 {
		panic("weir: WithCostOf of a negative cost")
	}
	return with(ctx, func(o *options) {
		costs := maps.Clone(o.costOf)
		if costs == nil {
			costs = make(map[string]int)
		}
		costs[cmp.Or(unit, "requests")] = n
		o.costOf = costs
	})
}

// WithMaxWait returns a context whose requests wait in line no longer than d before one attempt,
// instead of Transport.Line.MaxWait. It panics if d is not positive.
func WithMaxWait(ctx context.Context, d time.Duration) context.Context {
	if d <= 0 {
		panic("weir: WithMaxWait of a wait that is not positive")
	}
	return with(ctx, func(o *options) { o.maxWait = d })
}

// WithRetry returns a context whose requests are retried by p, instead of Transport.Retry. If p is
// nil, the defaults apply.
func WithRetry(ctx context.Context, p *backoff.Policy) context.Context {
	if p == nil {
		p = new(backoff.Policy)
	}
	return with(ctx, func(o *options) { o.retry = p })
}

// A Priority is a class of requests. The requests of the most urgent class in line
// depart first. The other classes together are guaranteed a share
// (Transport.Line.LowPriorityShare), so that no request starves.
type Priority = shaping.Priority

// Priorities for most uses. Any other value may be used.
const (
	PriorityLow    = shaping.PriorityLow
	PriorityNormal = shaping.PriorityNormal
	PriorityHigh   = shaping.PriorityHigh
)

// WithPriority returns a context whose requests wait in the class p of their
// lane. A request that is tried again keeps its first place in its class.
func WithPriority(ctx context.Context, p Priority) context.Context {
	return shaping.WithPriority(ctx, p)
}

// WithTenant returns a context whose requests belong to a tenant. The tenants of a
// class share the lane in proportion to their weights, however many requests of each
// wait. The share is of cost, not of requests. A weight below one counts as one.
// Requests without a tenant are one tenant of weight one. A lane forgets a tenant that
// has no request in line. The name appears in no metric and no span.
func WithTenant(ctx context.Context, tenant string, weight int) context.Context {
	return shaping.WithTenant(ctx, tenant, weight)
}
