package learning_test

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/internal/acceptance/harness"
	"github.com/weirgo/weir/internal/testserver"
)

// Processes that share a Store spend a reported window, or what a log gives back, as calls come, as
// one process does. A single call that looks for what a log gives back may be refused.
func TestFleetSpendsWhatIsLeftAsCallsCome(t *testing.T) {
	t.Parallel()
	const per = 10 * time.Second
	noReset := func(h http.Header, d testserver.Decision) {
		testserver.XRateLimitDelta(h, d)
		h.Del("X-RateLimit-Reset")
	}
	for name, v := range map[string]struct {
		limit testserver.Limit
		style testserver.Style
	}{
		"window":                      {testserver.FixedWindow(100, per), testserver.XRateLimitEpoch},
		"window from the first call":  {testserver.FirstUseWindow(100, per), testserver.XRateLimitDelta},
		"log, reset of the next call": {testserver.SlidingLog(100, per), testserver.Seen(testserver.XRateLimitDelta, testserver.UntilNext)},
		"log without a reset":         {testserver.SlidingLog(100, per), noReset},
	} {
		if testing.Short() && name != "window" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				vendor := &testserver.Vendor{Limits: []testserver.Limit{v.limit}, Styles: []testserver.Style{v.style}, Service: 5 * time.Millisecond, Spread: 2 * time.Millisecond}
				const calls, workers, few = 350, 32, 2
				ctx, cancel := context.WithTimeout(t.Context(), 10*per)
				defer cancel()
				var made atomic.Int64
				var working sync.WaitGroup
				began, ideal := time.Now(), vendor.Fastest(calls)
				for _, r := range harness.NewFleet(t, 2, vendor).Replicas {
					for range workers {
						working.Go(func() {
							for made.Add(1) <= calls {
								r.Want("GET", r.Get(ctx, "a"), http.StatusOK)
							}
						})
					}
				}
				working.Wait()
				refused := vendor.Arrivals().Count(http.StatusTooManyRequests)
				if took := time.Since(began); refused > few || took > ideal*105/100 {
					t.Errorf("%d calls took %v, of which %d were refused, want %v and %d at most", calls, took, refused, ideal, few)
				}
			})
		})
	}
}

// Processes that share a lane find the limit of a vendor whose answers take seconds.
func TestFleetUsesAVendorOfSlowAnswers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const rate = 10
		warmup, whole := 2*time.Minute, 4*time.Minute
		if testing.Short() {
			whole = warmup + 20*time.Second
		}
		vendor := &testserver.Vendor{
			Limits: []testserver.Limit{testserver.TokenBucket(rate, time.Second, 20)}, Service: 5 * time.Second, Spread: 2 * time.Second,
			Styles: []testserver.Style{testserver.RetryAfterSeconds},
		}
		ctx, cancel := context.WithCancel(t.Context())
		var workers sync.WaitGroup
		for _, r := range harness.NewFleet(t, 2, vendor).Replicas {
			for range 50 {
				workers.Go(func() {
					for ctx.Err() == nil {
						if r.Get(ctx, "").Status != http.StatusOK {
							time.Sleep(100 * time.Millisecond)
						}
					}
				})
			}
		}
		time.Sleep(whole)
		cancel()
		workers.Wait()
		served := len(vendor.Arrivals().Granted().Filter(func(a testserver.Arrival) bool { return a.At > warmup && a.At < whole }))
		if due := int(rate * (whole - warmup).Seconds()); served < due*9/10 {
			t.Errorf("%d calls in %v, want nine tenths of %d at least", served, whole-warmup, due)
		}
	})
}

// Eight processes use all of a short window, and are hardly ever refused.
func TestFleetUsesAShortWindow(t *testing.T) {
	t.Parallel()
	processes := 8
	if testing.Short() {
		processes = 2 // eight take 18 s under the race detector
	}
	synctest.Test(t, func(t *testing.T) {
		vendor := shortWindow(50 * time.Millisecond)
		useShortWindow(t, vendor, harness.NewFleet(t, processes, vendor).Replicas, 400/processes, 12)
	})
}
