package fleet_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/distributed"
	"github.com/weirgo/weir/headers"
	"github.com/weirgo/weir/internal/acceptance/harness"
	"github.com/weirgo/weir/internal/redistest"
	"github.com/weirgo/weir/internal/testserver"
)

// bucketNamer names the bucket of each answer of a vendor, as GitHub does: one for each path.
type bucketNamer struct{ http.RoundTripper }

func (n bucketNamer) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := n.RoundTripper.RoundTrip(req)
	if err == nil {
		resp.Header.Set("X-Ratelimit-Resource", strings.Trim(req.URL.Path, "/"))
	}
	return resp, err
}

// flood sends calls to two routes through all replicas, from some workers each, until ctx ends.
func flood(ctx context.Context, replicas []*harness.Rig, workers int) {
	var calling sync.WaitGroup
	for _, r := range replicas {
		for i := range workers {
			calling.Go(func() {
				time.Sleep(time.Duration(i) * 7 * time.Millisecond)
				for ctx.Err() == nil {
					req := r.Request(ctx, "")
					req.URL.Path = []string{"/core", "/search"}[i%2]
					if resp, err := r.Transport.RoundTrip(req); err == nil {
						_ = resp.Body.Close()
					} else {
						time.Sleep(100 * time.Millisecond) // the rest is too short for its turn
					}
				}
			})
		}
	}
	calling.Wait()
}

// Eight replicas share what a vendor counts by route, or in buckets that it names. With these in each
// replica alone, the rows had 137, 197, 120, 686 and 144 refusals.
func TestReplicasShareBucketsAndRoutes(t *testing.T) {
	byRoute := harness.ScopedBy(headers.ScopeRoute)
	for name, c := range map[string]struct {
		limit   testserver.Limit // of each of two routes
		style   testserver.Style
		dialect *headers.Dialect // nil: answers name buckets
		refused int              // at most, in 60 s
		served  float64          // at least, of the rate, in the last 30 s
	}{
		"bucket, window":             {testserver.FixedWindow(100, 10*time.Second), testserver.XRateLimitEpoch, nil, 8, 0.95},
		"bucket, rate":               {testserver.TokenBucket(20, time.Second, 20), testserver.XRateLimitDelta, nil, 8, 0.95},
		"bucket, slow":               {testserver.TokenBucket(3, time.Second, 5), testserver.XRateLimitDelta, nil, 40, 0.7},
		"route, nothing":             {testserver.TokenBucket(20, time.Second, 20), testserver.Styles(), byRoute, 150, 0.9},
		"route, window":              {testserver.FixedWindow(100, 10*time.Second), testserver.XRateLimitEpoch, byRoute, 8, 0.95},
		"route, window, Retry-After": {testserver.FixedWindow(100, 10*time.Second), testserver.RetryAfterSeconds, byRoute, 70, 0.9},
	} {
		if testing.Short() && c.limit.Permits > 3 { // the others have many calls
			continue
		}
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				vendor := &testserver.Vendor{
					Limits: []testserver.Limit{c.limit}, Styles: []testserver.Style{c.style},
					Key:     func(r *http.Request) string { return r.URL.Path },
					Service: 50 * time.Millisecond, Spread: 50 * time.Millisecond,
				}
				f := harness.NewFleet(t, 8, vendor)
				for _, r := range f.Replicas {
					if r.Transport.Dialect = c.dialect; c.dialect == nil {
						r.Transport.Base = bucketNamer{r.Transport.Base}
					}
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				flood(ctx, f.Replicas, 4)
				all := vendor.Arrivals()
				late := 0
				for _, a := range all.Granted() {
					if a.At > 30*time.Second {
						late++
					}
				}
				served := float64(late) / 30 / (2 * float64(c.limit.Permits) / c.limit.Per.Seconds())
				refused := len(all) - len(all.Granted())
				if t.Logf("%d refused, %.2f of the rate", refused, served); served < c.served || refused > c.refused {
					t.Errorf("%d are refused and %.2f of the rate served in the last half, want %d at most and %.2f", refused, served, c.refused, c.served)
				}
			})
		})
	}
}

// The same over sockets, in real time.
func TestReplicasShareBucketsOverSockets(t *testing.T) {
	vendor := &testserver.Vendor{
		Limits: []testserver.Limit{testserver.TokenBucket(20, time.Second, 20)}, Styles: []testserver.Style{testserver.XRateLimitDelta},
		Key: func(r *http.Request) string { return r.URL.Path }, Service: 20 * time.Millisecond,
	}
	server := redistest.Start(t)
	var replicas []*harness.Rig
	for range 4 {
		client := redis.NewClient(&redis.Options{Addr: server.Addr()})
		store := distributed.New(client, "vendor")
		t.Cleanup(func() { _, _ = store.Close(), client.Close() })
		r := harness.SocketRig(t, vendor, &weir.Transport{Store: store})
		if r.Transport.Base = (bucketNamer{r.Transport.Base}); len(replicas) > 0 {
			r.Server = replicas[0].Server // the lane is the host's
		}
		replicas = append(replicas, r)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Second)
	defer cancel()
	flood(ctx, replicas, 8)
	all := vendor.Arrivals()
	served := len(all.Granted())
	refused := len(all) - served
	if t.Logf("%d served, %d refused", served, refused); served < 200 || refused > 8 {
		t.Errorf("%d are served and %d refused, want 200 of 340 at least and 8 at most", served, refused)
	}
	keys, err := server.Do("KEYS", "*")
	if text := fmt.Sprint(keys); err != nil || strings.Count(text, "part") != 2 || strings.Contains(text, "core") {
		t.Errorf("keys in Redis: %s, %v, want those of two parts, without a path or a bucket's name", text, err)
	}
}

// Parts of a lane that are empty make room for others, and cost no call of Redis.
func TestSharedPartsMakeRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		vendor := &testserver.Vendor{
			Limits: []testserver.Limit{testserver.FixedWindow(1, 10*time.Second)}, Styles: []testserver.Style{testserver.RetryAfterSeconds},
			Key: func(r *http.Request) string { return r.URL.Path },
		}
		f := harness.NewFleet(t, 2, vendor)
		get := func(r *harness.Rig, path string) {
			req := r.Request(t.Context(), "")
			req.URL.Path = path
			r.Want(path, r.Do(req), http.StatusOK)
		}
		for _, r := range f.Replicas {
			r.Transport.Dialect, r.Transport.MaxLanes = harness.ScopedBy(headers.ScopeRoute), 4
		}
		routes := 12
		if testing.Short() {
			routes = 6 // more than there is room for
		}
		for route := range routes {
			name := string(rune('a' + route))
			for range 3 {
				for _, r := range f.Replicas {
					get(r, "/"+name)
				}
			}
			at := time.Now()
			get(f.Replicas[0], "/other/"+name)
			if waited := time.Since(at); waited > time.Second {
				t.Errorf("route %d: another one waits %v, want no wait", route, waited)
			}
			time.Sleep(16 * time.Minute)
		}
		calls := f.Redis.Calls()
		if time.Sleep(10 * time.Minute); f.Redis.Calls() > calls {
			t.Errorf("%d calls of Redis in ten idle minutes, want none", f.Redis.Calls()-calls)
		}
	})
}
