package fleet_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/backoff"
	"github.com/weirgo/weir/distributed"
	"github.com/weirgo/weir/internal/acceptance/harness"
	"github.com/weirgo/weir/internal/redispipe"
	"github.com/weirgo/weir/internal/testserver"
	"github.com/weirgo/weir/throttle"
)

// newSquadron returns a fleet whose replicas share calls in flight.
func newSquadron(t *testing.T, n, most int, vendor *testserver.Vendor, limits ...throttle.Limit) *harness.Fleet {
	t.Helper()
	f := harness.NewFleet(t, n, vendor, limits...)
	for _, r := range f.Replicas {
		r.Transport.InFlight.Shared = most
	}
	return f
}

// A vendor that counts the calls in flight of all replicas refuses none, and is kept busy.
func TestSharedInFlightBoundsAFleet(t *testing.T) {
	for name, limits := range map[string][]throttle.Limit{
		"alone": nil, "with a limit": {throttle.TokenBucket(100, time.Second, 10)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				vendor := &testserver.Vendor{Limits: []testserver.Limit{testserver.Concurrency(4)}, Service: 100 * time.Millisecond}
				f := newSquadron(t, 3, 4, vendor, limits...)
				f.Replicas[0].Transport.InFlight.Max = 3
				f.WantAll(f.Callers(t.Context(), 20))
				arrivals := vendor.Arrivals()
				if n := len(arrivals.Granted()); n != 60 || len(arrivals) != 60 {
					t.Errorf("%d of %d arrivals were served, want 60 of 60", n, len(arrivals))
				}
				// 60 calls of 100 ms, 4 at a time.
				if took := arrivals.Span(); took < 1400*time.Millisecond || took > 2*time.Second {
					t.Errorf("they took %v, want 1.5s", took)
				}
			})
		})
	}
}

// Callers held by the calls in flight of others spend no permit.
func TestFullFleetSpendsNoPermits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		vendor := &testserver.Vendor{Service: 3 * time.Second}
		f := newSquadron(t, 2, 1, vendor, throttle.TokenBucket(1, time.Minute, 2))
		first := f.Replicas[0].Callers(t.Context(), 1)
		second := f.Replicas[1].Callers(t.Context(), 1)
		f.Replicas[0].Want("first", first.Wait()[0], 200)
		f.Replicas[1].Want("second", second.Wait()[0], 200)
		// A wasted permit would delay the second call by a minute.
		if arrivals := vendor.Arrivals(); arrivals.Span() < 3*time.Second || arrivals.Span() > 4*time.Second {
			t.Errorf("the second arrived %v after the first, want 3s", arrivals.Span())
		}
	})
}

// However a request ends, another replica gets its slot, and no more than that.
func TestSlotOfARequestIsAnothersHoweverItEnds(t *testing.T) {
	for name, ending := range endings {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newSquadron(t, 2, 1, &testserver.Vendor{})
				first, second := f.Replicas[0], f.Replicas[1]
				ending.end(first)
				began := time.Now()
				body := second.Open(t.Context(), "b").Body
				defer body.Close()
				if waited := time.Since(began); waited > 50*time.Millisecond {
					t.Errorf("the other replica waited %v for the slot", waited)
				}
				third, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				if got := first.Get(third, "c"); !ending.panics && got.Err == nil {
					t.Error("two are in flight, want one at most")
				}
			})
		})
	}
}

// Over a real connection, the slot of a body that is never closed goes to another replica.
func TestSlotOfADroppedBodyIsAnothers(t *testing.T) {
	redis, vendor := redispipe.Start(t, 0), &testserver.Vendor{}
	join := func() *harness.Rig {
		store := distributed.New(redis.Client(t), "vendor")
		store.Logger = slog.New(slog.DiscardHandler)
		t.Cleanup(func() { store.Close() })
		return harness.SocketRig(t, vendor, &weir.Transport{Store: store, InFlight: weir.InFlight{Shared: 1}})
	}
	first, second := join(), join()
	first.Open(t.Context(), "dropped")
	second.WantServedAfterCollections()
}

// A store that cannot bound calls in flight across processes is an error, not a silent bound.
func TestSharedInFlightNeedsAStoreThatCan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t, &testserver.Vendor{}, &weir.Transport{InFlight: weir.InFlight{Shared: 3}})
		if got := r.Get(t.Context(), "a"); got.Err == nil || !strings.Contains(got.Err.Error(), "InFlight.Shared is 3") {
			t.Errorf("GET = %v, want an error that names the field", got.Err)
		}
	})
}

func TestSharedInFlightRefusesUnderFailClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		redis := redispipe.Start(t, harness.RoundTrip)
		store := distributed.New(redis.Client(t), "vendor")
		store.OnLoss, store.Logger = distributed.FailClosed, slog.New(slog.DiscardHandler)
		harness.Meet(t, store)
		r := harness.PipeRig(t, &testserver.Vendor{}, &weir.Transport{Store: store, InFlight: weir.InFlight{Shared: 1}, Retry: &backoff.Policy{Attempts: 1}})
		t.Cleanup(func() { store.Close() })
		redis.Break(redispipe.Silent)
		if got := r.Get(t.Context(), "a"); !errors.Is(got.Err, distributed.ErrUnavailable) || got.At > time.Second {
			t.Errorf("GET = %v at %v, want ErrUnavailable within a second", got.Err, got.At)
		}
	})
}

func TestSnapshotShowsTheFlightsOfTheFleet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newSquadron(t, 2, 4, &testserver.Vendor{Service: 100 * time.Millisecond})
		lines := f.Callers(t.Context(), 50)
		time.Sleep(time.Second)
		for i, r := range f.Replicas {
			s := r.Transport.Snapshot()[0]
			got := s.Flights
			if s.InFlight != 2 || got == nil || got.Slots != 2 || got.Processes != 2 || got.Fleet < 3 || got.Fleet > 4 || got.Lost || got.Calls == 0 {
				t.Errorf("replica %d has %d in flight, %+v; want 2 of 4 slots", i, s.InFlight, got)
			}
		}
		f.WantAll(lines)
	})
}
