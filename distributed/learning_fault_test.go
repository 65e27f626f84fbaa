package distributed_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/distributed"
	"github.com/weirgo/weir/internal/redispipe"
	"github.com/weirgo/weir/internal/redistest"
	"github.com/weirgo/weir/internal/testserver"
)

// The clock of Redis is stepped back by an hour, and forward again, after a rate was learned. No
// call waits for it, and the rate stays known: forgetting it would cause more refusals.
func TestASteppedClockStopsNobodyWhoHasLearned(t *testing.T) {
	if tooSlowHere(t) {
		return
	}
	synctest.Test(t, func(t *testing.T) {
		f := newCompany(t)
		for range 3 {
			f.join()
		}
		f.drain(16, even(900, 3)...)
		var skew atomic.Int64
		for _, store := range f.stores {
			distributed.Skew(store, &skew)
		}
		for _, by := range []time.Duration{-time.Hour, 0} {
			before := f.refused()
			skew.Store(by.Microseconds())
			took := f.drain(16, even(300, 3)...) // in a second and a half
			if refused := f.refused() - before; took > 4*time.Second || refused > 10 {
				t.Errorf("with the clock at %v, 300 calls took %v, with %d refused", by, took, refused)
			}
		}
	})
}

// A process cut off from Redis keeps its share of the learned rate: half of a quarter, neither the
// whole rate nor zero.
func TestACutOffProcessKeepsItsShareOfWhatWasLearned(t *testing.T) {
	if tooSlowHere(t) {
		return
	}
	synctest.Test(t, func(t *testing.T) {
		f := newCompany(t)
		for range 4 {
			f.join()
		}
		f.drain(16, even(600, 4)...)
		f.agree(160, 240)
		distributed.Cut(f.stores[0])
		ctx, cancel := context.WithCancel(t.Context())
		var calling sync.WaitGroup
		for i, p := range f.all {
			for range 8 {
				calling.Go(func() { callAgain(ctx, p, f.server.URL, strconv.Itoa(i)) })
			}
		}
		time.Sleep(2 * time.Second)
		from := time.Since(f.vendor.Start())
		const seconds = 10
		time.Sleep(seconds * time.Second)
		cancel()
		calling.Wait()
		alone, others := 0, 0
		for _, a := range f.vendor.Arrivals() {
			switch {
			case a.At < from:
			case a.ID == "0":
				alone++
			default:
				others++
			}
		}
		t.Logf("cut off: %d in %d s, others: %d", alone, seconds, others)
		if alone < 18*seconds || alone > 32*seconds || others < 3*alone {
			t.Errorf("of 200/s a process that was cut off made %d calls in %d s, and three others %d", alone, seconds, others)
		}
	})
}

// Each loss of Redis applies what was learned by then: the first at 200/s, the second at 40/s.
func TestEachLossIsHeldToWhatWasLearnedLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newCompany(t)
		f.join()
		f.join()
		for _, rate := range []float64{200, 40} {
			f.vendor.SetLimits(testserver.TokenBucket(int(rate), time.Second, 5))
			f.drain(16, even(int(10*rate), 2)...)
			f.agree(0.8*rate, 1.15*rate)
			f.redis.Break(redispipe.Loading)
			f.drain(1, 1, 1)
			n := int(rate / 2)
			if took := f.drain(16, n, n); took < 1450*time.Millisecond { // each half of a half, in two seconds
				t.Errorf("of %v/s, two processes without Redis made %d calls each in %v", rate, n, took)
			}
			f.redis.Break(redispipe.Healthy)
			time.Sleep(2 * time.Second)
		}
	})
}

// Without Redis nothing bounds calls by reported quotas. Processes then take their share of the rate
// with which the rest lasts until a window ends, or at which a bucket is refilled, and are not
// refused. At first nothing but the reset is known.
func TestALossIsHeldToWhatWasReportedLast(t *testing.T) {
	for i, limit := range []testserver.Limit{testserver.FixedWindow(100, 10*time.Second), testserver.TokenBucket(20, time.Second, 60), testserver.SlidingLog(100, 10*time.Second)} {
		for _, before := range []int{15, 150} {
			if testing.Short() && (before < 100 || i > 0) {
				continue // each takes five seconds under the race detector
			}
			t.Run(fmt.Sprintf("%v after %d calls", limit, 2*before), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := newCompany(t, testserver.XRateLimitEpoch)
					f.vendor.Limits = []testserver.Limit{limit}
					f.join()
					f.join()
					f.drain(4, before, before)
					refused := f.refused()
					f.redis.Break(redispipe.Loading)
					if took := f.drain(16, 40, 40); f.refused() > refused || took > time.Minute {
						t.Errorf("without Redis 80 calls took %v, and %d were refused, want a minute at most and 0", took, f.refused()-refused)
					}
				})
			})
		}
	}
}

// A band is processes that share a lane over sockets, each with its own connection to Redis. Each
// has eight workers that call continuously until the test ends.
type band struct {
	vendor *testserver.Vendor
	links  []*redistest.Proxy
	all    []*weir.Transport
}

func newBand(t *testing.T, n int, vendor *testserver.Vendor) *band {
	t.Helper()
	server, err := testserver.Listen(vendor)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	ctx, cancel := context.WithCancel(t.Context())
	var calling sync.WaitGroup
	t.Cleanup(calling.Wait)
	t.Cleanup(cancel)
	b := &band{vendor: vendor}
	shared := redistest.Start(t)
	for i := range n {
		link := redistest.NewProxy(t, shared.Addr())
		p := member(t, link.Addr(), server.Transport())
		b.links, b.all = append(b.links, link), append(b.all, p)
		for range 8 {
			calling.Go(func() { callAgain(ctx, p, server.URL, strconv.Itoa(i)) })
		}
	}
	return b
}

// learned reports whether all processes know a rate between two bounds.
func (b *band) learned(least, most float64) bool {
	return !slices.ContainsFunc(b.all, func(p *weir.Transport) bool { rate := learnedRate(p); return rate < least || rate > most })
}

// member returns a process that shares its lanes through the Redis at an address.
func member(t *testing.T, addr string, base http.RoundTripper) *weir.Transport {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: addr})
	store := distributed.New(client, "company")
	store.Logger = slog.New(slog.DiscardHandler)
	p := &weir.Transport{Base: base, Store: store, Logger: slog.New(slog.DiscardHandler)}
	t.Cleanup(func() {
		_ = p.Close()
		_ = store.Close()
		_ = client.Close()
	})
	return p
}

// callAgain makes calls one after another, under a name.
func callAgain(ctx context.Context, p *weir.Transport, url, name string) {
	for ctx.Err() == nil {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return
		}
		req.Header.Set(testserver.DefaultIDHeader, name)
		if resp, err := p.RoundTrip(req); err == nil {
			_ = resp.Body.Close()
		}
	}
}
