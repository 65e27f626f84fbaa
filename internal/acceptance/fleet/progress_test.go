package fleet_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/weirgo/weir"
	"github.com/weirgo/weir/distributed"
	"github.com/weirgo/weir/distributed/hostlocal"
	"github.com/weirgo/weir/internal/redistest"
	"github.com/weirgo/weir/throttle"
)

// Over sockets, in real time: traffic of all processes is back seconds after one of them ends a long
// pause, whichever began it.
func TestTrafficIsBackAfterResume(t *testing.T) {
	vendor := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer vendor.Close()
	redisStore := func(t *testing.T) func() throttle.Store {
		server := redistest.Start(t)
		return func() throttle.Store {
			client := redis.NewClient(&redis.Options{Addr: server.Addr()})
			store := distributed.New(client, "vendor")
			t.Cleanup(func() { _, _ = store.Close(), client.Close() })
			return store
		}
	}
	fileStore := func(t *testing.T) func() throttle.Store {
		dir := t.TempDir() + "/weir"
		return func() throttle.Store {
			store := &hostlocal.Store{Dir: dir}
			t.Cleanup(func() { _ = store.Close() })
			return store
		}
	}
	for name, stores := range map[string]func(*testing.T) func() throttle.Store{"redis": redisStore, "files": fileStore} {
		t.Run(name, func(t *testing.T) {
			open := stores(t)
			var transports [2]*weir.Transport
			served := func(i int) bool {
				resp, err := (&http.Client{Transport: transports[i]}).Get(vendor.URL)
				if err == nil {
					resp.Body.Close()
				}
				return err == nil
			}
			for i := range transports {
				transports[i] = &weir.Transport{Store: open(), Limits: []throttle.Limit{throttle.TokenBucket(100, time.Second, 10)}}
				t.Cleanup(func() { transports[i].Close() })
				if !served(i) {
					t.Fatalf("process %d was not served before the pause", i)
				}
			}
			key := transports[0].Snapshot()[0].Key
			for resumer := range transports {
				if err := transports[0].Pause(key, time.Hour); err != nil {
					t.Fatal(err)
				}
				for i := range transports {
					for began := time.Now(); served(i); time.Sleep(time.Millisecond) {
						if time.Since(began) > 10*time.Second {
							t.Fatalf("process %d is served 10 s after a pause began", i)
						}
					}
				}
				if err := transports[resumer].Resume(key); err != nil {
					t.Fatal(err)
				}
				for i := range transports {
					began := time.Now()
					for n := 0; n < 20; time.Sleep(time.Millisecond) {
						if served(i) {
							n++
						}
						if time.Since(began) > 10*time.Second {
							t.Fatalf("process %d: %d calls served in the 10 s since process %d ended the pause, want 20", i, n, resumer)
						}
					}
				}
			}
		})
	}
}

// Over sockets, in real time: calls depart that need two lanes which both reserve permits, or which both have one
// place in flight for three processes.
func TestCallsOfTwoLanesDepartOverSockets(t *testing.T) {
	bucket := throttle.TokenBucket(8, time.Second, 3).Reserving("2")
	for name, c := range map[string]struct {
		twoLanes
		least, most int64 // calls in five seconds
	}{
		"reserves": {twoLanes{replicas: 4, callers: 2, a: bucket, b: bucket, answers: 215 * time.Millisecond}, 12, 40},
		"places":   {twoLanes{replicas: 3, callers: 6, a: wide, b: wide, places: 1, answers: 250 * time.Millisecond}, 12, 20},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			served, end := c.call(t, func() *redis.Client {
				client := redis.NewClient(&redis.Options{Addr: server.Addr()})
				t.Cleanup(func() { _ = client.Close() })
				return client
			})
			time.Sleep(3 * time.Second) // all of them call by then
			before := served.Load()
			time.Sleep(5 * time.Second)
			if n := served.Load() - before; n < c.least {
				t.Errorf("%d calls departed in 5 s, want %d of %d at least", n, c.least, c.most)
			}
			end()
		})
	}
}

// Over sockets, in real time: five processes use their rate with one place in flight.
func TestFewPlacesLeaveTheRateOverSockets(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	c := crew{5, 1, 1, throttle.TokenBucket(2, time.Second, 1), 150 * time.Millisecond, 1}
	served, end := c.call(t, func() *redis.Client {
		client := redis.NewClient(&redis.Options{Addr: server.Addr()})
		t.Cleanup(func() { _ = client.Close() })
		return client
	})
	time.Sleep(2 * time.Second)
	before := served.Load()
	time.Sleep(6 * time.Second)
	if n := served.Load() - before; n < 8 {
		t.Errorf("%d calls in 6 s, want 8 of 12 at least", n)
	}
	end()
}

// Over sockets, in real time: calls of two processes in two lanes of equal limits depart after each
// flush of Redis.
func TestTrafficOfTwoLanesIsBackAfterAFlush(t *testing.T) {
	t.Parallel()
	vendor := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(60 * time.Millisecond) }))
	defer vendor.Close()
	server := redistest.Start(t)
	ctx, cancel := context.WithCancel(t.Context())
	var calling sync.WaitGroup
	defer calling.Wait()
	defer cancel()
	var served atomic.Int64
	for range 2 {
		client := redis.NewClient(&redis.Options{Addr: server.Addr()})
		store := distributed.New(client, "vendor")
		transport := &weir.Transport{
			Store: store, Limits: []throttle.Limit{throttle.TokenBucket(5, time.Second, 5)},
			Keys: func(*http.Request) []string { return []string{"a", "b"} },
		}
		t.Cleanup(func() { _, _, _ = transport.Close(), store.Close(), client.Close() })
		for range 2 {
			calling.Go(func() {
				for ctx.Err() == nil {
					req, _ := http.NewRequestWithContext(ctx, http.MethodGet, vendor.URL, nil)
					if resp, err := (&http.Client{Transport: transport}).Do(req); err == nil {
						_ = resp.Body.Close()
						served.Add(1)
					}
				}
			})
		}
	}
	for flush := range 2 {
		time.Sleep(time.Second)
		if _, err := server.Do("FLUSHALL"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(1500 * time.Millisecond)
		for before, began := served.Load(), time.Now(); served.Load() < before+5; time.Sleep(time.Millisecond) {
			if time.Since(began) > 5*time.Second {
				t.Fatalf("flush %d: %d calls were served in 5 s, want 5 of 25", flush, served.Load()-before)
			}
		}
	}
}

// Over sockets, in real time: calls that need two slow lanes of Redis depart, although replicas share
// each lane. When each replica could hold the permit that another one needed, 19 to 34 calls of the
// first vendor were served in 15 s, and 4 to 11 of the second.
func TestCallsOfTwoLanesDepart(t *testing.T) {
	for name, c := range map[string]struct {
		replicas, callers int
		a, b              throttle.Limit
		answers           time.Duration
		turns             bool  // one call waits at a time; false: all do
		want              int64 // in 15 s
	}{
		"one waits at a time": {3, 2, throttle.TokenBucket(5, time.Second, 5), throttle.TokenBucket(5, time.Second, 5), 160 * time.Millisecond, true, 45}, // of 80
		"all wait":            {4, 5, throttle.LeakyBucket(3, time.Second), throttle.LeakyBucket(3, time.Second), 141 * time.Millisecond, false, 28},      // of 45
		"one is a window":     {3, 3, throttle.TokenBucket(2, time.Second, 2), throttle.SlidingLog(2, time.Second), time.Millisecond, false, 18},          // of 30
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			turn := make(chan bool, 1)
			vendor := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
				if c.turns {
					<-turn
				}
				time.Sleep(c.answers)
			}))
			defer vendor.Close()
			addr := redistest.Start(t).Addr()
			ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
			defer cancel()
			var served atomic.Int64
			var calling sync.WaitGroup
			for range c.replicas {
				client := redis.NewClient(&redis.Options{Addr: addr})
				store := distributed.New(client, "vendor")
				transport := &weir.Transport{
					Base: &http.Transport{MaxIdleConnsPerHost: c.callers}, Store: store,
					LimitsFor: func(key string) []throttle.Limit { return map[string][]throttle.Limit{"a": {c.a}, "b": {c.b}}[key] },
					Keys:      func(*http.Request) []string { return []string{"a", "b"} },
				}
				t.Cleanup(func() { _, _, _ = transport.Close(), store.Close(), client.Close() })
				for range c.callers {
					calling.Go(func() {
						for ctx.Err() == nil {
							if c.turns {
								select {
								case turn <- true:
								case <-ctx.Done():
									return
								}
							}
							req, _ := http.NewRequestWithContext(ctx, http.MethodGet, vendor.URL, nil)
							if resp, err := transport.RoundTrip(req); err == nil {
								_ = resp.Body.Close()
								if served.Add(1) >= c.want {
									cancel()
								}
							}
						}
					})
				}
			}
			calling.Wait()
			if n := served.Load(); n < c.want {
				t.Errorf("%d calls were served in 15 s, want %d at least", n, c.want)
			}
		})
	}
}
