package learning_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/acceptance/harness"
	"github.com/weirgo/weir/internal/testserver"
	"github.com/weirgo/weir/throttle"
)

// 2,000 calls at a hidden 200/s burst 20 take 9.9 s. The order of goroutines is random, so the
// bounds are looser than those of the simulator's medians. A reported pause of a second is a tenth
// of it, and one of 150 runs took 1.43.
func TestHiddenLimitIsFound(t *testing.T) {
	t.Parallel()
	const ideal = 9900 * time.Millisecond
	told := []throttle.Limit{throttle.TokenBucket(250, time.Second, 20)}
	tests := []struct {
		name   string
		styles []testserver.Style
		limits []throttle.Limit
		wall   float64 // of the ideal, at most
		most   int     // refusals
	}{
		{"nothing but 429", nil, nil, 1.10, 60},
		{"Retry-After in seconds", []testserver.Style{testserver.RetryAfterSeconds}, nil, 1.60, 30},
		{"Retry-After in milliseconds", []testserver.Style{testserver.RetryAfterMillis}, nil, 1.10, 60},
		{"X-RateLimit", []testserver.Style{testserver.XRateLimitEpoch, testserver.RetryAfterSeconds}, nil, 1.35, 12},
		{"the IETF's fields", []testserver.Style{testserver.RateLimit, testserver.RetryAfterSeconds}, nil, 1.25, 12},
		{"coarse fields", []testserver.Style{testserver.Coarse}, nil, 1.35, 30},
		{"told too much, nothing but 429", nil, told, 1.10, 60},
		{"told too much, Retry-After in seconds", []testserver.Style{testserver.RetryAfterSeconds}, told, 1.45, 30},
	}
	if testing.Short() {
		tests = tests[:2] // to the race detector the others are the same
	}
	for _, test := range tests {
		synctest.Test(t, func(t *testing.T) {
			vendor := &testserver.Vendor{
				Limits: []testserver.Limit{testserver.TokenBucket(200, time.Second, 20)},
				Styles: test.styles, Service: 5 * time.Millisecond,
			}
			got := harness.DrainBy(harness.PipeRig(t, vendor, &weir.Transport{Limits: test.limits}), 2000)
			wall := got.Wall.Seconds() / ideal.Seconds()
			if wall > test.wall || got.Refused > test.most || got.Failed > 0 {
				t.Errorf("%s: %.2f of the ideal time, %d refused, %d failed, want at most %.2f, %d, 0",
					test.name, wall, got.Refused, got.Failed, test.wall, test.most)
			}
		})
	}
}

// The same over real sockets in real time: 2.9 s on an idle machine. A lane that does not find the
// limit takes a minute.
func TestHiddenLimitIsFoundInRealTime(t *testing.T) {
	vendor := &testserver.Vendor{
		Limits:  []testserver.Limit{testserver.TokenBucket(200, time.Second, 20)},
		Service: 5 * time.Millisecond,
	}
	got := harness.DrainBy(harness.SocketRig(t, vendor, new(weir.Transport)), 600)
	if got.Wall > 24*time.Second || got.Refused > 100 || got.Failed > 0 {
		t.Errorf("600 calls took %v, %d were refused, %d failed, want 24s, 100, 0 at most", got.Wall, got.Refused, got.Failed)
	}
}

// A correct limit stays in force to the permit, whatever the vendor reports on its successes.
func TestRightLimitIsNotLowered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		vendor := &testserver.Vendor{
			Limits: []testserver.Limit{testserver.TokenBucket(200, time.Second, 20)},
			Styles: []testserver.Style{testserver.Coarse}, Service: 5 * time.Millisecond,
		}
		r := harness.PipeRig(t, vendor, &weir.Transport{Limits: []throttle.Limit{throttle.TokenBucket(200, time.Second, 18)}})
		got := harness.DrainBy(r, 1000)
		if got.Wall > 4950*time.Millisecond || got.Refused > 0 || got.Failed > 0 {
			t.Errorf("1000 calls took %v, %d were refused, %d failed, want 4.95s, 0, 0 at most", got.Wall, got.Refused, got.Failed)
		}
	})
}

// A vendor without a limit is not slowed down for being slow.
func TestSlowVendorIsNotAskedOneByOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t, &testserver.Vendor{Service: 30 * time.Second}, new(weir.Transport))
		r.Callers(t.Context(), 64).Wait()
		got := harness.Instants(r.Vendor.Arrivals())
		if len(got) != 64 || got[63] > time.Second {
			t.Errorf("64 calls of 30 s each: the last arrived at %v, want within a second", got[len(got)-1])
		}
	})
}

// A vendor bounds calls in flight and answers after seconds, but refuses at once. Probes leave while the
// ones before are still being answered. A refusal does not hide that those are served. If answers say
// how many places are free, none left is not a quota that is spent.
func TestFewSlowPlacesAreUsed(t *testing.T) {
	t.Parallel()
	for _, style := range []testserver.Style{nil, testserver.Heroku, testserver.Fields{Limit: "X-RateLimit-Limit", Remaining: "X-RateLimit-Remaining"}.Write} {
		for _, of := range [...]struct {
			places int
			slow   time.Duration
		}{{2, 3 * time.Second}, {4, 12 * time.Second}, {5, 6 * time.Second}} {
			places, slow := of.places, of.slow
			if testing.Short() && places > 2 {
				continue
			}
			synctest.Test(t, func(t *testing.T) {
				vendor := &testserver.Vendor{Limits: []testserver.Limit{testserver.Concurrency(places)}, Service: slow, Spread: time.Second}
				if style != nil {
					vendor.Styles = []testserver.Style{style}
				}
				r := harness.PipeRig(t, vendor, new(weir.Transport))
				callFor(r, 16, 10*time.Minute)
				served, refused := 0, 0
				for _, a := range r.Vendor.Arrivals() {
					switch {
					case a.At < 5*time.Minute:
					case a.Granted:
						served++
					default:
						refused++
					}
				}
				could := float64(places) * 300 / (slow + 500*time.Millisecond).Seconds()
				if float64(served) < 0.5*could || refused > served {
					t.Errorf("%d places for %v, reported %v: in 5 min %d calls were served of %.0f, and %d refused", places, slow, style != nil, served, could, refused)
				}
			})
		}
	}
}

// A call that fails, is cancelled or panics does not delay the next one.
func TestCallWithoutAnswerLetsNextGo(t *testing.T) {
	broken := errors.New("broken")
	ways := map[string]func(ctx context.Context) (*http.Response, error){
		"fails":        func(context.Context) (*http.Response, error) { return nil, broken },
		"is cancelled": func(ctx context.Context) (*http.Response, error) { <-ctx.Done(); return nil, ctx.Err() },
		"panics":       func(context.Context) (*http.Response, error) { panic(broken) },
	}
	for name, way := range ways {
		synctest.Test(t, func(t *testing.T) {
			sent := 0
			transport := &weir.Transport{Base: harness.BaseFunc(func(req *http.Request) (*http.Response, error) {
				if sent++; sent == 1 {
					time.Sleep(10 * time.Millisecond)
					return way(req.Context())
				}
				return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader(""))}, nil
			})}
			defer transport.Close()
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			defer cancel()
			first, _ := http.NewRequestWithContext(ctx, http.MethodPost, "http://vendor.example/", nil)
			var wg sync.WaitGroup
			wg.Go(func() {
				defer func() { _ = recover() }()
				_, _ = transport.RoundTrip(first)
			})
			synctest.Wait()
			began := time.Now()
			second, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://vendor.example/", nil)
			if _, err := transport.RoundTrip(second); err != nil || time.Since(began) > 30*time.Millisecond {
				t.Errorf("after a call that %s the next took %v, %v", name, time.Since(began), err)
			}
			wg.Wait()
		})
	}
}

// A learned limit delays and never rejects: a call with a shorter deadline waits for it, and a cost
// beyond it passes.
func TestLearnedLimitRefusesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		vendor := &testserver.Vendor{Limits: []testserver.Limit{testserver.TokenBucket(1, time.Second, 1)}}
		r := harness.PipeRig(t, vendor, new(weir.Transport))
		harness.DrainBy(r, 40)
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		began := r.Now()
		for _, a := range r.Callers(ctx, 3).Wait() {
			if waited := a.At - began; a.Err != nil && waited < 190*time.Millisecond {
				t.Errorf("a call that a second's permit cannot serve was refused after %v: %v", waited, a.Err)
			}
		}
		// With another path than the failed calls, so that it is not their next try.
		costly := r.Request(weir.WithCost(t.Context(), 50), "")
		costly.URL.Path = "/costly"
		r.Want("GET of cost 50", r.Do(costly), 200)
	})
}

// Nothing departs before a reported time.
func TestLearnedLaneObeysRetryTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		vendor := &testserver.Vendor{
			Limits: []testserver.Limit{testserver.TokenBucket(50, time.Second, 5)}, Service: 5 * time.Millisecond,
			Styles: []testserver.Style{testserver.RetryAfterSeconds},
		}
		r := harness.PipeRig(t, vendor, new(weir.Transport))
		harness.DrainBy(r, 300)
		var refused, until time.Duration
		for _, a := range r.Vendor.Arrivals() {
			if a.At < until && a.At > refused { // others may arrive in that very instant
				t.Errorf("a call arrived at %v, before the reported %v", a.At, until)
			}
			if a.Status == http.StatusTooManyRequests {
				refused, until = a.At, max(until, a.At+time.Second)
			}
		}
	})
}

// callFor has workers call through a lane, one call after the other, for a time.
func callFor(r *harness.Rig, workers int, d time.Duration) {
	ctx, cancel := context.WithCancel(r.Context()) // a deadline would reject calls
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for ctx.Err() == nil {
				r.Get(ctx, "")
			}
		})
	}
	time.Sleep(d)
	cancel()
	all.Wait()
}
