package learning_test

import (
	"context"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/internal/acceptance/harness"
	"github.com/weirgo/weir/internal/testserver"
)

// xero is a vendor that reports what is left and no reset, and names the limit that refused:
// https://developer.xero.com/documentation/guides/oauth2/limits/.
func xero() *testserver.Vendor {
	return &testserver.Vendor{
		Limits:  []testserver.Limit{testserver.SlidingLog(60, time.Minute), testserver.Concurrency(5), testserver.FixedWindow(5000, 24*time.Hour)},
		Service: 50 * time.Millisecond,
		Styles: []testserver.Style{func(h http.Header, d testserver.Decision) {
			h.Set("X-MinLimit-Remaining", strconv.Itoa(d.Standings[0].Remaining))
			h.Set("X-DayLimit-Remaining", strconv.Itoa(d.Standings[2].Remaining))
			switch {
			case d.Granted:
			case d.Standings[0].Wait > 0:
				h.Set("X-Rate-Limit-Problem", "minute")
				testserver.RetryAfterSeconds(h, d)
			default:
				h.Set("X-Rate-Limit-Problem", "concurrent")
			}
		}},
	}
}

// The processes of a fleet go on calling a vendor whose refusals make lanes of their own, although
// the store grants a permit only a round trip after such a lane has let the call depart. The first
// permits are back after a minute.
func TestAFleetIsNotStuckInALaneOfARefusal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		whole := 3 * time.Minute
		if testing.Short() {
			whole = 100 * time.Second
		}
		vendor := xero()
		ctx, cancel := context.WithTimeout(t.Context(), whole)
		defer cancel()
		var working sync.WaitGroup
		for _, r := range harness.NewFleet(t, 2, vendor).Replicas {
			r.Server.URL = "http://api.xero.com"
			for range 8 {
				working.Go(func() {
					for ctx.Err() == nil {
						if r.Get(ctx, "a").Status != http.StatusOK {
							time.Sleep(100 * time.Millisecond)
						}
					}
				})
			}
		}
		working.Wait()
		served, longest, last := 0, time.Duration(0), time.Duration(0)
		for _, a := range vendor.Arrivals() {
			if a.Granted && a.At < whole {
				served++
				longest, last = max(longest, a.At-last), a.At
			}
		}
		t.Logf("%d calls were served in %v, the longest gap is %v", served, whole, longest)
		if longest = max(longest, whole-last); longest > 80*time.Second || served < 70 {
			t.Errorf("%d calls were served in %v with a gap of %v, want 70 at least and 80 s at most", served, whole, longest)
		}
	})
}
