package weir_test

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
	"github.com/weirgo/weir/internal/testserver"
	"github.com/weirgo/weir/throttle"
)

// The bounded table of lanes.

// to sends a GET to a host, which is a lane.
func (r *rig) to(host string) answer {
	req := r.request(r.Context(), host)
	req.URL.Host = host
	return r.do(req)
}

// keys returns the keys of the transport's lanes.
func (r *rig) keys() []string {
	var keys []string
	for _, lane := range r.transport.Snapshot() {
		keys = append(keys, lane.Key)
	}
	return keys
}

func TestLanesDoNotHoldEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := pipeRig(t, &testserver.Vendor{Faults: []testserver.Fault{{Last: 1, Do: testserver.Answer, Header: hints("60")}}}, &weir.Transport{Limits: every(time.Second)})
		refused := make(chan answer, 1)
		go func() { refused <- r.to("a.test") }()
		synctest.Wait()
		got := r.to("b.test")
		r.want("GET of another lane", got, 200)
		if got.at != 0 {
			t.Errorf("GET of another lane answered at %v, want at once", got.at)
		}
		r.want("refused GET", <-refused, 200)
	})
}

func TestLanesHaveTheirOwnLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := pipeRig(t, &testserver.Vendor{}, &weir.Transport{LimitsFor: func(key string) []throttle.Limit {
			if key == "slow.test" {
				return every(time.Second)
			}
			return nil
		}})
		for range 3 {
			r.want("slow GET", r.to("slow.test"), 200)
			r.want("free GET", r.to("free.test"), 200)
		}
		want := []time.Duration{0, 0, time.Second, time.Second, 2 * time.Second, 2 * time.Second}
		wantEqual(t, "arrivals", instants(r.vendor.Arrivals()), want)
	})
}

func TestLeastRecentlyUsedIdleLaneGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := pipeRig(t, &testserver.Vendor{}, &weir.Transport{MaxLanes: 3})
		for _, host := range []string{"a", "b", "c", "a", "d"} {
			r.want("GET", r.to(host), 200)
			time.Sleep(time.Second)
		}
		wantEqual(t, "lanes", r.keys(), []string{"a", "c", "d"})
	})
}

func TestUnusedLanesGoWithTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := pipeRig(t, &testserver.Vendor{}, new(weir.Transport))
		r.want("GET", r.to("a"), 200)
		time.Sleep(9 * time.Minute)
		r.want("GET", r.to("b"), 200)
		time.Sleep(2 * time.Minute)
		r.want("GET", r.to("c"), 200)
		wantEqual(t, "lanes", r.keys(), []string{"b", "c"})
	})
}

// A lane in which somebody waits, flies or delays stays.
func TestLaneInUseStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := pipeRig(t,
			&testserver.Vendor{Service: time.Hour, Faults: []testserver.Fault{{First: 2, Last: 2, Do: testserver.Answer, Status: 500}}},
			&weir.Transport{MaxLanes: 2, Retry: after(time.Minute)})
		var wg sync.WaitGroup
		for _, host := range []string{"flies", "delays", "more"} {
			wg.Go(func() { r.want("GET", r.to(host), 200) })
			synctest.Wait()
		}
		wantEqual(t, "lanes", r.keys(), []string{"", "delays", "flies"})
		wg.Wait()
	})
}

func TestKeysBeyondMaxLanesShareOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := pipeRig(t, &testserver.Vendor{}, &weir.Transport{MaxLanes: 1, LimitsFor: func(key string) []throttle.Limit {
			if key == "" {
				return every(time.Second)
			}
			return every(time.Hour)
		}})
		for _, host := range []string{"a", "b", "c", "d"} {
			r.want("GET", r.to(host), 200)
		}
		wantEqual(t, "lanes", r.keys(), []string{"", "a"})
		wantEqual(t, "arrivals", instants(r.vendor.Arrivals()), []time.Duration{0, 0, time.Second, 2 * time.Second})
		time.Sleep(time.Hour)
		r.want("GET when there is room", r.to("b"), 200)
		if !slices.Contains(r.keys(), "b") {
			t.Errorf("lanes = %q, want b's own again", r.keys())
		}
	})
}

func TestOverflowKeysObeyTheirOwnPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := obeyingRig(t,
			&testserver.Vendor{Faults: []testserver.Fault{{First: 2, Last: 2, Do: testserver.Answer, Header: hints("5")}}},
			&weir.Transport{MaxLanes: 1, LimitsFor: func(key string) []throttle.Limit {
				if key == "" {
					return nil
				}
				return every(time.Hour)
			}})
		r.want("GET", r.to("a"), 200)
		var wg sync.WaitGroup
		at := make([]time.Duration, 3)
		for i, host := range []string{"b", "b", "c"} {
			wg.Go(func() {
				got := r.to(host)
				r.want("GET of "+host, got, 200)
				at[i] = got.at
			})
			synctest.Wait()
		}
		wg.Wait()
		wantEqual(t, "answers", at, []time.Duration{5 * time.Second, 5 * time.Second, 0})
	})
}

func TestOverflowKeysClosedAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := pipeRig(t,
			&testserver.Vendor{Faults: []testserver.Fault{{First: 2, Last: 2, Do: testserver.Answer, Header: hints("600")}}},
			&weir.Transport{MaxLanes: 1, LimitsFor: func(key string) []throttle.Limit {
				if key == "" {
					return nil
				}
				return every(time.Hour)
			}})
		r.want("GET", r.to("a"), 200)
		r.want("GET of b", r.to("b"), 429)
		wantPaused(t, "second GET of b", r.to("b"), 600*time.Second)
		r.want("GET of c", r.to("c"), 200)
	})
}

func TestPausedLaneStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := pipeRig(t,
			&testserver.Vendor{Faults: []testserver.Fault{{Last: 1, Do: testserver.Answer, Header: hints("1800")}}},
			&weir.Transport{MaxLanes: 1})
		r.want("GET of a", r.to("a"), 429)
		time.Sleep(1700 * time.Second)
		r.want("GET of b", r.to("b"), 200)
		wantPaused(t, "second GET of a", r.to("a"), 100*time.Second)
	})
}

// What was refused once and is never asked for again does not fill the table.
func TestRefusedLanesDoNotStayForEver(t *testing.T) {
	for name, transport := range map[string]*weir.Transport{
		"without limits, told a time": {},
		"with limits, told a time":    {Limits: every(time.Second)},
		"without limits, told none":   {},
		"with limits, told none":      {Limits: every(time.Second)},
		"closed":                      {Limits: every(time.Second)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fault := testserver.Fault{Last: 1, Do: testserver.Answer}
				switch name {
				case "closed":
					fault.Header = hints("600")
				case "without limits, told a time", "with limits, told a time":
					fault.Header = hints("1")
				}
				transport.MaxLanes = 1
				r := pipeRig(t, &testserver.Vendor{Faults: []testserver.Fault{fault}}, transport)
				r.to("a")
				time.Sleep(3 * time.Hour)
				r.want("GET of b", r.to("b"), 200)
				wantEqual(t, "lanes", r.keys(), []string{"b"})
			})
		})
	}
}

// Forgetting a lane grants nothing again.
func TestEvictionGrantsNoBurstAgain(t *testing.T) {
	for seed := range uint64(5) {
		synctest.Test(t, func(t *testing.T) {
			const permits, burst = 2, 3
			r := pipeRig(t,
				&testserver.Vendor{Key: func(req *http.Request) string { return req.Host }},
				&weir.Transport{MaxLanes: 4, Line: weir.Line{MaxWait: 5 * time.Second}, Limits: []throttle.Limit{throttle.TokenBucket(permits, time.Second, burst)}})
			random := rand.New(rand.NewPCG(seed, 1))
			var wg sync.WaitGroup
			for range 400 {
				host := fmt.Sprintf("h%d.test", random.IntN(12))
				wg.Go(func() { r.to(host) })
				time.Sleep(time.Duration(random.IntN(300)) * time.Millisecond)
			}
			wg.Wait()
			for i := range 12 {
				host := fmt.Sprintf("h%d.test", i)
				of := r.vendor.Arrivals().Filter(func(a testserver.Arrival) bool { return a.Key == host })
				if got := of.BurstAt(permits, time.Second); got > burst {
					t.Errorf("seed %d: burst of %s = %d, want %d at most", seed, host, got, burst)
				}
			}
		})
	}
}

// LimitsFor may ask a server for the tier of a key, through the same transport.
func TestLimitsForMayUseTheTransport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := pipeRig(t, &testserver.Vendor{}, new(weir.Transport))
		r.transport.LimitsFor = func(key string) []throttle.Limit {
			if key == "api.test" {
				r.want("GET of the tier", r.to("tiers.test"), 200)
			}
			return nil
		}
		r.want("GET", r.to("api.test"), 200)
	})
}

// Keys that somebody else controls cost bounded memory, and nothing but their
// own speed.
func TestKeyFloodStaysWithinMaxLanes(t *testing.T) {
	transport := &weir.Transport{Base: stub{}, MaxLanes: 100, Limits: every(time.Hour), Line: weir.Line{MaxWait: time.Millisecond}, Logger: slog.New(slog.DiscardHandler)}
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
		r := pipeRig(t, &testserver.Vendor{}, &weir.Transport{LimitsFor: func(key string) []throttle.Limit {
			if key == "bad" {
				return []throttle.Limit{throttle.TokenBucket(1, time.Second, 1), {Permits: 1}}
			}
			return nil
		}})
		if got := r.to("bad"); got.err == nil || len(r.vendor.Arrivals()) != 0 {
			t.Errorf("GET = %d, %v, want an error and nothing sent", got.status, got.err)
		}
		r.want("GET of another lane", r.to("good"), 200)
	})
}
