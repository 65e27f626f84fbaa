package weir_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/distributed"
	"github.com/weirgo/weir/internal/redispipe"
	"github.com/weirgo/weir/internal/testserver"
	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// Several transports, each as of its own process, share limits through a remote
// store.

const roundTrip = 2 * time.Millisecond

// A fleet is replicas in front of one vendor.
type fleet struct {
	redis    *redispipe.Server
	stores   []*distributed.Store
	replicas []*rig
}

func newFleet(t *testing.T, n int, vendor *testserver.Vendor, limits ...throttle.Limit) *fleet {
	t.Helper()
	f := &fleet{redis: redispipe.Start(t, roundTrip)}
	for range n {
		store := distributed.New(f.redis.Client(t), "vendor")
		store.Logger = slog.New(slog.DiscardHandler)
		meet(t, store)
		f.stores = append(f.stores, store)
		t.Cleanup(func() { store.Close() })
	}
	for _, store := range f.stores {
		f.replicas = append(f.replicas, pipeRig(t, vendor, &weir.Transport{Store: store, Limits: limits}))
	}
	return f
}

// meet makes a store's connections, which stay open, so that what is asked later is
// a round trip away.
func meet(t *testing.T, store *distributed.Store) {
	t.Helper()
	limiter, err := store.Limiter("another lane", throttle.TokenBucket(1, time.Second, 100))
	if err != nil {
		t.Fatal(err)
	}
	if err := shaping.NewQueue(limiter).Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// callers sends n GETs through each replica.
func (f *fleet) callers(ctx context.Context, n int) (all []*callers) {
	for _, r := range f.replicas {
		all = append(all, r.callers(ctx, n))
	}
	return all
}

// wantAll fails the test unless everybody has a 200.
func (f *fleet) wantAll(all []*callers) {
	for i, c := range all {
		for _, got := range c.wait() {
			f.replicas[i].Helper()
			f.replicas[i].want("GET", got, 200)
		}
	}
}

func TestFleetSharesOneLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		vendor := &testserver.Vendor{}
		f := newFleet(t, 4, vendor, throttle.TokenBucket(50, time.Second, 2))
		f.wantAll(f.callers(t.Context(), 25))
		arrivals := vendor.Arrivals()
		if got := arrivals.BurstAt(50, time.Second); got > 2+2+1 { // the tolerance, and the spread of the way
			t.Errorf("burst of four replicas = %d, want 5 at most", got)
		}
		if span := arrivals.Span(); len(arrivals) != 100 || span > 2200*time.Millisecond {
			t.Errorf("%d arrivals in %v, want 100 in little more than 1.96s", len(arrivals), span)
		}
	})
}

// A refusal seen by one replica pauses all within two round trips.
func TestRefusalPausesFleet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		vendor := &testserver.Vendor{Faults: []testserver.Fault{answered(10, testserver.Fault{Header: hints("2")})}}
		f := newFleet(t, 3, vendor, throttle.TokenBucket(50, time.Second, 1))
		f.wantAll(f.callers(t.Context(), 10))
		arrivals := vendor.Arrivals()
		refused := arrivals.Filter(func(a testserver.Arrival) bool { return a.Status == 429 })
		if len(refused) != 1 || len(arrivals) != 31 {
			t.Fatalf("refusals, arrivals = %d, %d, want 1, 31", len(refused), len(arrivals))
		}
		at := refused[0].At
		late := arrivals.Filter(func(a testserver.Arrival) bool { return a.At > at+2*roundTrip && a.At < at+2*time.Second })
		if len(late) > 0 {
			t.Errorf("arrivals in the pause = %v, want none from %v to %v", instants(late), at+2*roundTrip, at+2*time.Second)
		}
		after := arrivals.Filter(func(a testserver.Arrival) bool { return a.At >= at+2*time.Second })
		if got := after.BurstAt(50, time.Second); got > 1+2+1 {
			t.Errorf("burst after the pause = %d, want 4 at most", got)
		}
	})
}

func TestSilentStoreHoldsNobodyBeyondContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 1, &testserver.Vendor{}, every(time.Second)...)
		f.redis.Break(redispipe.Silent)
		r := f.replicas[0]
		// The share of one replica of a hundred lets the first go once Redis has not
		// answered in time, and the next 200 s later.
		if got := r.get(t.Context(), "first"); got.status != 200 || got.at != distributed.DefaultDeadline {
			t.Errorf("GET = %d, %v at %v, want 200 at 50ms", got.status, got.err, got.at)
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if got := r.get(ctx, "cancelled"); !errors.Is(got.err, context.Canceled) || got.at != 1050*time.Millisecond {
			t.Errorf("GET = %d, %v at %v, want canceled at 1.05s", got.status, got.err, got.at)
		}
		if got := r.get(weir.WithMaxWait(t.Context(), time.Second), "patient"); !errors.Is(got.err, shaping.ErrDeadline) || got.at != 2050*time.Millisecond {
			t.Errorf("GET = %d, %v at %v, want ErrDeadline at 2.05s", got.status, got.err, got.at)
		}
	})
}

func TestFleetGoesOnWhenStoreIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		vendor := &testserver.Vendor{}
		f := newFleet(t, 2, vendor, throttle.TokenBucket(50, time.Second, 1))
		f.redis.Break(redispipe.Loading)
		all := f.callers(t.Context(), 20)
		time.Sleep(time.Second)
		if got := len(vendor.Arrivals()); got != 2 {
			t.Errorf("arrivals without a store = %d, want the first of each replica's share", got)
		}
		f.redis.Break(redispipe.Healthy)
		f.wantAll(all)
		if got := vendor.Arrivals().BurstAt(50, time.Second); got > 1+2+1 {
			t.Errorf("burst when the store is back = %d, want 4 at most", got)
		}
	})
}

func TestFleetRefusesOversizedCost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 1, &testserver.Vendor{}, throttle.TokenBucket(10, time.Second, 5))
		got := f.replicas[0].get(weir.WithCost(t.Context(), 6), "a")
		if !errors.Is(got.err, throttle.ErrExceedsBurst) || got.at != 0 {
			t.Errorf("GET = %d, %v at %v, want ErrExceedsBurst at once", got.status, got.err, got.at)
		}
		f.replicas[0].want("GET", f.replicas[0].get(weir.WithCost(t.Context(), 5), "b"), 200)
	})
}

func TestCloseWithStoreCallUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 2, &testserver.Vendor{}, every(time.Second)...)
		f.redis.Break(redispipe.Silent)
		all := f.callers(t.Context(), 3)
		for _, r := range f.replicas {
			r.transport.Close()
		}
		for _, c := range all {
			for _, got := range c.wait() {
				wantClosed(t, "GET", got, 0)
			}
		}
	})
}

// One replica's limits, changed, are everybody's.
func TestSetLimitsReachesFleet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		vendor := &testserver.Vendor{}
		f := newFleet(t, 2, vendor, every(time.Hour)...)
		all := f.callers(t.Context(), 5)
		time.Sleep(time.Second)
		for _, r := range f.replicas {
			if err := r.transport.SetLimits(throttle.TokenBucket(10, time.Second, 1)); err != nil {
				t.Fatal(err)
			}
		}
		f.wantAll(all)
		// The claim of one call an hour is forgotten after 5.5 s, the replicas ask
		// each second, and ten calls at 10/s take 0.9 s.
		if span, most := vendor.Arrivals().Span(), time.Second+5500*time.Millisecond+time.Second+900*time.Millisecond; span > most {
			t.Errorf("ten calls, whose limit was told after a second, took %v, want at most %v", span, most)
		}
	})
}
