package limits_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/acceptance/harness"
	"github.com/weirgo/weir/internal/testserver"
	"github.com/weirgo/weir/throttle"
)

// Tiers of customers, and several limits together.

func TestEachTierHasItsOwnPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tiers := map[string][]throttle.Limit{
			"free.test": harness.Every(time.Second),
			"paid.test": {throttle.TokenBucket(10, time.Second, 2), throttle.SlidingLog(4, time.Minute)},
		}
		r := harness.PipeRig(t, &testserver.Vendor{}, &weir.Transport{
			Limits:    harness.Every(500 * time.Millisecond), // of keys without a tier
			LimitsFor: func(key string) []throttle.Limit { return tiers[key] },
		})
		done := make(chan harness.Answer)
		hosts := []string{"free.test", "paid.test", "none.test"}
		for _, host := range hosts {
			for range 5 {
				go func() { done <- r.To(host) }()
				synctest.Wait()
			}
		}
		for range 15 {
			r.Want("GET", <-done, 200)
		}
		ms := time.Millisecond
		for host, want := range map[string][]time.Duration{
			"free.test": harness.Spaced(0, time.Second, 5),
			"paid.test": {0, 0, 100 * ms, 200 * ms, time.Minute},
			"none.test": harness.Spaced(0, 500*ms, 5),
		} {
			of := r.Vendor.Arrivals().Filter(func(a testserver.Arrival) bool { return a.ID == host })
			harness.WantEqual(t, "arrivals of "+host, harness.Instants(of), want)
		}
	})
}

// A worker loops under a second's, a minute's and a day's limit for more than a day. It departs at
// exactly the instants of a separate calculation.
func TestSecondMinuteAndDayHoldTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const calls = 20_600
		transport := &weir.Transport{Base: harness.Stub{}, Limits: []throttle.Limit{
			throttle.TokenBucket(10, time.Second, 10),
			throttle.SlidingLog(500, time.Minute),
			throttle.FixedWindow(20_000, 24*time.Hour),
		}}
		defer transport.Close()
		req, _ := http.NewRequest(http.MethodGet, "http://vendor.test/", nil)
		start := time.Now() // midnight, as bubbles have it
		departed := make([]time.Duration, 0, calls)
		var tat time.Duration // of the bucket
		for i := range calls {
			at := max(0, tat-900*time.Millisecond)
			if i > 0 {
				at = max(at, departed[i-1])
			}
			if i >= 500 {
				at = max(at, departed[i-500]+time.Minute)
			}
			if i >= 20_000 {
				at = max(at, 24*time.Hour)
			}
			tat = max(tat, at) + 100*time.Millisecond
			departed = append(departed, at)
			resp, err := transport.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if got := time.Since(start); got != at {
				t.Fatalf("call %d left at %v, want %v", i, got, at)
			}
		}
	})
}

// No permit of one limit is spent if another holds the call.
func TestRefusalOfOneLimitBurnsNoPermitOfAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t, &testserver.Vendor{}, &weir.Transport{
			Limits: []throttle.Limit{throttle.TokenBucket(1, time.Hour, 3), harness.Named(throttle.TokenBucket(1, time.Second, 10), "tokens")},
			Cost: func(req *http.Request, l throttle.Limit) int {
				if l.Unit == "tokens" && req.URL.Path == "/big" {
					return 10
				}
				return 1
			},
		})
		r.Spend()
		// A token is missing: a caller that gives up has spent neither.
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		big := r.Path("/big")
		if got := r.Do(big.WithContext(ctx)); got.Err == nil {
			t.Errorf("GET /big = %d, want an error", got.Status)
		}
		for range 2 {
			r.Want("GET", r.Get(t.Context(), "a"), 200)
		}
		harness.WantEqual(t, "arrivals", harness.Instants(r.Vendor.Arrivals()), []time.Duration{0, 0, 0})
		if got := r.Transport.Snapshot()[0].Limits[0].Headroom; got != 0 {
			t.Errorf("headroom = %v, want 0", got)
		}
	})
}

// Spellings of one host are one key.
func TestHostsWrittenDifferentlyShareALane(t *testing.T) {
	for want, urls := range map[string][]string{
		"api.test":         {"http://api.test/", "http://API.test./", "http://api.test:80", "http://api.test.:80/", "http://api.test:"},
		"api.test:8080":    {"http://api.test:8080/", "http://api.Test.:8080/"},
		"[2001:db8::1]":    {"http://[2001:db8::1]/", "http://[2001:0DB8:0:0::1]:80/", "http://[2001:db8:0:0:0:0:0:1]"},
		"[fe80::1%en0]:81": {"http://[fe80::1%25en0]:81/", "http://[FE80:0::1%25EN0]:81/"},
	} {
		for _, url := range urls {
			if got := weir.ByHost(&http.Request{URL: harness.MustParse(url)}); got != want {
				t.Errorf("ByHost(%s) = %q, want %q", url, got, want)
			}
		}
	}
}

// Paths with identifiers as keys are a mistake that costs a quota for each. It is logged once,
// without the identifier.
func TestRawPathsAsKeysAreLoggedOnce(t *testing.T) {
	for name, tt := range map[string]struct {
		keys []string
		want string // like; "": nothing is logged
	}{
		"numbers":      {[]string{"api.test/users/8311/orders", "api.test/users/8312/orders"}, "api.test/users/*/orders"},
		"UUID":         {[]string{"/things/7b6c2b0e-8a6e-4d9f-9b0c-0b7a4a1f9f11"}, "/things/*"},
		"mail address": {[]string{"/users/canary8311@example.com"}, "/users/*"},
		"query":        {[]string{"/search/8311?name=canary"}, "/search/*"},
		"words":        {[]string{"api.test/users/orders", "api.test/users"}, ""},
		"versions":     {[]string{"api.test/v1/users", "/v2.1/users", "/v1beta1/users", "/2010-04-01/Accounts"}, ""},
		"host":         {[]string{"api2.test:8443", "[2001:db8::1]"}, ""},
		"template":     {[]string{"api2.test GET /users/{id}"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var log strings.Builder
			transport := &weir.Transport{Base: harness.Stub{}, Key: func(req *http.Request) string { return req.Header.Get("K") },
				Logger: slog.New(slog.NewTextHandler(&log, nil))}
			defer transport.Close()
			for _, key := range tt.keys {
				req, _ := http.NewRequest(http.MethodGet, "http://vendor.test/", nil)
				req.Header.Set("K", key)
				resp, err := transport.RoundTrip(req)
				if err != nil {
					t.Fatal(err)
				}
				io.Copy(io.Discard, resp.Body)
			}
			lines := strings.Count(log.String(), "\n")
			if tt.want == "" && lines > 0 {
				t.Errorf("logged %q, want nothing", &log)
			}
			if tt.want != "" && (lines != 1 || !strings.Contains(log.String(), "like="+tt.want+"\n")) {
				t.Errorf("logged %q, want like=%s once", &log, tt.want)
			}
			if strings.Contains(log.String(), "8311") || strings.Contains(log.String(), "canary") {
				t.Errorf("logged %q, want no identifier in it", &log)
			}
		})
	}
}
