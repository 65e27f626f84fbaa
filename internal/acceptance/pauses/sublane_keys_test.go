package pauses_test

import (
	"context"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/throttle"
)

// Buckets that the vendor names, of calls with several keys.

// customerKey is the key of a customer's name in a context.
type customerKey struct{}

// customersRig returns a vendor that names buckets, and a client of its customers, who share an
// account. Customer a may call once in 30 s.
func customersRig(t *testing.T) (*bucketVendor, *http.Client) {
	v, client := bucketRig(t)
	transport := &weir.Transport{
		Base: v, Logger: slog.New(slog.DiscardHandler),
		Keys:      func(req *http.Request) []string { return []string{customerOf(req), "account"} },
		LimitsFor: limitsFor("a", throttle.TokenBucket(1, 30*time.Second, 1)),
	}
	t.Cleanup(func() { transport.Close() })
	client.Transport = transport
	return v, client
}

// as requests a path as a customer, and returns how long it took.
func (v *bucketVendor) as(t *testing.T, customer string, client *http.Client, path string) time.Duration {
	return v.ask(context.WithValue(t.Context(), customerKey{}, customer), t, client, path)
}

// besideFullLane returns the duration of five calls of customer b in a row, while some of customer
// a wait for its lane with the same bucket.
func besideFullLane(t *testing.T, waiting int) (took [5]time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		v, client := customersRig(t)
		v.as(t, "a", client, "/a")
		for range 3 { // the bucket is named
			v.as(t, "b", client, "/a")
		}
		time.Sleep(6 * time.Second) // and full
		var wg sync.WaitGroup
		for range waiting {
			wg.Go(func() { v.as(t, "a", client, "/a") })
		}
		time.Sleep(time.Second)
		for i := range took {
			took[i] = v.as(t, "b", client, "/a")
		}
		wg.Wait()
		if n := v.refused["h1"]; n != 0 {
			t.Errorf("beside %d calls in line %d were refused, want none", waiting, n)
		}
	})
	return took
}

// request returns a customer's request.
func (v *bucketVendor) request(ctx context.Context, t *testing.T, customer, path string) *http.Request {
	ctx = context.WithValue(ctx, customerKey{}, customer)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://discord.com/api/v10"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	return req
}

// Calls of a bucket that wait in one customer's lane delay no other customer's calls of it.
func TestFullLaneDelaysNoOtherCallOfItsBucket(t *testing.T) {
	alone, beside := besideFullLane(t, 0), besideFullLane(t, 8)
	if beside != alone {
		t.Errorf("beside a full lane calls of the other customer took %v, and alone %v", beside, alone)
	}
	if alone[0] != 20*time.Millisecond {
		t.Errorf("the first call took %v, want 20ms", alone[0])
	}
}

// A detour sends requests to a server instead of the host that they name.
type detour struct{ to *url.URL }

func (d detour) RoundTrip(req *http.Request) (*http.Response, error) {
	out := req.Clone(req.Context())
	out.Host, out.URL.Scheme, out.URL.Host = req.URL.Host, d.to.Scheme, d.to.Host
	return http.DefaultTransport.RoundTrip(out)
}

// The same over sockets, in real time: customer b is served while customer a waits for half a minute.
func TestFullLaneDelaysNoOtherCallOfItsBucketOverSockets(t *testing.T) {
	v, client := customersRig(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		resp, _ := v.RoundTrip(req)
		maps.Copy(w.Header(), resp.Header)
		w.WriteHeader(resp.StatusCode)
	}))
	defer server.Close()
	to, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	client.Transport.(*weir.Transport).Base = detour{to}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	v.as(t, "a", client, "/a")
	v.as(t, "b", client, "/a") // the bucket is named, and has three left
	var waiting sync.WaitGroup
	for range 8 {
		req := v.request(ctx, t, "a", "/a")
		waiting.Go(func() {
			if resp, err := client.Do(req); err == nil {
				resp.Body.Close()
				t.Error("a call of customer a was served, want it to wait")
			}
		})
	}
	inLane := func() bool {
		return slices.ContainsFunc(client.Transport.(*weir.Transport).Snapshot(), func(l weir.LaneState) bool { return l.Key == "a" && l.Requests == 8 })
	}
	for began := time.Now(); !inLane(); time.Sleep(time.Millisecond) {
		if time.Since(began) > 10*time.Second {
			t.Fatal("the lane of customer a does not have its eight calls within 10 s")
		}
	}
	time.Sleep(50 * time.Millisecond) // they are in line then, or soon
	if took := v.as(t, "b", client, "/a"); took > 10*time.Second {
		t.Errorf("the call of customer b took %v, want 10 s at most", took)
	}
	cancel()
	waiting.Wait()
}

// A forecast covers the line of the bucket, names the lane that delays, and leaves nothing behind.
func TestForecastOfLanesAndBucket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, client := customersRig(t)
		transport := client.Transport.(*weir.Transport)
		for _, customer := range []string{"a", "b", "b", "b", "b"} { // the bucket is named, and spent
			v.as(t, customer, client, "/a")
		}
		time.Sleep(100 * time.Millisecond)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for range 3 {
			req := v.request(ctx, t, "c", "/a")
			wg.Go(func() {
				if resp, err := transport.RoundTrip(req); err == nil {
					resp.Body.Close()
				}
			})
			synctest.Wait()
		}
		for customer, want := range map[string]string{"a": "a", "b": "account"} {
			f, err := transport.Forecast(v.request(t.Context(), t, customer, "/a"))
			if err != nil || f.Lane != want || f.Waiting != 1 { // a call of c, with which it takes turns
				t.Errorf("forecast of customer %s = %+v, %v, want lane %q and 1 waiting", customer, f, err, want)
			}
		}
		cancel()
		wg.Wait()
	})
}

// A namer serves every call at once, names the bucket of its path, and records the order.
type namer struct {
	mu   sync.Mutex
	sent []string // customers and paths
}

func (n *namer) RoundTrip(req *http.Request) (*http.Response, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.sent = append(n.sent, customerOf(req)+req.URL.Path)
	header := http.Header{"X-Ratelimit-Bucket": {req.URL.Path}}
	return &http.Response{StatusCode: http.StatusOK, Header: header, Body: http.NoBody}, nil
}

func customerOf(req *http.Request) string { return req.Context().Value(customerKey{}).(string) }

// inLine returns the order, as customer and path, in which calls made in turn depart to an account
// of one call a second. The buckets of the paths are known.
func inLine(t *testing.T, calls ...string) (order []string) {
	synctest.Test(t, func(t *testing.T) {
		n := new(namer)
		transport := &weir.Transport{
			Base: n, Logger: slog.New(slog.DiscardHandler),
			Keys:      func(req *http.Request) []string { return []string{customerOf(req), "account"} },
			LimitsFor: limitsFor("account", throttle.LeakyBucket(1, time.Second)),
		}
		defer transport.Close()
		var wg sync.WaitGroup
		call := func(c string) {
			ctx := context.WithValue(t.Context(), customerKey{}, c[:1])
			req, _ := http.NewRequestWithContext(ctx, http.MethodGet, "https://discord.com"+c[1:], nil)
			resp, err := transport.RoundTrip(req)
			if err != nil {
				t.Error(err)
				return
			}
			resp.Body.Close()
		}
		for _, c := range []string{"a/x", "a/y", "a/z"} {
			call(c)
		}
		n.sent = nil
		for _, c := range calls {
			wg.Go(func() { call(c) })
			synctest.Wait()
			time.Sleep(time.Millisecond)
		}
		wg.Wait()
		order = n.sent
	})
	return order
}

// limitsFor returns the limit of one key. Others have none.
func limitsFor(key string, limit throttle.Limit) func(string) []throttle.Limit {
	return func(of string) []throttle.Limit {
		if of == key {
			return []throttle.Limit{limit}
		}
		return nil
	}
}

// Calls of one customer depart in the order of arrival, whatever buckets they need.
func TestBucketsOfOneCustomerGoInOrder(t *testing.T) {
	came := []string{"a/x", "a/x", "a/y", "a/x", "a/z", "a/z", "a/y", "a/x", "a/x", "a/y"}
	if order := inLine(t, came...); !slices.Equal(order, came) {
		t.Errorf("calls left as %v, want %v", order, came)
	}
}

// A customer that calls many buckets gets no more of the account than one that calls one.
func TestCustomerOfManyBucketsHasOneShare(t *testing.T) {
	order := inLine(t, "a/x", "a/y", "a/z", "a/x", "a/y", "a/z", "b/x", "b/x", "b/x")
	if want := []string{"a/x", "b/x", "a/y", "b/x", "a/z", "b/x", "a/x", "a/y", "a/z"}; !slices.Equal(order[1:], want[1:]) {
		t.Errorf("calls left as %v, want %v", order, want)
	}
}

// stirBuckets runs a random history: calls of many customers, routes and classes, some of which
// give up, while lanes are paused and tuned, and routes change their buckets.
func stirBuckets(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 1))
	v, client := customersRig(t)
	v.global = r.IntN(2) * 20
	transport := client.Transport.(*weir.Transport)
	transport.MaxLanes = 5 + r.IntN(40) // some customers share a lane, and some sub-lanes have no room
	paths := []string{"/a", "/b", "/c", "/flips", "/channels/1/x", "/channels/2/x"}
	any := func(of ...string) string { return of[r.IntN(len(of))] }
	var wg sync.WaitGroup
	for range 20 + r.IntN(60) {
		time.Sleep(time.Duration(r.IntN(100)) * time.Millisecond)
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(r.IntN(40_000))*time.Millisecond)
		ctx = weir.WithPriority(ctx, []weir.Priority{weir.PriorityLow, weir.PriorityNormal, weir.PriorityHigh}[r.IntN(3)])
		ctx = context.WithValue(ctx, customerKey{}, any("a", "b", "c", "d", "e", "f"))
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://discord.com/api/v10"+any(paths...), nil)
		if err != nil {
			t.Fatal(err)
		}
		if r.IntN(10) == 0 {
			if _, err := transport.Forecast(req); err != nil && ctx.Err() == nil {
				t.Logf("forecast: %v", err)
			}
		}
		wg.Go(func() {
			defer cancel()
			if resp, err := transport.RoundTrip(req); err == nil {
				resp.Body.Close()
			}
		})
		switch key := any("a", "b", "account"); r.IntN(12) {
		case 0:
			_ = transport.Pause(key, time.Duration(1+r.IntN(3000))*time.Millisecond)
		case 1:
			_ = transport.Pause(key, time.Hour)
			_ = transport.Resume(key)
		case 2:
			_ = transport.Reload()
		}
	}
	wg.Wait()
	for _, s := range transport.Snapshot() {
		if s.Waiting != 0 {
			t.Errorf("seed %d: %d calls wait in lane %q, want none", seed, s.Waiting, s.Key)
		}
	}
	time.Sleep(time.Minute)
	for _, path := range paths {
		for _, customer := range []string{"b", "c"} {
			if took := v.as(t, customer, client, path); took > time.Minute {
				t.Errorf("seed %d: a call of %s took %v afterwards", seed, path, took)
			}
		}
	}
}

// No call that needs buckets and several lanes stays in line, whatever happens.
func TestNobodyIsStuckInBuckets(t *testing.T) {
	seeds := uint64(300)
	if testing.Short() {
		seeds = 30
	}
	for seed := range seeds {
		synctest.Test(t, func(t *testing.T) { stirBuckets(t, seed) })
	}
}
