package lanes_test

import (
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/backoff"
	"github.com/weirgo/weir/headers"
	"github.com/weirgo/weir/internal/acceptance/harness"
	"github.com/weirgo/weir/internal/testserver"
	"github.com/weirgo/weir/throttle"
)

// Which lanes leave the table, and what must not be lost with them.

// A watched limiter is whole until a call has used it, and calls a function when its state is read.
type watched struct {
	throttle.Limiter
	taken, closed atomic.Int64
	read          func()
}

func (w *watched) Take(now throttle.Instant, r throttle.Request) (throttle.Grant, error) {
	w.taken.Add(1)
	return w.Limiter.Take(now, r)
}

func (w *watched) State(throttle.Instant) throttle.State {
	s := throttle.State{Whole: w.taken.Load() < 2}
	if w.read != nil {
		w.read()
	}
	return s
}

func (w *watched) Close() error {
	w.closed.Add(1)
	return nil
}

// watchedRig has a watched limiter in each lane.
func watchedRig(t *testing.T, maxLanes int) (*harness.Rig, map[string]*watched) {
	limiters := map[string]*watched{}
	return harness.PipeRig(t, &testserver.Vendor{}, &weir.Transport{MaxLanes: maxLanes, Store: harness.StoreFunc(func(key string, _ ...throttle.Limit) (throttle.Limiter, error) {
		limiters[key] = &watched{Limiter: harness.Free()}
		return limiters[key], nil
	})}), limiters
}

// A call that comes and goes while its lane is examined has spent permits, and the lane stays.
func TestLaneUsedWhileItIsAskedStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, limiters := watchedRig(t, 1)
		r.Want("GET of a", r.To("a"), 200)
		a := limiters["a"]
		var once sync.Once
		a.read = func() {
			once.Do(func() { r.Want("GET of a while it is asked", r.To("a"), 200) })
		}
		r.Want("GET of b", r.To("b"), 200)
		if a.closed.Load() != 0 || limiters["b"] != nil {
			t.Errorf("limiter of a closed %d times, b's own = %v, want a to stay and b to share", a.closed.Load(), limiters["b"])
		}
		a.read = nil
		harness.WantEqual(t, "lanes", r.Keys(), []string{"", "a"})
		r.Want("GET of a afterwards", r.To("a"), 200)
	})
}

// Limiters of a store may hold resources: each is closed once, with its lane.
func TestLimitersAreClosedWithTheirLanes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, limiters := watchedRig(t, 1)
		r.To("a")
		a := limiters["a"]
		r.To("b")
		if a.closed.Load() != 1 || limiters["b"].closed.Load() != 0 {
			t.Errorf("limiters closed %d and %d times, want a's alone, once", a.closed.Load(), limiters["b"].closed.Load())
		}
		r.To("b")
		r.To("c") // shares
		r.Transport.Close()
		r.Transport.Close()
		for key, l := range limiters {
			if l.closed.Load() != 1 {
				t.Errorf("limiter of %q closed %d times, want once", key, l.closed.Load())
			}
		}
		if got := r.To("d"); got.Err == nil || limiters["d"] != nil {
			t.Errorf("GET after Close = %d, %v, want an error and no lane", got.Status, got.Err)
		}
	})
}

// A request rejected at once has not used its lane: the lane's age is unchanged.
func TestRefusedRequestLeavesAgeOfLane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t, &testserver.Vendor{}, &weir.Transport{MaxLanes: 2, Limits: harness.Every(time.Second)})
		for _, host := range []string{"a", "b"} {
			r.Want("GET", r.To(host), 200)
			time.Sleep(time.Minute)
		}
		tooMuch := r.Request(weir.WithCost(t.Context(), 9), "b")
		tooMuch.URL.Host = "b"
		if got := r.Do(tooMuch); got.Err == nil {
			t.Errorf("GET of cost 9 = %d, want an error", got.Status)
		}
		r.Want("GET of c", r.To("c"), 200)
		harness.WantEqual(t, "lanes", r.Keys(), []string{"b", "c"})
	})
}

// A paused route keeps its lane in the table, as a paused lane does.
func TestPausedRouteKeepsItsLane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t,
			&testserver.Vendor{Faults: []testserver.Fault{{Last: 1, Do: testserver.Answer, Header: harness.Hints("1800")}}},
			&weir.Transport{MaxLanes: 1, Dialect: harness.ScopedBy(headers.ScopeRoute)})
		r.Want("GET /a", r.Do(r.Path("/a")), 429)
		time.Sleep(1700 * time.Second)
		r.Want("GET of another host", r.To("other.test"), 200)
		harness.WantPaused(t, "second GET /a", r.Do(r.Path("/a")), 100*time.Second)
		time.Sleep(time.Hour)
		r.Want("GET of another host later", r.To("other.test"), 200)
		harness.WantEqual(t, "lanes", r.Keys(), []string{"", "other.test"})
	})
}

// The removable lane of many is found within as many new keys as there are lanes.
func TestOneLaneOfManyThatMayGoIsFound(t *testing.T) {
	for free := range 50 {
		synctest.Test(t, func(t *testing.T) {
			transport := &weir.Transport{Base: harness.Stub{}, MaxLanes: 50, LimitsFor: func(key string) []throttle.Limit {
				if key == "free-"+strconv.Itoa(free) || key == "" {
					return nil
				}
				return harness.Every(time.Hour)
			}, Logger: slog.New(slog.DiscardHandler)}
			defer transport.Close()
			for i := range 50 {
				name := "held-"
				if i == free {
					name = "free-"
				}
				transport.RoundTrip(harness.GetOf(name + strconv.Itoa(i)))
			}
			for i := range 50 {
				transport.RoundTrip(harness.GetOf("new-" + strconv.Itoa(i)))
			}
			for _, lane := range transport.Snapshot() {
				if lane.Key == "free-"+strconv.Itoa(free) {
					t.Errorf("lane %d of 50, the removable one, is there after 50 new keys", free)
				}
			}
		})
	}
}

// Keys under others' control use no more memory than the table, and each takes the time to examine
// a few lanes: the benchmark has the figures.
func TestFloodOfKeysStaysWithinMemory(t *testing.T) {
	const lanes, most = 1_000, 4 << 10
	for name, tt := range map[string]struct {
		keys   int
		limits []throttle.Limit
	}{
		"evicted": {30_000, nil},
		"sharing": {10_000, []throttle.Limit{throttle.TokenBucket(1e6, 1000*time.Hour, 1e6)}},
	} {
		t.Run(name, func(t *testing.T) {
			transport := &weir.Transport{Base: harness.Stub{}, MaxLanes: lanes, Limits: tt.limits, Logger: slog.New(slog.DiscardHandler)}
			defer transport.Close()
			before := harness.Heap()
			for i := range tt.keys {
				resp, err := transport.RoundTrip(harness.GetOf("h" + strconv.Itoa(i)))
				if err != nil {
					t.Fatal(err)
				}
				resp.Body.Close()
			}
			if got := harness.Heap() - before; got > lanes*most {
				t.Errorf("memory after %d keys = %d bytes, want %d at most", tt.keys, got, lanes*most)
			}
			if got := len(transport.Snapshot()); got > lanes+1 {
				t.Errorf("lanes = %d, want %d and the shared one at most", got, lanes)
			}
		})
	}
}

// Busy keys depart at their own instants, however many others there are.
func TestNoKeyIsSlowedByAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const idleKeys, busyKeys, calls = 2_000, 100, 20
		interval := func(i int) time.Duration { return time.Duration(10+i) * time.Millisecond }
		transport := &weir.Transport{Base: harness.Stub{}, LimitsFor: func(key string) []throttle.Limit {
			if i, err := strconv.Atoi(key); err == nil {
				return harness.Every(interval(i))
			}
			return nil
		}}
		defer transport.Close()
		for i := range idleKeys {
			transport.RoundTrip(harness.GetOf(fmt.Sprintf("idle-%d", i)))
		}
		start := time.Now()
		var wg sync.WaitGroup
		for i := range busyKeys {
			wg.Go(func() {
				for n := range calls {
					resp, err := transport.RoundTrip(harness.GetOf(strconv.Itoa(i)))
					if err != nil {
						t.Error(err)
						return
					}
					resp.Body.Close()
					if got, want := time.Since(start), time.Duration(n)*interval(i); got != want {
						t.Errorf("call %d of key %d left at %v, want %v", n, i, got, want)
						return
					}
				}
			})
		}
		wg.Wait()
	})
}

// The empty key is an ordinary key, even beside the lane shared by keys beyond the bound.
func TestEmptyKeyIsNotTheSharedLane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t,
			&testserver.Vendor{Faults: []testserver.Fault{{First: 3, Last: 3, Do: testserver.Answer, Header: harness.Hints("600")}}},
			&weir.Transport{
				MaxLanes: 1,
				Key:      func(req *http.Request) string { return req.Header.Get("K") },
				LimitsFor: func(key string) []throttle.Limit {
					if key == "" {
						return nil
					}
					return harness.Every(time.Hour)
				}})
		ask := func(key string) harness.Answer {
			req := r.Request(t.Context(), key)
			req.Header.Set("K", key)
			return r.Do(req)
		}
		r.Want("GET of a", ask("a"), 200)
		r.Want("GET of b", ask("b"), 200)
		r.Want("GET of the empty key", ask(""), 429)
		harness.WantPaused(t, "second GET of the empty key", ask(""), 600*time.Second)
		r.Want("second GET of b", ask("b"), 200)
	})
}

// After lanes are removed, first, last or between, the others are still found.
func TestLanesThatGoLeaveTheOthers(t *testing.T) {
	for seed := range uint64(50) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 0))
			transport := &weir.Transport{Base: harness.Stub{}, MaxLanes: 8, Logger: slog.New(slog.DiscardHandler)}
			defer transport.Close()
			for range 200 {
				key := strconv.Itoa(random.IntN(12))
				resp, err := transport.RoundTrip(harness.GetOf(key))
				if err != nil {
					t.Fatal(err)
				}
				resp.Body.Close()
				time.Sleep(time.Duration(random.Int64N(int64(8 * time.Minute))))
				keys := make(map[string]int)
				for _, lane := range transport.Snapshot() {
					keys[lane.Key]++
				}
				if len(keys) > 8 || keys[key] != 1 || slices.Max(slices.Collect(maps.Values(keys))) > 1 {
					t.Fatalf("seed %d: lanes after a call of %s = %v, want at most 8, each once, and that one", seed, key, keys)
				}
			}
		})
	}
}

// An unused lane with nothing to lose is removed for the first new key, however many others are in
// use or have spent permits.
func TestTheOneIdleLaneGoesForTheFirstNewKey(t *testing.T) {
	const lanes = 1_000
	for name, others := range map[string]string{"others in use": "busy-", "others spent": "spent-", "others spend": "mixed-"} {
		for _, idle := range []int{0, lanes / 2, lanes - 1} {
			t.Run(fmt.Sprint(name, ", lane ", idle), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					release := make(chan struct{})
					transport := &weir.Transport{
						Base: harness.BaseFunc(func(req *http.Request) (*http.Response, error) {
							if strings.HasPrefix(req.URL.Host, "busy-") {
								<-release
							}
							return harness.Stub{}.RoundTrip(req)
						}),
						MaxLanes: lanes, Retry: backoff.None, Logger: slog.New(slog.DiscardHandler),
						LimitsFor: func(key string) []throttle.Limit {
							switch {
							case strings.HasPrefix(key, "spent-"):
								return harness.Every(time.Hour)
							case strings.HasPrefix(key, "mixed-"):
								return []throttle.Limit{throttle.TokenBucket(1, time.Minute, 60)}
							}
							return nil
						},
					}
					defer transport.Close()
					var calls sync.WaitGroup
					for i := range lanes {
						key := others + strconv.Itoa(i)
						if i == idle {
							key = "idle"
						}
						calls.Go(func() { transport.RoundTrip(harness.GetOf(key)) })
						synctest.Wait()
					}
					for _, next := range []string{"new", "newer"} { // the second one takes the lane of the first
						transport.RoundTrip(harness.GetOf(next))
						keys := make(map[string]bool)
						for _, lane := range transport.Snapshot() {
							keys[lane.Key] = true
						}
						if !keys[next] || keys["idle"] || keys[""] {
							t.Errorf("after the key %q: lane of its own %v, the idle lane is there %v, a shared lane %v", next, keys[next], keys["idle"], keys[""])
						}
					}
					close(release)
					calls.Wait()
				})
			})
		}
	}
}

// A lane with spent permits is removed for the first new key after they are earned back, even if it
// was examined before. A lane in use is removable as soon as it is empty.
func TestALaneGoesAsSoonAsItMay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const lanes, wait = 200, 30 * time.Second
		release := make(chan struct{})
		transport := &weir.Transport{
			Base: harness.BaseFunc(func(req *http.Request) (*http.Response, error) {
				if req.URL.Host == "busy" {
					<-release
				}
				return harness.Stub{}.RoundTrip(req)
			}),
			MaxLanes: lanes, Retry: backoff.None, Logger: slog.New(slog.DiscardHandler),
			LimitsFor: func(key string) []throttle.Limit {
				switch key {
				case "soon":
					return harness.Every(wait)
				case "", "busy":
					return nil
				}
				return harness.Every(time.Hour)
			},
		}
		defer transport.Close()
		var calls sync.WaitGroup
		calls.Go(func() { transport.RoundTrip(harness.GetOf("busy")) })
		synctest.Wait()
		for i := range lanes - 2 {
			transport.RoundTrip(harness.GetOf("spent-" + strconv.Itoa(i)))
		}
		transport.RoundTrip(harness.GetOf("soon"))
		has := func(key string) bool {
			return slices.ContainsFunc(transport.Snapshot(), func(l weir.LaneState) bool { return l.Key == key })
		}
		for i := range 5 {
			if transport.RoundTrip(harness.GetOf("early")); has("early") {
				t.Fatalf("new key %d has a lane, though no lane is removable", i)
			}
		}
		time.Sleep(wait)
		if transport.RoundTrip(harness.GetOf("first")); !has("first") || has("soon") {
			t.Errorf("after %v the first new key has a lane: %v, and the restored lane is there: %v", wait, has("first"), has("soon"))
		}
		close(release)
		calls.Wait()
		if transport.RoundTrip(harness.GetOf("second")); !has("second") || has("busy") {
			t.Errorf("the next new key has a lane: %v, and the empty lane is there: %v", has("second"), has("busy"))
		}
	})
}
