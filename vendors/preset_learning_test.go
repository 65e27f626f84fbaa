package vendors_test

import (
	"log/slog"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/internal/testserver"
	"github.com/weirgo/weir/vendors"
)

// A number that is twice too high costs little: the lane learns what the vendor allows, and
// then calls take 1.05 times as long as at best.
func TestPresetsLearnThatANumberIsTooHigh(t *testing.T) {
	const measured = time.Minute
	for _, c := range []struct {
		preset   vendors.Preset
		allows   testserver.Limit
		learning time.Duration // a window of 10 s is learned from some thirty
		styles   []testserver.Style
	}{
		{vendors.Discord(), testserver.TokenBucket(25, time.Second, 25), time.Minute, []testserver.Style{testserver.Discord, testserver.RetryAfterSeconds}},
		{vendors.Stripe(), testserver.TokenBucket(12, time.Second, 12), time.Minute, nil},
		{vendors.GitLab(), testserver.FixedWindow(1000, time.Minute), 20 * time.Minute, []testserver.Style{testserver.RateLimitLegacy}},
		{vendors.Notion(), testserver.TokenBucket(3, 2*time.Second, 3), 2 * time.Minute, []testserver.Style{testserver.RetryAfterSeconds}},
		{vendors.Airtable(), testserver.FixedWindow(5, 2*time.Second), 2 * time.Minute, nil},
		{vendors.Shopify(), testserver.TokenBucket(1, time.Second, 20), 2 * time.Minute, []testserver.Style{testserver.Shopify, testserver.RetryAfterSeconds}},
		{vendors.HubSpot(), testserver.FixedWindow(50, 10*time.Second), 5 * time.Minute, []testserver.Style{
			testserver.Fields{Limit: "X-Hubspot-Ratelimit-Max", Remaining: "X-Hubspot-Ratelimit-Remaining"}.Write,
			func(h http.Header, _ testserver.Decision) {
				h.Set("X-Hubspot-Ratelimit-Interval-Milliseconds", "10000")
			},
		}},
	} {
		if testing.Short() && c.learning > 2*time.Minute {
			continue // half of the whole time
		}
		synctest.Test(t, func(t *testing.T) {
			vendor := &testserver.Vendor{Limits: []testserver.Limit{c.allows}, Styles: c.styles, Service: 20 * time.Millisecond}
			server := testserver.Run(t, testserver.Pipe, vendor)
			tr := c.preset.Transport()
			tr.Base, tr.Logger = server.Transport(), slog.New(slog.DiscardHandler)
			defer tr.Close()
			began := time.Now()
			var line sync.WaitGroup
			for range 16 {
				line.Go(func() {
					for time.Since(began) < c.learning+measured {
						req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/things", nil)
						req.Header.Set("Authorization", "token")
						resp, err := tr.RoundTrip(req)
						if err != nil {
							t.Error(err)
							return
						}
						resp.Body.Close()
					}
				})
			}
			line.Wait()
			late := vendor.Arrivals().Filter(func(a testserver.Arrival) bool { return c.learning <= a.At && a.At < c.learning+measured })
			served, refused := len(late.Granted()), late.Count(http.StatusTooManyRequests)
			best := float64(c.allows.Permits) * measured.Seconds() / c.allows.Per.Seconds()
			t.Logf("%s at half of %v: %d served and %d refused in %v, %.3f times as long as at best", c.preset.Name, c.preset.Numbers[0], served, refused, measured, best/float64(served))
			if float64(served)*1.05 < best {
				t.Errorf("%s: %d served in %v, want %.0f at least", c.preset.Name, served, measured, best/1.05)
			}
		})
	}
}
