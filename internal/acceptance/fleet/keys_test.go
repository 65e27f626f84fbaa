package fleet_test

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/distributed"
	"github.com/weirgo/weir/internal/acceptance/harness"
	"github.com/weirgo/weir/internal/redispipe"
	"github.com/weirgo/weir/internal/testserver"
	"github.com/weirgo/weir/throttle"
)

// Calls in two lanes of equal limits depart at the rate after a flush, in which one process may get
// the next permits of one lane and another those of the other lane. If neither gave them back in
// time, no call would depart any more, as after 22 of 40 such flushes without it.
func TestFlushesLeaveTheRateOfTwoLanes(t *testing.T) {
	for again := range 6 {
		if again > 0 && testing.Short() {
			break
		}
		synctest.Test(t, func(t *testing.T) {
			server := redispipe.Start(t, time.Millisecond)
			var served atomic.Int64
			var calling sync.WaitGroup
			end := time.Now().Add(25 * time.Second)
			ctx, cancel := context.WithDeadline(t.Context(), end.Add(time.Minute))
			defer cancel()
			for range 2 {
				store := distributed.New(server.Client(t), "vendor")
				store.Logger = slog.New(slog.DiscardHandler)
				t.Cleanup(func() { _ = store.Close() })
				r := harness.PipeRig(t, &testserver.Vendor{Service: 60 * time.Millisecond}, &weir.Transport{
					Store: store, Limits: []throttle.Limit{throttle.TokenBucket(5, time.Second, 5)},
					Keys: func(*http.Request) []string { return []string{"a", "b"} },
				})
				for range 2 {
					calling.Go(func() {
						for time.Now().Before(end) {
							if r.Get(ctx, "a").Status == http.StatusOK {
								served.Add(1)
							}
						}
					})
				}
			}
			time.Sleep(5*time.Second + time.Duration(again)*7*time.Millisecond)
			server.Forget()
			time.Sleep(6*time.Second + time.Duration(again)*13*time.Millisecond)
			server.Forget()
			time.Sleep(5 * time.Second)
			before := served.Load()
			time.Sleep(4 * time.Second)
			if n := served.Load() - before; n < 16 {
				t.Errorf("%d calls were served in 4 s, want 16 of 20 at least", n)
			}
			calling.Wait()
		})
	}
}

// A twoLanes is replicas whose calls need the lanes a and b. One of them also has callers of a single
// lane.
type twoLanes struct {
	replicas, callers int
	a, b              throttle.Limit
	places            int           // calls in flight in each lane; zero: any number
	alone             string        // the lane that one caller needs alone; "": each needs both
	trip              time.Duration // of Redis
	answers           time.Duration // after the departure
	turns             bool          // one call that needs both waits at a time; false: all do
}

// RoundTrip says that a call departs, and answers it.
func (f *twoLanes) RoundTrip(req *http.Request) (*http.Response, error) {
	if departed, ok := req.Context().Value(departs{}).(func()); ok {
		departed()
	}
	time.Sleep(f.answers)
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: req}, nil
}

type departs struct{}

// run returns how many calls that need both lanes depart in a second, and requires that Redis is not
// polled meanwhile.
func (f *twoLanes) run(t *testing.T) float64 {
	server := redispipe.Start(t, f.trip)
	served, end := f.call(t, func() *redis.Client { return server.Client(t) })
	warm, whole := 10*time.Second, 40*time.Second
	if testing.Short() {
		whole /= 4 // the race detector has seen it all by then
	}
	time.Sleep(warm)
	before, scripts := served.Load(), server.Calls()
	time.Sleep(whole)
	departed, scripts := served.Load()-before, server.Calls()-scripts
	end()
	if int64(scripts) > 40*max(departed, 10) {
		t.Errorf("%d scripts for %d calls that depart, want 40 each at most: %+v", scripts, departed, f)
	}
	return float64(departed) / whole.Seconds()
}

// call calls in both lanes until the end, and counts the calls that depart.
func (f *twoLanes) call(t *testing.T, client func() *redis.Client) (served *atomic.Int64, end func()) {
	ctx, cancel := context.WithCancel(t.Context())
	served = new(atomic.Int64)
	var calling sync.WaitGroup
	turn := make(chan bool, 1)
	for replica := range f.replicas {
		store := distributed.New(client(), "vendor")
		store.Logger = slog.New(slog.DiscardHandler)
		transport := &weir.Transport{
			Base: f, Store: store,
			Keys:     func(r *http.Request) []string { return strings.Split(r.URL.RawQuery, "&") },
			InFlight: weir.InFlight{Shared: f.places},
			LimitsFor: func(key string) []throttle.Limit {
				return map[string][]throttle.Limit{"a": {f.a}, "b": {f.b}}[key]
			},
			Cost: func(_ *http.Request, l throttle.Limit) int {
				if l.Unit == "tokens" {
					return 2
				}
				return 1
			},
		}
		t.Cleanup(func() { _, _ = transport.Close(), store.Close() })
		call := func(lanes string, departed func()) {
			req, _ := http.NewRequestWithContext(context.WithValue(ctx, departs{}, departed), http.MethodGet, "http://vendor.test?"+lanes, nil)
			if resp, err := transport.RoundTrip(req); err == nil {
				_ = resp.Body.Close()
			}
		}
		for caller := range f.callers {
			calling.Go(func() {
				for time.Sleep(time.Duration(replica*7+caller*3) * 97 * time.Millisecond); ctx.Err() == nil; {
					departed := func() { served.Add(1) }
					if f.turns {
						select {
						case turn <- true:
							departed = func() { served.Add(1); <-turn }
						case <-ctx.Done():
							return
						}
					}
					if f.places > 0 && caller%2 == 1 { // the order makes no difference
						call("b&a", departed)
						continue
					}
					call("a&b", departed)
				}
			})
		}
		if replica == 0 && f.alone != "" {
			calling.Go(func() {
				for ctx.Err() == nil {
					call(f.alone, func() {})
				}
			})
		}
	}
	return served, func() { cancel(); calling.Wait() }
}

// ideal returns how many calls that need both lanes could depart in a second.
func (f *twoLanes) ideal() float64 {
	a, b := f.a.PerSecond(), f.b.PerSecond()
	if f.b.Unit == "tokens" { // each costs two
		b /= 2
	}
	switch f.alone { // whose caller takes turns with the others
	case "a":
		a /= 2
	case "b":
		b /= 2
	}
	most := f.replicas * f.callers
	if f.places > 0 {
		most = min(most, f.places)
	}
	return min(a, b, float64(most)/f.answers.Seconds())
}

// A permit that comes back to one lane is at hand. A replica that waited alone and believed otherwise
// gave back that of the other lane, too, and exchanged both for as long as they were valid: a sixth of
// the calls were left.
func TestReplicasTakeTurnsInTwoLanes(t *testing.T) {
	bucket := throttle.TokenBucket(5, time.Second, 5)
	for i, answers := range []time.Duration{160, 190, 220, 250, 280} {
		if i > 0 && testing.Short() {
			break
		}
		synctest.Test(t, func(t *testing.T) {
			f := twoLanes{replicas: 3, callers: 2, a: bucket, b: bucket, trip: 700 * time.Microsecond, answers: answers * time.Millisecond, turns: true}
			if n := f.run(t); n < 0.8*f.ideal() {
				t.Errorf("answers after %v: %.2f calls depart in a second, want %.2f", f.answers, n, f.ideal())
			}
		})
	}
}

// depart runs the random fleets of a stream, fewer with -short. None departs at less than a share of its rate, and all
// together depart at a mean.
func depart(t *testing.T, stream uint64, fleets, short int, least, mean float64, draw func(*rand.Rand) twoLanes) {
	t.Helper()
	if testing.Short() {
		fleets = short
	}
	sum := 0.0
	for seed := range fleets {
		synctest.Test(t, func(t *testing.T) {
			f := draw(rand.New(rand.NewPCG(uint64(seed), stream)))
			got := f.run(t) / f.ideal()
			if sum += min(got, 1); got < least {
				t.Errorf("fleet %d: %.2f of the rate of two lanes, want 1: %+v", seed, got, f)
			}
		})
	}
	if sum /= float64(fleets); sum < mean && !testing.Short() {
		t.Errorf("%.3f of the rate in the mean, want %.2f", sum, mean)
	}
	t.Logf("%.3f of the rate in the mean", sum)
}

// drawn returns random replicas, whose lanes often have the same rate. One caller needs one of the lanes
// named alone.
func drawn(random *rand.Rand, rates []int, limit func(rate int) throttle.Limit, alone ...string) twoLanes {
	rate := rates[random.IntN(len(rates))]
	f := twoLanes{replicas: 2 + random.IntN(3), callers: 1 + random.IntN(6), a: limit(rate)}
	if len(alone) > 0 {
		f.alone = alone[random.IntN(len(alone))]
	}
	f.trip = time.Duration(200+random.IntN(3000)) * time.Microsecond
	f.answers = time.Duration(1+random.IntN(300)) * time.Millisecond
	if random.IntN(2) == 0 {
		rate = rates[random.IntN(len(rates))]
	}
	f.b = limit(rate)
	return f
}

// A permit that comes back makes room for one at another instant. It was counted until nobody could have
// it any more, and no call departed.
func TestPermitsThatComeBackAreNotLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := twoLanes{
			replicas: 3, callers: 5, a: throttle.TokenBucket(2, time.Second, 3),
			b:    throttle.Limit{Permits: 4, Per: time.Second, Burst: 3, Unit: "tokens"},
			trip: 661 * time.Microsecond, answers: 31 * time.Millisecond,
		}
		if n := f.run(t); n < 0.8*f.ideal() {
			t.Errorf("%.2f calls depart in a second, want %.2f", n, f.ideal())
		}
	})
}

// A lane that reserves permits is also asked for the one of the instant at which the other lane lets a call
// go. Two replicas took turns in each lane, out of step, and no call departed. Once they did, they asked
// again and again until the lane promised it: with 73 scripts for each call.
func TestALaneThatReservesPermitsIsInStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := twoLanes{
			replicas: 2, callers: 5, a: throttle.TokenBucket(5, time.Second, 4).Reserving("2"), b: throttle.TokenBucket(5, time.Second, 2),
			trip: 2813 * time.Microsecond, answers: 23 * time.Millisecond,
		}
		if n := f.run(t); n < 0.8*f.ideal() {
			t.Errorf("%.2f calls depart in a second, want %.2f", n, f.ideal())
		}
	})
}

// Calls depart though both of their lanes reserve permits. These are hardly promised ahead, so each of
// two replicas got what the other one needed, again and again, and no call departed any more.
func TestLanesThatBothReservePermitsLetCallsGo(t *testing.T) {
	bucket := func(rate, burst int, kept throttle.Part) throttle.Limit {
		return throttle.TokenBucket(rate, time.Second, burst).Reserving(kept)
	}
	for i, f := range []twoLanes{
		{replicas: 4, callers: 1, a: bucket(8, 3, "1"), b: bucket(8, 6, "1"), trip: 2630 * time.Microsecond, answers: 272 * time.Millisecond},
		{replicas: 4, callers: 2, a: bucket(8, 6, "5"), b: bucket(8, 4, "2"), trip: 1582 * time.Microsecond, answers: 215 * time.Millisecond},
		{replicas: 4, callers: 5, a: bucket(8, 5, "3"), b: bucket(8, 6, "5"), trip: 1391 * time.Microsecond, answers: 163 * time.Millisecond},
		{replicas: 4, callers: 5, a: bucket(11, 3, "2"), b: bucket(11, 3, "2"), trip: 1452 * time.Microsecond, answers: 140 * time.Millisecond},
	} {
		if i > 0 && testing.Short() {
			break
		}
		synctest.Test(t, func(t *testing.T) {
			if n := f.run(t); n < 0.4*f.ideal() {
				t.Errorf("%.2f calls depart in a second, want 0.4 of %.2f at least: %+v", n, f.ideal(), f)
			}
		})
	}
}

// So do those of random fleets.
func TestRandomFleetsWithReservesDepart(t *testing.T) {
	depart(t, 103, 5, 1, 0.4, 0.94, func(random *rand.Rand) twoLanes {
		limit := func(rate int) throttle.Limit {
			burst := 1 + random.IntN(6)
			l := throttle.TokenBucket(rate, time.Second, burst)
			if burst > 1 && random.IntN(3) > 0 {
				l = l.Reserving(throttle.Part(strconv.Itoa(1 + random.IntN(burst-1))))
			}
			return l
		}
		return drawn(random, []int{1, 2, 3, 5, 8, 11, 50}, limit)
	})
}

// Permits of several tokens, and those of a window, are not asked for ahead. Replicas kept those in hand
// while their callers waited for the other lane, and no call departed any more.
func TestFleetsWithTokensOrAWindowDepart(t *testing.T) {
	depart(t, 12, 5, 1, 0.8, 0.95, func(random *rand.Rand) twoLanes {
		rates := []int{1, 2, 3, 5, 8}
		rate := rates[random.IntN(len(rates))]
		f := twoLanes{
			replicas: 2 + random.IntN(2), callers: 1 + random.IntN(5),
			a:       throttle.TokenBucket(rates[random.IntN(len(rates))], time.Second, 1+random.IntN(3)),
			b:       throttle.SlidingLog(rate, time.Second),
			trip:    time.Duration(200+random.IntN(3000)) * time.Microsecond,
			answers: time.Duration(1+random.IntN(50)) * time.Millisecond,
		}
		if random.IntN(2) == 0 {
			f.b = throttle.Limit{Permits: 2 * rate, Per: time.Second, Burst: 2 + random.IntN(4), Unit: "tokens"}
		}
		return f
	})
}

// Calls that need two lanes depart at their rate, in random fleets whose replicas share both. Several
// replicas could each hold the permit that another one needed, out of step with its own in the other
// lane, for ever.
func TestRandomFleetsDepartAtTheRateOfTwoLanes(t *testing.T) {
	depart(t, 11, 8, 1, 0.5, 0.96, func(random *rand.Rand) twoLanes {
		limit := func(rate int) throttle.Limit {
			if burst := []int{0, 1, 5}[random.IntN(3)]; burst > 0 {
				return throttle.TokenBucket(rate, time.Second, burst)
			}
			return throttle.LeakyBucket(rate, time.Second)
		}
		return drawn(random, []int{1, 2, 3, 5, 8, 11}, limit, "", "a", "b")
	})
}

// wide bounds no call: places in flight do.
var wide = throttle.TokenBucket(1000, time.Second, 1000)

// A caller that waits for a place in flight of one lane takes no place of the next lane, and callers behind it
// take no place either. Replicas had the place that another one needed, for a minute: in the first two fleets they
// expected to use it at once, and in the others they waited behind a caller who only kept its turn.
func TestReplicasTakeNoPlaceAhead(t *testing.T) {
	for i, f := range []twoLanes{
		{replicas: 2, callers: 3, trip: 1802 * time.Microsecond, answers: 64 * time.Millisecond},
		{replicas: 3, callers: 6, trip: 2026 * time.Microsecond, answers: 248 * time.Millisecond},
		{replicas: 3, callers: 4, trip: 838 * time.Microsecond, answers: 219 * time.Millisecond},
		{replicas: 4, callers: 5, trip: 2144 * time.Microsecond, answers: 473 * time.Millisecond},
	} {
		if i > 0 && testing.Short() {
			break
		}
		synctest.Test(t, func(t *testing.T) {
			f.a, f.b, f.places = wide, wide, 1
			if n := f.run(t); n < 0.83*f.ideal() {
				t.Errorf("fleet %d: %.2f calls depart in a second, want 0.83 of %.2f at least", i, n, f.ideal())
			}
		})
	}
}

// Calls depart that need places in flight of two lanes, fewer than there are replicas. A caller who waited at
// one lane gave its place at the other one back, so replicas exchanged places with each round trip, and used a
// tenth of them, with up to 6,000 scripts for each call.
func TestRandomFleetsUseThePlacesOfTwoLanes(t *testing.T) {
	depart(t, 77, 4, 1, 0.7, 0.9, func(random *rand.Rand) twoLanes {
		return twoLanes{
			replicas: 2 + random.IntN(3), callers: 1 + random.IntN(6), places: 1 + random.IntN(3), a: wide, b: wide,
			trip: time.Duration(200+random.IntN(3000)) * time.Microsecond, answers: time.Duration(20+random.IntN(580)) * time.Millisecond,
		}
	})
}
