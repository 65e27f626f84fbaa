package lanes_test

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/acceptance/harness"
	"github.com/weirgo/weir/internal/testserver"
	"github.com/weirgo/weir/throttle"
)

// The bounded table of lanes.

func TestLanesDoNotHoldEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t, &testserver.Vendor{Faults: []testserver.Fault{{Last: 1, Do: testserver.Answer, Header: harness.Hints("60")}}}, &weir.Transport{Limits: harness.Every(time.Second)})
		refused := make(chan harness.Answer, 1)
		go func() { refused <- r.To("a.test") }()
		synctest.Wait()
		got := r.To("b.test")
		r.Want("GET of another lane", got, 200)
		if got.At != 0 {
			t.Errorf("GET of another lane answered at %v, want at once", got.At)
		}
		r.Want("refused GET", <-refused, 200)
	})
}

func TestLanesHaveTheirOwnLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t, &testserver.Vendor{}, &weir.Transport{LimitsFor: func(key string) []throttle.Limit {
			if key == "slow.test" {
				return harness.Every(time.Second)
			}
			return nil
		}})
		for range 3 {
			r.Want("slow GET", r.To("slow.test"), 200)
			r.Want("free GET", r.To("free.test"), 200)
		}
		want := []time.Duration{0, 0, time.Second, time.Second, 2 * time.Second, 2 * time.Second}
		harness.WantEqual(t, "arrivals", harness.Instants(r.Vendor.Arrivals()), want)
	})
}

func TestLeastRecentlyUsedIdleLaneGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t, &testserver.Vendor{}, &weir.Transport{MaxLanes: 3})
		for _, host := range []string{"a", "b", "c", "a", "d"} {
			r.Want("GET", r.To(host), 200)
			time.Sleep(time.Second)
		}
		harness.WantEqual(t, "lanes", r.Keys(), []string{"a", "c", "d"})
	})
}

func TestUnusedLanesGoWithTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t, &testserver.Vendor{}, new(weir.Transport))
		r.Want("GET", r.To("a"), 200)
		time.Sleep(9 * time.Minute)
		r.Want("GET", r.To("b"), 200)
		time.Sleep(2 * time.Minute)
		r.Want("GET", r.To("c"), 200)
		harness.WantEqual(t, "lanes", r.Keys(), []string{"b", "c"})
	})
}

// A lane with a waiting, flying or delayed call stays.
func TestLaneInUseStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t,
			&testserver.Vendor{Service: time.Hour, Faults: []testserver.Fault{{First: 2, Last: 2, Do: testserver.Answer, Status: 500}}},
			&weir.Transport{MaxLanes: 2, Retry: harness.After(time.Minute)})
		var wg sync.WaitGroup
		for _, host := range []string{"flies", "delays", "more"} {
			wg.Go(func() { r.Want("GET", r.To(host), 200) })
			synctest.Wait()
		}
		harness.WantEqual(t, "lanes", r.Keys(), []string{"", "delays", "flies"})
		wg.Wait()
	})
}

func TestKeysBeyondMaxLanesShareOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t, &testserver.Vendor{}, &weir.Transport{MaxLanes: 1, LimitsFor: func(key string) []throttle.Limit {
			if key == "" {
				return harness.Every(time.Second)
			}
			return harness.Every(time.Hour)
		}})
		for _, host := range []string{"a", "b", "c", "d"} {
			r.Want("GET", r.To(host), 200)
		}
		harness.WantEqual(t, "lanes", r.Keys(), []string{"", "a"})
		harness.WantEqual(t, "arrivals", harness.Instants(r.Vendor.Arrivals()), []time.Duration{0, 0, time.Second, 2 * time.Second})
		time.Sleep(time.Hour)
		r.Want("GET when there is room", r.To("b"), 200)
		if !slices.Contains(r.Keys(), "b") {
			t.Errorf("lanes = %q, want b's own again", r.Keys())
		}
	})
}

func TestOverflowKeysObeyTheirOwnPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.ObeyingRig(t,
			&testserver.Vendor{Faults: []testserver.Fault{{First: 2, Last: 2, Do: testserver.Answer, Header: harness.Hints("5")}}},
			&weir.Transport{MaxLanes: 1, LimitsFor: func(key string) []throttle.Limit {
				if key == "" {
					return nil
				}
				return harness.Every(time.Hour)
			}})
		r.Want("GET", r.To("a"), 200)
		var wg sync.WaitGroup
		at := make([]time.Duration, 3)
		for i, host := range []string{"b", "b", "c"} {
			wg.Go(func() {
				got := r.To(host)
				r.Want("GET of "+host, got, 200)
				at[i] = got.At
			})
			synctest.Wait()
		}
		wg.Wait()
		harness.WantEqual(t, "answers", at, []time.Duration{5 * time.Second, 5 * time.Second, 0})
	})
}

func TestOverflowKeysClosedAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t,
			&testserver.Vendor{Faults: []testserver.Fault{{First: 2, Last: 2, Do: testserver.Answer, Header: harness.Hints("600")}}},
			&weir.Transport{MaxLanes: 1, LimitsFor: func(key string) []throttle.Limit {
				if key == "" {
					return nil
				}
				return harness.Every(time.Hour)
			}})
		r.Want("GET", r.To("a"), 200)
		r.Want("GET of b", r.To("b"), 429)
		harness.WantPaused(t, "second GET of b", r.To("b"), 600*time.Second)
		r.Want("GET of c", r.To("c"), 200)
	})
}

func TestPausedLaneStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t,
			&testserver.Vendor{Faults: []testserver.Fault{{Last: 1, Do: testserver.Answer, Header: harness.Hints("1800")}}},
			&weir.Transport{MaxLanes: 1})
		r.Want("GET of a", r.To("a"), 429)
		time.Sleep(1700 * time.Second)
		r.Want("GET of b", r.To("b"), 200)
		harness.WantPaused(t, "second GET of a", r.To("a"), 100*time.Second)
	})
}

// A key that was refused once and never used again does not fill the table.
func TestRefusedLanesDoNotStayForEver(t *testing.T) {
	for name, transport := range map[string]*weir.Transport{
		"without limits, told a time": {},
		"with limits, told a time":    {Limits: harness.Every(time.Second)},
		"without limits, told none":   {},
		"with limits, told none":      {Limits: harness.Every(time.Second)},
		"closed":                      {Limits: harness.Every(time.Second)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fault := testserver.Fault{Last: 1, Do: testserver.Answer}
				switch name {
				case "closed":
					fault.Header = harness.Hints("600")
				case "without limits, told a time", "with limits, told a time":
					fault.Header = harness.Hints("1")
				}
				transport.MaxLanes = 1
				r := harness.PipeRig(t, &testserver.Vendor{Faults: []testserver.Fault{fault}}, transport)
				r.To("a")
				time.Sleep(3 * time.Hour)
				r.Want("GET of b", r.To("b"), 200)
				harness.WantEqual(t, "lanes", r.Keys(), []string{"b"})
			})
		})
	}
}

// Removing a lane does not renew its permits.
func TestEvictionGrantsNoBurstAgain(t *testing.T) {
	for seed := range uint64(5) {
		synctest.Test(t, func(t *testing.T) {
			const permits, burst = 2, 3
			r := harness.PipeRig(t,
				&testserver.Vendor{Key: func(req *http.Request) string { return req.Host }},
				&weir.Transport{MaxLanes: 4, Line: weir.Line{MaxWait: 5 * time.Second}, Limits: []throttle.Limit{throttle.TokenBucket(permits, time.Second, burst)}})
			random := rand.New(rand.NewPCG(seed, 1))
			var wg sync.WaitGroup
			for range 400 {
				host := fmt.Sprintf("h%d.test", random.IntN(12))
				wg.Go(func() { r.To(host) })
				time.Sleep(time.Duration(random.IntN(300)) * time.Millisecond)
			}
			wg.Wait()
			for i := range 12 {
				host := fmt.Sprintf("h%d.test", i)
				of := r.Vendor.Arrivals().Filter(func(a testserver.Arrival) bool { return a.Key == host })
				if got := of.BurstAt(permits, time.Second); got > burst {
					t.Errorf("seed %d: burst of %s = %d, want %d at most", seed, host, got, burst)
				}
			}
		})
	}
}

// LimitsFor may ask a server for a key's tier, through the same transport.
func TestLimitsForMayUseTheTransport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t, &testserver.Vendor{}, new(weir.Transport))
		r.Transport.LimitsFor = func(key string) []throttle.Limit {
			if key == "api.test" {
				r.Want("GET of the tier", r.To("tiers.test"), 200)
			}
			return nil
		}
		r.Want("GET", r.To("api.test"), 200)
	})
}

// Keys under others' control use bounded memory, and slow down only themselves.
func TestKeyFloodStaysWithinMaxLanes(t *testing.T) {
	transport := &weir.Transport{Base: harness.Stub{}, MaxLanes: 100, Limits: harness.Every(time.Hour), Line: weir.Line{MaxWait: time.Millisecond}, Logger: slog.New(slog.DiscardHandler)}
	defer transport.Close()
	for i := range 5_000 {
		req, _ := http.NewRequest(http.MethodGet, fmt.Sprintf("http://h%d.test/", i), nil)
		if resp, err := transport.RoundTrip(req); err == nil {
			resp.Body.Close()
		}
	}
	if got := len(transport.Snapshot()); got > 101 {
		t.Errorf("lanes after 5000 keys = %d, want 100 and the shared one", got)
	}
}

func TestLaneWithBadLimitsIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t, &testserver.Vendor{}, &weir.Transport{LimitsFor: func(key string) []throttle.Limit {
			if key == "bad" {
				return []throttle.Limit{throttle.TokenBucket(1, time.Second, 1), {Permits: 1}}
			}
			return nil
		}})
		if got := r.To("bad"); got.Err == nil || len(r.Vendor.Arrivals()) != 0 {
			t.Errorf("GET = %d, %v, want an error and nothing sent", got.Status, got.Err)
		}
		r.Want("GET of another lane", r.To("good"), 200)
	})
}
