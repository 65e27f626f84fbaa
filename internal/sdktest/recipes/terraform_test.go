package recipes

import (
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/weirtest"
)

// Terraform reads ten at a time, and uses the share of the quota in its configuration.
func TestTerraformTakesItsShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var vendor *weirtest.Vendor
		began := time.Now()
		reset := began.Add(time.Minute)
		var mu sync.Mutex
		left := 40
		open := func(share float64) http.RoundTripper {
			transport := &weir.Transport{Share: share, WaitForReset: true}
			vendor = before(t, transport, func(w http.ResponseWriter, _ *http.Request) {
				mu.Lock()
				defer mu.Unlock()
				if time.Now().After(reset) {
					left, reset = 40, reset.Add(time.Minute)
				}
				left--
				w.Header().Set("X-RateLimit-Limit", "40")
				w.Header().Set("X-RateLimit-Remaining", strconv.Itoa(left))
				w.Header().Set("X-RateLimit-Reset", strconv.FormatInt(reset.Unix(), 10))
				fmt.Fprint(w, "{}")
			})
			return transport
		}
		read := configured(&petProvider{open}, 0.5)
		var reads sync.WaitGroup
		for n := range 10 {
			reads.Go(func() {
				for k := range 3 {
					if err := read(t.Context(), fmt.Sprint(n, "-", k)); err != nil {
						t.Error(err)
					}
				}
			})
		}
		reads.Wait()
		first := 0
		for _, a := range vendor.Arrivals() {
			if a.At < time.Minute {
				first++
			}
		}
		if first == 0 || first > 20 {
			t.Errorf("%d of 30 reads came in the first minute, want 20 at most", first)
		}
	})
}
