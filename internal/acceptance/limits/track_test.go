package limits_test

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/acceptance/harness"
	"github.com/weirgo/weir/internal/testserver"
	"github.com/weirgo/weir/throttle"
)

func TestSpendReservesAndSettles(t *testing.T) {
	for name, tt := range map[string]struct {
		reserved, settled int
		next              time.Duration // arrival of a call of 100 tokens
	}{
		"as reserved":    {50, 50, 500 * time.Millisecond},
		"costs nothing":  {0, 0, 0},
		"underspend":     {90, 10, 100 * time.Millisecond},
		"overspend":      {50, 150, 1500 * time.Millisecond},
		"not settled":    {70, -1, 700 * time.Millisecond},
		"the whole cost": {100, 100, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := tokenRig(t)
				ctx, spend := weir.Track(t.Context())
				spend.Reserve("tokens", tt.reserved)
				r.Want("GET", r.Get(ctx, "a"), 200)
				if tt.settled >= 0 {
					if err := spend.Settle("tokens", tt.settled); err != nil {
						t.Errorf("Settle = %v", err)
					}
					if spend.Settle("tokens", tt.settled) == nil {
						t.Error("second Settle of a call = nil, want an error")
					}
				}
				r.Call() // of 100 tokens
				harness.WantEqual(t, "arrivals", harness.Instants(r.Vendor.Arrivals()), []time.Duration{0, tt.next})
			})
		})
	}
}

// Settle may come while the call is in flight, but not before it is sent.
func TestSpendSettlesBeforeTheResponse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := tokenRig(t)
		r.Transport.Learn, r.Vendor.Service = weir.LearnOff, time.Minute // a learned limit bounds the cost in flight
		ctx, spend := weir.Track(t.Context())
		spend.Reserve("tokens", 100)
		for what, settle := range map[string]func() error{
			"no call":       func() error { return spend.Settle("tokens", 10) },
			"negative cost": func() error { return spend.Settle("tokens", -1) },
		} {
			if settle() == nil {
				t.Errorf("Settle with %s = nil, want an error", what)
			}
		}
		var wg sync.WaitGroup
		wg.Go(func() { r.Want("GET", r.Get(ctx, "a"), 200) })
		synctest.Wait()
		if err := spend.Settle("tokens", 10); err != nil {
			t.Errorf("Settle in flight = %v", err)
		}
		wg.Go(func() { r.Call() }) // of 100 tokens
		wg.Wait()
		harness.WantEqual(t, "arrivals", harness.Instants(r.Vendor.Arrivals()), []time.Duration{0, 100 * time.Millisecond})
	})
}

// The reservation stands for each call, as for an SDK's retries. Another context has its own.
func TestSpendChargesEachCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := tokenRig(t)
		ctx, spend := weir.Track(t.Context())
		spend.Reserve("tokens", 50)
		for _, ctx := range []context.Context{ctx, ctx, ctx, t.Context()} {
			r.Want("GET", r.Get(ctx, "a"), 200)
		}
		harness.WantEqual(t, "arrivals", harness.Instants(r.Vendor.Arrivals()),
			[]time.Duration{0, 0, 500 * time.Millisecond, 1500 * time.Millisecond})
		spend.Reserve("tokens", -1)
		if got := r.Get(ctx, "a"); got.Err == nil {
			t.Error("GET of a negative cost = nil, want an error")
		}
	})
}

func TestCostOfAUnitPrecedes(t *testing.T) {
	tokens := throttle.TokenBucket(10, time.Second, 10).Of("tokens")
	for name, tt := range map[string]struct {
		cost func(*http.Request, throttle.Limit) int
		with func(context.Context) context.Context
		next time.Duration // of a second call
	}{
		"no Cost":         {nil, func(ctx context.Context) context.Context { return weir.WithCostOf(ctx, "tokens", 8) }, 600 * time.Millisecond},
		"beside WithCost": {nil, func(ctx context.Context) context.Context { return weir.WithCostOf(weir.WithCost(ctx, 2), "tokens", 8) }, 600 * time.Millisecond},
		"of another unit": {nil, func(ctx context.Context) context.Context {
			return weir.WithCostOf(weir.WithCost(ctx, 7), "requests", 1)
		}, 400 * time.Millisecond},
		"an empty unit":      {nil, func(ctx context.Context) context.Context { return weir.WithCostOf(ctx, "", 100) }, time.Second},
		"instead of Cost":    {func(*http.Request, throttle.Limit) int { return 10 }, func(ctx context.Context) context.Context { return weir.WithCostOf(ctx, "tokens", 8) }, 600 * time.Millisecond},
		"reserved, not both": {nil, reserved, 600 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := harness.PipeRig(t, &testserver.Vendor{}, &weir.Transport{Cost: tt.cost, Limits: []throttle.Limit{throttle.TokenBucket(100, time.Second, 100), tokens}})
				ctx := tt.with(t.Context())
				r.Want("GET", r.Get(ctx, "a"), 200)
				r.Want("GET", r.Get(ctx, "b"), 200)
				harness.WantEqual(t, "arrivals", harness.Instants(r.Vendor.Arrivals()), []time.Duration{0, tt.next})
			})
		})
	}
}

// reserved reserves 8 tokens, in a context with another estimate.
func reserved(ctx context.Context) context.Context {
	ctx, spend := weir.Track(weir.WithCostOf(ctx, "tokens", 3))
	spend.Reserve("tokens", 8)
	return ctx
}

// A call that states its cost in a unit causes no warning. Other calls do.
func TestUnpricedUnitIsWarnedOf(t *testing.T) {
	for name, tt := range map[string]struct {
		with func(context.Context) context.Context
		warn bool
	}{
		"Track":        {reserved, false},
		"WithCost":     {func(ctx context.Context) context.Context { return weir.WithCost(ctx, 2) }, false},
		"WithCostOf":   {func(ctx context.Context) context.Context { return weir.WithCostOf(ctx, "tokens", 2) }, false},
		"another unit": {func(ctx context.Context) context.Context { return weir.WithCostOf(ctx, "points", 2) }, true},
		"nothing":      {func(ctx context.Context) context.Context { return ctx }, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var lines strings.Builder
				r := harness.PipeRig(t, &testserver.Vendor{}, &weir.Transport{
					Limits: []throttle.Limit{throttle.TokenBucket(10, time.Second, 10).Of("tokens")},
					Logger: slog.New(slog.NewTextHandler(&lines, nil)),
				})
				for range 2 {
					r.Want("GET", r.Get(tt.with(t.Context()), "a"), 200)
				}
				if got := strings.Count(lines.String(), "another unit"); got != map[bool]int{true: 1}[tt.warn] {
					t.Errorf("two calls logged %q, want a warning: %v", lines.String(), tt.warn)
				}
			})
		})
	}
}

// A limit whose unit prices waiting requests cannot be removed.
func TestUnitOfAContextCannotBeDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := throttle.TokenBucket(100, time.Second, 100)
		r := harness.PipeRig(t, &testserver.Vendor{}, &weir.Transport{Limits: []throttle.Limit{throttle.TokenBucket(10, time.Second, 10).Of("tokens"), calls}})
		r.Want("GET", r.Get(weir.WithCostOf(t.Context(), "tokens", 8), "a"), 200)
		if r.Transport.SetLimits(calls) == nil {
			t.Error("SetLimits without the unit = nil, want an error")
		}
	})
}

// Settle may come while the call departs, in lanes that bound calls in flight: the race detector
// checks that only one of them divides the cost over the lanes.
func TestSpendSettlesWhileItsCallDeparts(t *testing.T) {
	r := harness.SocketRig(t, &testserver.Vendor{}, &weir.Transport{
		Keys:     func(*http.Request) []string { return []string{"customer", "account"} },
		InFlight: weir.InFlight{Max: 4}, Limits: []throttle.Limit{throttle.TokenBucket(1_000_000, time.Second, 1000).Of("tokens")},
		Cost: func(*http.Request, throttle.Limit) int { return 1 },
	})
	for range 50 {
		ctx, spend := weir.Track(t.Context())
		var settled sync.WaitGroup
		settled.Go(func() {
			for spend.Settle("tokens", 2) != nil && ctx.Err() == nil {
			}
		})
		r.Want("GET", r.Get(ctx, "a"), 200)
		settled.Wait()
	}
}
