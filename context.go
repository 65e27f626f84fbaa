package weir

import (
	"context"
	"time"

	"github.com/weirgo/weir/backoff"
)

// options are what a context says of its requests. One value holds them all,
// so that a request looks once.
type options struct {
	cost    int // zero: not set
	maxWait time.Duration
	retry   *backoff.Policy
}

type optionsKey struct{}

func optionsOf(ctx context.Context) options {
	o, _ := ctx.Value(optionsKey{}).(*options)
	if o == nil {
		return options{}
	}
	return *o
}

func with(ctx context.Context, set func(*options)) context.Context {
	o := optionsOf(ctx)
	set(&o)
	return context.WithValue(ctx, optionsKey{}, &o)
}

// WithCost returns a context whose requests cost n permits of every limit,
// in place of one or of what Transport.Cost says. It panics if n is not
// positive.
func WithCost(ctx context.Context, n int) context.Context {
	if n <= 0 {
		panic("weir: WithCost of a cost that is not positive")
	}
	return with(ctx, func(o *options) { o.cost = n })
}

// WithMaxWait returns a context whose requests wait in line no longer than d
// at a time, in place of Transport.MaxWait. It panics if d is not positive.
func WithMaxWait(ctx context.Context, d time.Duration) context.Context {
	if d <= 0 {
		panic("weir: WithMaxWait of a wait that is not positive")
	}
	return with(ctx, func(o *options) { o.maxWait = d })
}

// WithRetry returns a context whose requests are tried again as p says, in
// place of Transport.Retry; nil is a policy with the defaults.
func WithRetry(ctx context.Context, p *backoff.Policy) context.Context {
	if p == nil {
		p = new(backoff.Policy)
	}
	return with(ctx, func(o *options) { o.retry = p })
}
