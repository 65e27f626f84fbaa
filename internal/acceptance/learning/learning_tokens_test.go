package learning_test

import (
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/headers"
	"github.com/weirgo/weir/internal/acceptance/harness"
	"github.com/weirgo/weir/internal/testserver"
	"github.com/weirgo/weir/throttle"
)

// tokensOf returns a request's cost from its header.
func tokensOf(req *http.Request) int {
	n, _ := strconv.Atoi(req.Header.Get("Tokens"))
	return n
}

// modelVendor serves calls that cost tokens, and reports its quotas as OpenAI does: of tokens and,
// with a second limit, of requests.
func modelVendor(limits ...testserver.Limit) *testserver.Vendor {
	v := &testserver.Vendor{Limits: limits, Cost: tokensOf, Service: 5 * time.Millisecond}
	for i, style := range []testserver.Style{testserver.OpenAITokens, testserver.OpenAI}[:len(limits)] {
		limits[i].Unit = []string{"tokens", "requests"}[i]
		v.Styles = append(v.Styles, testserver.Seen(style, testserver.Of(limits[i].Unit)))
	}
	return v
}

// pricedRig is a rig with a limit of tokens that is ten times too high, and half of the vendor's
// burst. It estimates each call at a multiple of its cost.
func pricedRig(t *testing.T, open func(http.Handler) (*testserver.Server, error), vendor *testserver.Vendor, estimate float64) *harness.Rig {
	t.Helper()
	l := vendor.Limits[0]
	transport := &weir.Transport{
		Limits: []throttle.Limit{harness.Named(throttle.TokenBucket(10*l.Permits, l.Per, l.Burst/2), "tokens")},
		Cost: func(req *http.Request, _ throttle.Limit) int {
			return int(estimate * float64(tokensOf(req)))
		},
	}
	transport.Dialect, _ = headers.Lookup("OpenAI")
	return harness.NewRig(t, open, vendor, transport)
}

// No call departs whose cost exceeds the reported tokens left, less the cost in flight. No call is
// refused (in 120 runs of a thousand calls, two were), and the vendor's rate is used. Estimates of
// twice the cost change nothing.
func TestTokensThatAreLeftBoundCalls(t *testing.T) {
	t.Parallel()
	tokens, calls := testserver.TokenBucket(200_000, time.Second, 40_000), testserver.TokenBucket(1000, time.Second, 100)
	for name, test := range map[string]struct {
		limits   []testserver.Limit
		estimate float64
		scope    headers.Scope // of refusals, and of quotas of requests
	}{
		"tokens":              {[]testserver.Limit{tokens}, 1, headers.ScopeUnknown},
		"tokens and requests": {[]testserver.Limit{tokens, calls}, 1, headers.ScopeUnknown},
		"requests by route":   {[]testserver.Limit{tokens, calls}, 1, headers.ScopeRoute},
		"estimates too high":  {[]testserver.Limit{tokens}, 2, headers.ScopeUnknown},
	} {
		if testing.Short() && test.scope == headers.ScopeUnknown {
			continue // the other one does all that they do
		}
		synctest.Test(t, func(t *testing.T) {
			r := pricedRig(t, testserver.Pipe, modelVendor(test.limits...), test.estimate)
			dialect := *r.Transport.Dialect
			dialect.Scope = test.scope
			r.Transport.Dialect = &dialect
			base := r.Transport.Base
			r.Transport.Base = harness.BaseFunc(func(req *http.Request) (*http.Response, error) {
				time.Sleep(time.Millisecond + rand.N(2*time.Millisecond)) // calls overtake each other
				return base.RoundTrip(req)
			})
			if wall, refused := r.DrainTokens(1000); wall > 1.1 || refused > 1 {
				t.Errorf("%s: %.2f of the ideal time, %d refused, want 1.1 and 1 at most", name, wall, refused)
			}
		})
	}
}

// A quota of a minute's tokens is spent in a second, long before its rise is known for sure. From then on each call
// waits until the level has risen by its cost, as far as it was seen to rise, and before that the level is read by
// few calls: otherwise hundreds are refused.
func TestTokensOfAMinuteAreWaitedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := pricedRig(t, testserver.Pipe, modelVendor(testserver.TokenBucket(200_000, time.Minute, 200_000)), 1)
		if wall, refused := r.DrainTokens(500); wall > 1.4 || refused > 10 {
			t.Errorf("%.2f of the ideal time, %d refused, want 1.4 and 10 at most", wall, refused)
		}
	})
}

// The same for a limit of tokens that a used lane gets later.
func TestTokensThatAreLeftBoundCallsAfterReload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := pricedRig(t, testserver.Pipe, modelVendor(testserver.TokenBucket(200_000, time.Second, 40_000)), 1)
		limits := r.Transport.Limits
		r.Transport.Limits = nil
		r.Want("GET", r.Get(t.Context(), ""), http.StatusOK)
		if err := r.Transport.SetLimits(limits...); err != nil {
			t.Fatal(err)
		}
		if wall, refused := r.DrainTokens(1000); wall > 1.1 || refused > 1 {
			t.Errorf("%.2f of the ideal time, %d refused, want 1.1 and 1 at most", wall, refused)
		}
	})
}

// The same over real sockets in real time: 16 s on an idle machine.
func TestTokensThatAreLeftBoundCallsInRealTime(t *testing.T) {
	for name, limits := range map[string][]testserver.Limit{
		"tokens":              {testserver.TokenBucket(200_000, time.Second, 40_000)},
		"tokens and requests": {testserver.TokenBucket(200_000, time.Second, 40_000), testserver.TokenBucket(1000, time.Second, 100)},
		"many at once":        {testserver.TokenBucket(200_000, 10*time.Second, 200_000)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			drainInRealTime(t, limits, 500, 20)
		})
	}
}

// A slow quota of tokens spaces its calls wider than a permit may be late.
func TestSlowTokensArePacedInRealTime(t *testing.T) {
	t.Parallel()
	drainInRealTime(t, []testserver.Limit{testserver.TokenBucket(20_000, time.Second, 10_000)}, 60, 4)
}

// drainInRealTime requires in one of four times that calls take eight times as long as the ideal at
// most, and few are refused. A busy machine voids permits, and its calls overtake each other.
func drainInRealTime(t *testing.T, limits []testserver.Limit, calls, most int) {
	t.Helper()
	for range 4 {
		wall, refused := pricedRig(t, testserver.Listen, modelVendor(slices.Clone(limits)...), 1).DrainTokens(calls)
		t.Logf("%.2f of the ideal time, %d refused", wall, refused)
		if wall <= 8 && refused <= most {
			return
		}
	}
	t.Errorf("want 8 times the ideal time at most, and %d refused", most)
}

// Calls that cost the whole quota empty it repeatedly, so that its rate is hard to measure. A wrong
// rate delays a call ten seconds at most, if the quota refills in one.
func TestCallsOfAWholeQuotaLeave(t *testing.T) {
	t.Parallel()
	seeds := uint64(40)
	if testing.Short() {
		seeds = 8
	}
	for seed := range seeds {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex // guards the draws
			draws, spent := rand.New(rand.NewPCG(seed, 1)), 0
			draw := func(n int) int {
				mu.Lock()
				defer mu.Unlock()
				return draws.IntN(n)
			}
			vendor := modelVendor(testserver.TokenBucket(1000, time.Second, 1000))
			r := pricedRig(t, testserver.Pipe, vendor, 1)
			r.Transport.Limits = []throttle.Limit{harness.Named(throttle.TokenBucket(1000, time.Second, 1000), "tokens")}
			began := time.Now()
			var all sync.WaitGroup
			for range 12 {
				all.Go(func() {
					for range 12 {
						cost := []int{1, 100, 600, 1000}[draw(4)]
						mu.Lock()
						spent += cost
						mu.Unlock()
						req := r.Request(t.Context(), "")
						req.Header.Set("Tokens", strconv.Itoa(cost))
						if resp, err := r.Transport.RoundTrip(req); err == nil {
							resp.Body.Close()
						}
						time.Sleep(time.Duration(draw(100)) * time.Millisecond)
					}
				})
			}
			all.Wait()
			if took, ideal := time.Since(began).Seconds(), float64(spent)/1000; took > 20*ideal {
				t.Errorf("seed %d: %.0f s, ideal %.0f s", seed, took, ideal)
			}
		})
	}
}
