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
