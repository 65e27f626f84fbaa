package learning_test

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/distributed"
	"github.com/weirgo/weir/internal/acceptance/harness"
	"github.com/weirgo/weir/internal/redistest"
	"github.com/weirgo/weir/internal/testserver"
)

// Three processes that share a Store take at most the share together, and the console is not
// refused. They take less of reported quotas than one process does, because they wait for each
// other.
func TestFleetLeavesTheRestToOthers(t *testing.T) {
	t.Parallel()
	for i, b := range besides() {
		if i != 2 && testing.Short() {
			continue // they run the same code
		}
		if b.least = min(b.least, 0.6); testing.Short() {
			b.runs = min(b.runs, b.warmup+30*time.Second)
		}
		t.Run(b.name, func(t *testing.T) {
			for seed := range besideRuns(1) {
				synctest.Test(t, func(t *testing.T) {
					vendor := &testserver.Vendor{Limits: []testserver.Limit{b.limit}, Styles: b.styles, Service: 20 * time.Millisecond, Spread: 10 * time.Millisecond}
					f := harness.NewFleet(t, 3, vendor)
					for _, r := range f.Replicas {
						r.Transport.Share = 0.5
					}
					b.leaves(t, seed, f.Replicas...)
				})
			}
		})
	}
}

// Two processes over real sockets and a real Redis.
func TestFleetLeavesTheRestToOthersOverSockets(t *testing.T) {
	b := beside{limit: testserver.FixedWindow(200, 2*time.Second), rate: 100, warmup: 2 * time.Second, runs: 8 * time.Second}
	vendor := &testserver.Vendor{Limits: []testserver.Limit{b.limit}, Styles: []testserver.Style{testserver.XRateLimitDelta}, Service: 5 * time.Millisecond}
	addr := redistest.Start(t).Addr()
	var replicas []*harness.Rig
	for range 2 {
		client := redis.NewClient(&redis.Options{Addr: addr})
		t.Cleanup(func() { client.Close() })
		store := distributed.New(client, "share")
		store.Logger = slog.New(slog.DiscardHandler)
		t.Cleanup(func() { store.Close() })
		replicas = append(replicas, harness.SocketRig(t, vendor, &weir.Transport{Share: 0.5, Store: store}))
	}
	lane, console, refused := b.run(replicas...)
	t.Logf("the lane took %d calls of 600, the console %d", lane, console)
	if windows := 300 + 100; lane > windows || lane < 30 || refused > 0 { // the record may begin in a window, and a busy machine voids permits
		t.Errorf("the lane took %d calls of 600, and the console was refused %d times; want half, and 0", lane, refused)
	}
}
