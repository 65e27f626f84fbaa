package distributed_test

import (
	"context"
	"io"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/internal/testserver"
)

// Processes that share a quota leave the rest of it together to a console, if it is reported or
// learned from refusals alone.
func TestFleetLeavesTheRestToOthers(t *testing.T) {
	for name, styles := range map[string][]testserver.Style{"reported": {testserver.XRateLimitDelta}, "bare": nil} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCompany(t, styles...)
				ctx, cancel := context.WithCancel(t.Context())
				var all sync.WaitGroup
				get := func(base http.RoundTripper, who string) {
					req, _ := http.NewRequestWithContext(ctx, http.MethodGet, c.server.URL, nil)
					req.Header.Set(testserver.DefaultIDHeader, who)
					if resp, err := base.RoundTrip(req); err == nil {
						_, _ = io.Copy(io.Discard, resp.Body)
						_ = resp.Body.Close()
					}
				}
				for range 3 {
					p := c.join()
					p.Share = 0.5
					for range 8 {
						all.Go(func() {
							for ctx.Err() == nil {
								get(p, "fleet")
							}
						})
					}
				}
				console := c.server.Transport()
				all.Go(func() {
					for ctx.Err() == nil {
						get(console, "console")
						time.Sleep(45 * time.Millisecond)
					}
				})
				time.Sleep(90 * time.Second)
				cancel()
				all.Wait()
				fleet, refused := 0, 0
				for _, a := range c.vendor.Arrivals() {
					switch {
					case a.At < 30*time.Second:
					case a.ID == "fleet" && a.Granted:
						fleet++
					case a.ID == "console" && !a.Granted:
						refused++
					}
				}
				took := float64(fleet) / (200 * 60)
				t.Logf("the fleet took %.3f of the quota, and the console was refused %d times", took, refused)
				if took > 0.52 || took < 0.2 || refused > 0 {
					t.Errorf("the fleet took %.3f of the quota, and the console was refused %d times, want 0.2 to 0.5, and 0", took, refused)
				}
			})
		})
	}
}
