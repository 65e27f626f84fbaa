package learning_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/acceptance/harness"
	"github.com/weirgo/weir/internal/testserver"
	"github.com/weirgo/weir/throttle"
)

// A reportingVendor reports on every answer what is left.
type reportingVendor struct {
	name     string
	host     string // from which the transport knows the dialect
	limit    testserver.Limit
	style    testserver.Style
	slowest  time.Duration // answers take up to this; zero: they come at once
	workers  int
	calls    int
	eachCall bool // no call may leave above the ceiling; false: too much of the burst is in flight, or a window ends
}

// reportings are vendors with documented dialects.
func reportings() []reportingVendor {
	bucket := testserver.TokenBucket(200, time.Second, 20)
	return []reportingVendor{
		{"RateLimit with r and t, at once", "draft.vendor.example", bucket,
			testserver.Seen(testserver.RateLimit, testserver.UntilFree), 0, 64, 600, true},
		{"epoch of the next permit rounded down, as Auth0's", "api.vendor.example", bucket,
			testserver.Seen(testserver.Auth0, testserver.UntilNext), 5 * time.Millisecond, 64, 600, true},
		{"Shopify", "weir.myshopify.com", bucket, testserver.Shopify, 5 * time.Millisecond, 64, 600, true},
		{"OpenAI", "api.openai.com", bucket, testserver.OpenAI, 5 * time.Millisecond, 64, 600, true},
		{"Anthropic, at once", "api.anthropic.com", bucket, testserver.Anthropic, 0, 64, 600, true},
		{"Heroku, a slow link", "api.heroku.com", testserver.TokenBucket(200, time.Second, 50),
			testserver.Heroku, 80 * time.Millisecond, 64, 600, false},
		{"Printful, a slow bucket", "api.printful.com", testserver.TokenBucket(20, time.Second, 10),
			testserver.Printful, 5 * time.Millisecond, 16, 80, true},
		{"GitHub, a window", "api.github.com", testserver.FixedWindow(200, 2*time.Second),
			testserver.XRateLimitEpoch, 5 * time.Millisecond, 64, 500, false},
	}
}

// A drained is the outcome of a reporting's calls.
type drained struct {
	wall, ideal   time.Duration
	failed        int64
	refused, over int
}

// drain makes the workers' calls through an unconfigured transport.
func (r reportingVendor) drain(t *testing.T, serve func(http.Handler) (*testserver.Server, error)) (d drained) {
	vendor := &testserver.Vendor{
		Limits: []testserver.Limit{r.limit}, Styles: []testserver.Style{r.style, testserver.RetryAfterSeconds},
		Service: r.slowest / 2, Spread: r.slowest / 2,
	}
	server := testserver.Run(t, serve, vendor)
	tap := &testserver.Tap{Base: server.Transport()}
	transport := &weir.Transport{Base: tap, Logger: slog.New(slog.DiscardHandler)}
	defer transport.Close()
	client := &http.Client{Transport: transport}
	var made, failed atomic.Int64
	var wg sync.WaitGroup
	d.ideal = vendor.Fastest(r.calls)
	began := time.Now()
	for range r.workers {
		wg.Go(func() {
			for made.Add(1) <= int64(r.calls) {
				resp, err := client.Get("http://" + r.host + "/things")
				if err != nil {
					failed.Add(1)
					continue
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
				if resp.StatusCode != http.StatusOK {
					failed.Add(1)
				}
			}
		})
	}
	wg.Wait()
	d.wall, d.failed = time.Since(began), failed.Load()
	d.refused = vendor.Arrivals().Count(http.StatusTooManyRequests)
	d.over = len(testserver.Ceiling{Limit: r.limit}.Over(tap.Trips()))
	return d
}

// A client that keeps no more in flight than what is left is not refused, whatever the reset means,
// or without one. TestResetIsWaitedForAndServedAfter and TestLogIsUsedAsItGivesBack have such
// vendors over real sockets.
func TestReportedQuotaBoundsWhatLeaves(t *testing.T) {
	t.Parallel()
	const mostWall = 1.25 // times the need of a client that knows the limit
	for i, r := range reportings() {
		if i%3 > 0 && testing.Short() {
			continue // their dialects differ
		}
		t.Run(r.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := r.drain(t, testserver.Pipe)
				t.Logf("%v of %v, %d refused, %d above the ceiling", d.wall, d.ideal, d.refused, d.over)
				if d.failed > 0 {
					t.Errorf("%d calls of %d failed", d.failed, r.calls)
				}
				if d.refused > 0 {
					t.Errorf("%d calls were refused, want none", d.refused)
				}
				if most := time.Duration(mostWall * float64(d.ideal)); d.wall > most {
					t.Errorf("took %v, want %v at most", d.wall, most)
				}
				if r.eachCall && d.over > 0 {
					t.Errorf("%d calls left above the ceiling that answers reported, want none", d.over)
				}
			})
		})
	}
}

// A vendor reports its window in another unit, 33 minutes for two seconds, and also a reset. Callers
// wait exactly until the reset.
func TestResetEndsAWindowThatIsReportedLonger(t *testing.T) {
	for _, limit := range []testserver.Limit{testserver.FixedWindow(10, 2*time.Second), testserver.SlidingLog(10, 2*time.Second)} {
		synctest.Test(t, func(t *testing.T) {
			milliseconds := func(h http.Header, d testserver.Decision) {
				testserver.RateLimit(h, testserver.UntilNext(d))
				h.Set("RateLimit-Policy", strings.Replace(h.Get("RateLimit-Policy"), "w=2", "w=2000", 1))
			}
			r := harness.PipeRig(t, &testserver.Vendor{Limits: []testserver.Limit{limit}, Styles: []testserver.Style{milliseconds}, Service: 10 * time.Millisecond}, &weir.Transport{})
			r.Transport.Learn = weir.LearnOn
			var workers sync.WaitGroup
			began := time.Now()
			for range 4 {
				workers.Go(func() {
					for range 15 {
						r.Want("GET", r.Get(t.Context(), ""), http.StatusOK)
					}
				})
			}
			workers.Wait()
			if took := time.Since(began); took > 20*time.Second {
				t.Errorf("60 calls at %v took %v, want 20 s at most", limit, took)
			}
		})
	}
}

// A refusal with Retry-After, though much of the reported quota is left, is an outage: the pace afterwards is
// the one before, and not that of the time with the wait.
func TestRetryTimeDoesNotSlowReportedBucket(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		vendor := &testserver.Vendor{
			Limits: []testserver.Limit{testserver.TokenBucket(20, time.Second, 20)}, Service: 20 * time.Millisecond,
			Styles: []testserver.Style{testserver.Heroku}, Faults: []testserver.Fault{harness.Refuse(600, 600, "15")},
		}
		r := harness.PipeRig(t, vendor, new(weir.Transport))
		r.Callers(t.Context(), 2000).Wait()
		served := 0
		for _, a := range r.Vendor.Arrivals() {
			if a.Granted && a.At >= 50*time.Second && a.At < 80*time.Second {
				served++
			}
		}
		if served < 580 {
			t.Errorf("after a Retry-After of 15 s, %d calls were served in 30 s, want 580 at least", served)
		}
	})
}

// shortWindow is a vendor of five calls in five seconds, which reports what is left.
func shortWindow(service time.Duration) *testserver.Vendor {
	return &testserver.Vendor{
		Limits: []testserver.Limit{testserver.FixedWindow(5, 5*time.Second)}, Service: service, Spread: service / 2,
		Styles: []testserver.Style{testserver.XRateLimitEpoch, testserver.RetryAfterSeconds},
	}
}

// useShortWindow has callers of each rig use such a vendor for five minutes. It requires that nearly all of the last
// 36 windows is served, and few calls are refused.
func useShortWindow(t *testing.T, vendor *testserver.Vendor, rigs []*harness.Rig, callers, few int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var all []*harness.Callers
	for _, r := range rigs {
		all = append(all, r.Callers(ctx, callers))
	}
	time.Sleep(5 * time.Minute)
	cancel()
	for _, c := range all {
		c.Wait()
	}
	late := vendor.Arrivals().Filter(func(a testserver.Arrival) bool { return a.At > 2*time.Minute && a.At < 5*time.Minute })
	if served := len(late.Granted()); served < 36*5*95/100 || len(late)-served > few {
		t.Errorf("in 36 windows of 5 calls, %d were served and %d refused", served, len(late)-served)
	}
}

// All of a short window is in flight for longer than a second. No more calls depart until it ends.
func TestShortWindowOfSlowAnswersIsNotOverrun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		vendor := shortWindow(1200 * time.Millisecond)
		useShortWindow(t, vendor, []*harness.Rig{harness.PipeRig(t, vendor, new(weir.Transport))}, 400, 6)
	})
}

// A lane whose configured limit is too high spends a whole window at once, and may then sleep through the next one. It
// does not go on to use only every other one.
func TestEveryWindowIsUsed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		vendor := &testserver.Vendor{
			Limits: []testserver.Limit{testserver.FixedWindow(100, time.Minute)}, Styles: []testserver.Style{testserver.Heroku}, Service: 50 * time.Millisecond,
		}
		r := harness.PipeRig(t, vendor, &weir.Transport{Limits: []throttle.Limit{throttle.TokenBucket(5, time.Second, 5)}})
		callFor(r, 8, 12*time.Minute)
		late := vendor.Arrivals().Filter(func(a testserver.Arrival) bool { return a.At > 7*time.Minute && a.At < 12*time.Minute })
		if served := len(late.Granted()); served < 480 || len(late)-served > 3 {
			t.Errorf("in five windows of 100 calls, %d were served and %d refused, want 480 at least and 3 at most", served, len(late)-served)
		}
	})
}

// A log gives permits back after a period that is reported nowhere. Once it was seen to, a lane that has spent them is
// not silent for much longer than that.
func TestLogWithoutResetIsNotSilentForLong(t *testing.T) {
	t.Parallel()
	for range 3 {
		synctest.Test(t, func(t *testing.T) {
			vendor := &testserver.Vendor{
				Limits: []testserver.Limit{testserver.SlidingLog(20, time.Minute)}, Styles: []testserver.Style{testserver.Heroku},
				Service: 5 * time.Millisecond, Spread: 2500 * time.Microsecond,
			}
			r := harness.PipeRig(t, vendor, new(weir.Transport))
			const warm, whole = 5 * time.Minute, 20 * time.Minute
			callFor(r, 8, whole)
			last, longest := warm, time.Duration(0)
			late := vendor.Arrivals().Filter(func(a testserver.Arrival) bool { return a.At > warm && a.At < whole })
			for _, a := range late.Granted() {
				longest, last = max(longest, a.At-last), a.At
			}
			if longest = max(longest, whole-last); longest > 150*time.Second {
				t.Errorf("%d of 300 calls served, the longest silence %v, want 150 s at most", len(late.Granted()), longest)
			}
		})
	}
}
