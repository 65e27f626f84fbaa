package harness

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/distributed"
	"github.com/weirgo/weir/internal/redispipe"
	"github.com/weirgo/weir/internal/testserver"
	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// RoundTrip is the round trip to the Redis of a Fleet.
const RoundTrip = 2 * time.Millisecond

// A Fleet is replicas in front of one vendor.
type Fleet struct {
	Redis    *redispipe.Server
	Stores   []*distributed.Store
	Replicas []*Rig
}

// NewFleet returns n replicas in front of a vendor.
func NewFleet(t *testing.T, n int, vendor *testserver.Vendor, limits ...throttle.Limit) *Fleet {
	t.Helper()
	f := &Fleet{Redis: redispipe.Start(t, RoundTrip)}
	for range n {
		store := distributed.New(f.Redis.Client(t), "vendor")
		store.Logger = slog.New(slog.DiscardHandler)
		Meet(t, store)
		f.Stores = append(f.Stores, store)
		t.Cleanup(func() { _ = store.Close() })
	}
	for _, store := range f.Stores {
		f.Replicas = append(f.Replicas, PipeRig(t, vendor, &weir.Transport{Store: store, Limits: limits}))
	}
	return f
}

// Meet opens a store's connections, which stay open, so that later calls take one round trip.
func Meet(t *testing.T, store *distributed.Store) {
	t.Helper()
	limiter, err := store.Limiter("another lane", throttle.TokenBucket(1, time.Second, 100))
	if err != nil {
		t.Fatal(err)
	}
	if err := shaping.NewQueue(limiter).Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// Callers sends n GETs through each replica.
func (f *Fleet) Callers(ctx context.Context, n int) (all []*Callers) {
	for _, r := range f.Replicas {
		all = append(all, r.Callers(ctx, n))
	}
	return all
}

// WantAll fails the test unless all answers are 200.
func (f *Fleet) WantAll(all []*Callers) {
	for i, c := range all {
		for _, got := range c.Wait() {
			f.Replicas[i].Helper()
			f.Replicas[i].Want("GET", got, 200)
		}
	}
}
