package learning_test

import (
	"context"
	"math/rand/v2"
	"net/http"
	"sort"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/acceptance/harness"
	"github.com/weirgo/weir/internal/testserver"
	"github.com/weirgo/weir/throttle"
)

// A configured limit is never exceeded, whatever the server reports, refuses and serves afterwards.
func TestConfiguredLimitIsNeverExceeded(t *testing.T) {
	t.Parallel()
	const troubled, recovery = 10 * time.Second, 120 * time.Second
	const whole = troubled + recovery + 10*time.Second
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var sent testserver.Arrivals
		began := time.Now()
		client := harness.LearningFrom(t, func(*http.Request) (http.Header, int, error) {
			mu.Lock()
			defer mu.Unlock()
			sent = append(sent, testserver.Arrival{At: time.Since(began)})
			header := harness.Reported(1_000_000, 1_000_000-len(sent), time.Hour)
			if at := time.Since(began); at < troubled && rand.N(20) == 0 {
				if rand.N(2) == 0 {
					header.Set("Retry-After-Ms", strconv.Itoa(rand.N(300)))
				}
				return header, 429, nil
			}
			return header, 200, nil
		})
		client.Transport.(*weir.Transport).Limits = []throttle.Limit{throttle.TokenBucket(40, time.Second, 10)}
		ctx, cancel := context.WithTimeout(t.Context(), whole)
		defer cancel()
		var line sync.WaitGroup
		for range 32 {
			line.Go(func() {
				for ctx.Err() == nil {
					harness.Call(client, "http://vendor.example/", time.Hour)
				}
			})
		}
		line.Wait()
		const tolerance = 2 // permits that may leave late, beside timely ones
		if got := sent.BurstAt(40, time.Second); got > 10+tolerance {
			t.Errorf("burst above 40/s = %d, want 10, and %d for late ones, at most", got, tolerance)
		}
		if last := len(sent) - sort.Search(len(sent), func(i int) bool { return sent[i].At >= troubled+recovery }); last < 380 {
			t.Errorf("%d calls in the last 10 s of %v, want 380 of the configured 400 at least", last, whole)
		}
	})
}

// A vendor's limit lowered below the configured one is learned, and so is its rise: the lane
// returns to its configured rate by itself. At 5/s, with nothing but 429, that takes about 400
// calls.
func TestConfiguredRateIsBackByItself(t *testing.T) {
	t.Parallel()
	for name, styles := range map[string][]testserver.Style{
		"bare": nil, "Retry-After": {testserver.RetryAfterMillis}, "quotas": {testserver.XRateLimitEpoch, testserver.RetryAfterSeconds},
	} {
		synctest.Test(t, func(t *testing.T) {
			vendor := &testserver.Vendor{
				Limits: []testserver.Limit{testserver.TokenBucket(200, time.Second, 20)}, Styles: styles, Service: 5 * time.Millisecond,
			}
			r := harness.PipeRig(t, vendor, &weir.Transport{Limits: []throttle.Limit{throttle.TokenBucket(20, time.Second, 5)}})
			ctx, cancel := context.WithCancel(t.Context())
			var line sync.WaitGroup
			for range 16 {
				line.Go(func() {
					for ctx.Err() == nil {
						r.Want(name+" GET", r.Get(context.Background(), ""), 200)
					}
				})
			}
			rate := func(after, over time.Duration) float64 {
				time.Sleep(after)
				before := len(r.Vendor.Arrivals().Granted())
				time.Sleep(over)
				return float64(len(r.Vendor.Arrivals().Granted())-before) / over.Seconds()
			}
			if got := rate(time.Second, 5*time.Second); got < 19.5 {
				t.Errorf("%s: %.1f/s before the first refusal, want the configured 20/s", name, got)
			}
			vendor.SetLimits(testserver.TokenBucket(5, time.Second, 2))
			if got := rate(10*time.Second, 20*time.Second); got < 4.5 {
				t.Errorf("%s: %.1f/s of the vendor's 5/s", name, got)
			}
			vendor.SetLimits(testserver.TokenBucket(200, time.Second, 20))
			got := 0.0
			for range 40 {
				if got = rate(0, 10*time.Second); got >= 19.5 {
					break
				}
			}
			if got < 19.5 {
				t.Errorf("%s: %.1f/s 400 s after the vendor was back at 200/s, want the configured 20/s", name, got)
			}
			if got := r.Learned(); got.Rate > 0 && got.Rate < 18 {
				t.Errorf("%s: the snapshot says %+v of a lane that is served 20/s", name, got)
			}
			cancel()
			line.Wait()
		})
	}
}

// A limit in tokens, or of a day, says nothing of how many calls a second a vendor serves: that is
// found as if nothing were configured.
func TestRateBesideLimitsOfOtherKindsIsFound(t *testing.T) {
	t.Parallel()
	limits := map[string]throttle.Limit{
		"tokens": harness.Named(throttle.TokenBucket(1_000_000, time.Minute, 1_000_000), "tokens"),
		"a day":  throttle.FixedWindow(1_000_000, 24*time.Hour),
	}
	for name, limit := range limits {
		for _, replicas := range []int{1, 3} {
			if testing.Short() && (replicas > 1) != (name == "a day") {
				continue // to the race detector one fleet is enough
			}
			synctest.Test(t, func(t *testing.T) {
				vendor := &testserver.Vendor{
					Limits: []testserver.Limit{testserver.TokenBucket(5, time.Second, 20)}, Styles: []testserver.Style{testserver.RetryAfterMillis}, Service: 5 * time.Millisecond,
				}
				rigs := []*harness.Rig{harness.PipeRig(t, vendor, &weir.Transport{Limits: []throttle.Limit{limit}})}
				if replicas > 1 {
					rigs = harness.NewFleet(t, replicas, vendor, limit).Replicas
				}
				warm, whole := 120*time.Second, 240*time.Second
				if testing.Short() {
					warm, whole = 90*time.Second, 150*time.Second
				}
				var all sync.WaitGroup
				for _, r := range rigs {
					r.Transport.Cost = func(*http.Request, throttle.Limit) int { return 10 }
					all.Go(func() { callFor(r, 18/replicas, whole) })
				}
				all.Wait()
				served, refused := 0, 0
				for _, a := range vendor.Arrivals() {
					switch {
					case a.At < warm:
					case a.Granted:
						served++
					default:
						refused++
					}
				}
				most := int(5 * (whole - warm).Seconds())
				if served < most*95/100 || refused > most/10 {
					t.Errorf("a limit of %s, %d processes: %d of %d calls served and %d refused, want %d at least and %d at most", name, replicas, served, most, refused, most*95/100, most/10)
				}
			})
		}
	}
}
