package fleet_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
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

// Replicas find how many calls in flight a vendor allows to all of them together, and take turns if places are
// fewer than replicas. When they learned a rate instead, 0.82 of six places were used.
func TestFleetFindsCallsInFlight(t *testing.T) {
	for _, c := range []struct {
		places, replicas, callers int
		service                   time.Duration
	}{
		{places: 6, replicas: 4, callers: 8, service: 200 * time.Millisecond},
		{places: 5, replicas: 6, callers: 3, service: 300 * time.Millisecond},
	} {
		if testing.Short() && c.replicas > 4 {
			continue // the race detector makes each ten times as slow
		}
		t.Run(fmt.Sprintf("%d places of %v for %d replicas", c.places, c.service, c.replicas), func(t *testing.T) {
			var problem string
			for range 2 { // one fleet of 200 takes it for a rate at first
				synctest.Test(t, func(t *testing.T) {
					vendor := &testserver.Vendor{Limits: []testserver.Limit{testserver.Concurrency(c.places)}, Service: c.service, Spread: c.service / 2}
					f := harness.NewFleet(t, c.replicas, vendor)
					warm, whole := 25*time.Second, 45*time.Second
					if testing.Short() {
						warm, whole = 10*time.Second, 18*time.Second
					}
					callThrough(t, f.Replicas, c.callers, whole)
					problem = placesUsed(t, vendor, c.replicas, warm, whole, float64(c.places)/(c.service+c.service/4).Seconds())
				})
				if problem == "" {
					return
				}
			}
			t.Error(problem)
		})
	}
}

// Over sockets, in real time: the same, over a real Redis, whatever the load of the machine. A rate for answers that
// differ by four times uses less than two thirds of the places.
func TestFleetFindsCallsInFlightOverSockets(t *testing.T) {
	problem := callOverSockets(t)
	if problem != "" {
		problem = callOverSockets(t)
	}
	if problem != "" {
		t.Error(problem)
	}
}

// callOverSockets calls a vendor of eight places from four replicas, and returns what is wrong.
func callOverSockets(t *testing.T) string {
	redisServer := redistest.Start(t)
	vendor := &testserver.Vendor{Limits: []testserver.Limit{testserver.Concurrency(8)}, Service: 50 * time.Millisecond, Spread: 150 * time.Millisecond}
	var replicas []*harness.Rig
	for range 4 {
		client := redis.NewClient(&redis.Options{Addr: redisServer.Addr()})
		store := distributed.New(client, "vendor")
		t.Cleanup(func() { _, _ = store.Close(), client.Close() })
		r := harness.SocketRig(t, vendor, &weir.Transport{Store: store})
		if len(replicas) > 0 {
			r.Server = replicas[0].Server // the lane is the host's
		}
		replicas = append(replicas, r)
	}
	const warm, whole = 5 * time.Second, 10 * time.Second
	callThrough(t, replicas, 8, whole)
	return placesUsed(t, vendor, 4, warm, whole, 8/0.125)
}

// callThrough calls through all replicas for a while. The id of a call is its replica.
func callThrough(t *testing.T, replicas []*harness.Rig, callers int, whole time.Duration) {
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for i, r := range replicas {
		for range callers {
			all.Go(func() {
				for ctx.Err() == nil {
					r.Get(ctx, strconv.Itoa(i))
				}
			})
		}
	}
	time.Sleep(whole)
	cancel()
	all.Wait()
}

// placesUsed returns what is wrong unless the replicas used most of a vendor's places, evenly, with few refusals.
func placesUsed(t *testing.T, vendor *testserver.Vendor, replicas int, warm, whole time.Duration, rate float64) string {
	t.Helper()
	counts, refused := make([]int, replicas), 0
	for _, a := range vendor.Arrivals() {
		switch i, _ := strconv.Atoi(a.ID); {
		case a.At < warm || a.At > whole:
		case a.Granted:
			counts[i]++
		default:
			refused++
		}
	}
	served := 0
	for _, n := range counts {
		served += n
	}
	used := float64(served) / (whole - warm).Seconds() / rate
	if t.Logf("%.2f used, by each %d, %d refused", used, counts, refused); used < 0.85 || refused > served/40 {
		return fmt.Sprintf("%.2f of the places are used and %d calls refused, want 0.85 at least and %d at most", used, refused, served/40)
	}
	for i, n := range counts {
		if 4*n < served/replicas {
			return fmt.Sprintf("replica %d has %d of %d calls, want a fourth of its part at least", i, n, served)
		}
	}
	return ""
}
