package fleet_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/distributed"
	"github.com/weirgo/weir/headers"
	"github.com/weirgo/weir/internal/acceptance/harness"
	"github.com/weirgo/weir/internal/testserver"
)

// The pause of a route ends in the replica that has it if another resumes the key of the part, as
// Redis lists it. It does not end if that one resumes the lane's key, and has not met the pause.
func TestRouteIsResumedInOtherReplicas(t *testing.T) {
	for name, c := range map[string]struct {
		byPart   bool
		arrivals int // of the route, before the pause would end
	}{"part": {true, 3}, "lane": {false, 2}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				vendor := &testserver.Vendor{
					Limits: []testserver.Limit{testserver.FixedWindow(1, 50*time.Second)}, Styles: []testserver.Style{testserver.RetryAfterSeconds},
					Key: func(r *http.Request) string { return r.URL.Path },
				}
				f := harness.NewFleet(t, 2, vendor)
				a, b := f.Replicas[0], f.Replicas[1]
				a.Transport.Dialect, b.Transport.Dialect = harness.ScopedBy(headers.ScopeRoute), harness.ScopedBy(headers.ScopeRoute)
				a.Do(a.Path("/other"))
				done := make(chan struct{})
				b.Do(b.Path("/a"))
				go func() { b.Do(b.Path("/a")); close(done) }()
				time.Sleep(5 * time.Second)
				if c.byPart {
					lanes, err := distributed.Lanes(t.Context(), f.Redis.Client(t), "vendor")
					for _, l := range lanes {
						if strings.Contains(l.Key, " part ") && l.Paused > 0 {
							err = a.Transport.Resume(l.Key)
						}
					}
					if err != nil {
						t.Error(err)
					}
				} else {
					a.Resume()
				}
				time.Sleep(5 * time.Second)
				if n := len(vendor.Arrivals()) - 1; n != c.arrivals {
					t.Errorf("%d calls of the route arrived, want %d", n, c.arrivals)
				}
				<-done
			})
		})
	}
}
