package distributed_test

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/distributed"
	"github.com/weirgo/weir/internal/redistest"
	"github.com/weirgo/weir/throttle"
)

// An operator sees the lanes of one namespace only, on a single node and in a Cluster.
func TestLanesAreSeen(t *testing.T) {
	single := redistest.Start(t)
	cluster := redistest.StartCluster(t, 3)
	for name, p := range map[string]place{"single": {Addrs: []string{single.Addr()}}, "cluster": {Addrs: cluster.Addrs(), Cluster: true}} {
		t.Run(name, func(t *testing.T) {
			rdb := p.client()
			defer rdb.Close()
			const period = 5 * time.Second // in which Redis counts callers by its clock, which is this machine's
			if left := period - time.Duration(time.Now().UnixNano())%period; left < period/2 {
				time.Sleep(left)
			}
			use(t, rdb, "company", "a.test", 3, 1)
			use(t, rdb, "company", "b.test GET /users/{id}", 1, 0)
			use(t, rdb, "other", "c.test", 1, 0)
			lanes, err := distributed.Lanes(t.Context(), rdb, "company")
			if err != nil || len(lanes) != 2 {
				t.Fatalf("Lanes = %+v, %v, want two", lanes, err)
			}
			a, b := lanes[0], lanes[1]
			want := []throttle.Limit{throttle.TokenBucket(10, time.Second, 5)}
			if a.Key != "a.test" || b.Key != "b.test GET /users/{id}" || a.Replicas != 3 || b.Replicas != 1 || a.Limits[0].Permits != want[0].Permits || a.Limits[0].Burst != 5 {
				t.Errorf("Lanes = %+v, want three replicas at a.test and one at the route, with %v", lanes, want)
			}
			if a.Paused < 9*time.Minute || a.Paused > 10*time.Minute || b.Paused != 0 {
				t.Errorf("Lanes = %+v, want a.test paused for ten minutes, and the other not", lanes)
			}
		})
	}
}

// use takes one permit of a lane at each replica, and the first replica pauses the lane.
func use(t *testing.T, rdb redis.UniversalClient, namespace, key string, replicas, pauses int) {
	t.Helper()
	for range replicas {
		store := distributed.New(rdb, namespace)
		store.Logger = slog.New(slog.DiscardHandler)
		store.FirstDeadline, store.Deadline, store.MaxDeadline = patience, patience, patience
		transport := &weir.Transport{
			Base: new(closing), Store: store, Limits: []throttle.Limit{throttle.TokenBucket(10, time.Second, 5)}, Logger: store.Logger, MaxPause: time.Millisecond,
			Key: func(*http.Request) string { return key },
		}
		if pauses == 0 {
			transport.Base.(*closing).calls.Add(1) // only the first call is refused
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://vendor.test/", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if resp, err := transport.RoundTrip(req); err == nil {
			resp.Body.Close()
		}
		cancel()
		transport.Close()
		store.Close()
	}
}

// Invalid entries are reported, and the other lanes are returned.
func TestLanesReportInvalidEntries(t *testing.T) {
	server := redistest.Start(t)
	rdb := place{Addrs: []string{server.Addr()}}.client()
	defer rdb.Close()
	use(t, rdb, "company", "good.test", 1, 0)
	rdb.HSet(t.Context(), "weir:1:{company/bad.test}", "lane", "nonsense")
	rdb.HSet(t.Context(), "weir:1:{company/empty.test}", "x", "y")
	rdb.Set(t.Context(), "weir:1:{company/text.test}", "x", time.Minute)
	lanes, err := distributed.Lanes(t.Context(), rdb, "company")
	keys := []string{}
	for _, l := range lanes {
		keys = append(keys, l.Key)
	}
	if !slices.Equal(keys, []string{"good.test"}) {
		t.Errorf("Lanes = %q, want good.test", keys)
	}
	for _, want := range []string{`lane "bad.test": `, `lane "empty.test": `, `lane "text.test": WRONGTYPE`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Lanes = %v, want %q in it", err, want)
		}
	}
}
