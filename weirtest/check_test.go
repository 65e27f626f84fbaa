package weirtest_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/throttle"
	"github.com/weirgo/weir/weirtest"
)

func TestCheckCatchesAnEarlyRetry(t *testing.T) {
	everywhere(t, func(t *testing.T) {
		vendor := weirtest.New(t)
		vendor.Faults = []weirtest.Fault{asked(2, "10")}
		client := vendor.Client()
		for range 3 {
			get(t, client, vendor.URL) // the third repeats the second at once
		}
		said := check(t, vendor)
		for _, part := range []string{
			"weirtest: early: request 3 came ", " s before the time that the answer to request 2 gave (Retry-After: 10)",
		} {
			if !strings.Contains(said, part) {
				t.Errorf("Check says %q, want %q in it", said, part)
			}
		}
		if n := counts(vendor); len(n) != 1 {
			t.Errorf("breaches = %v, want an early one alone", n)
		}
	})
}

// Retries sent at once, each on a new connection. Any other request may be on its way for as long as
// the test takes.
func TestCheckKnowsARetryByItsID(t *testing.T) {
	everywhere(t, func(t *testing.T) {
		vendor := weirtest.New(t)
		vendor.Delivery = time.Minute
		vendor.Faults = []weirtest.Fault{asked(1, "60")}
		for range 2 {
			req, _ := http.NewRequest(http.MethodPost, vendor.URL, nil)
			req.Header.Set("X-Request-Id", "7")
			resp, err := vendor.Client().Do(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
		}
		get(t, vendor.Client(), vendor.URL)
		if n := counts(vendor); n["early"] != 1 || len(n) != 1 {
			t.Errorf("breaches = %v, want an early one alone", n)
		}
	})
}

// A client that sends its other calls during a pause.
func TestCheckCatchesCallsThroughAPause(t *testing.T) {
	everywhere(t, func(t *testing.T) {
		vendor := weirtest.New(t)
		vendor.Faults = []weirtest.Fault{asked(1, "10")}
		client := vendor.Client()
		get(t, client, vendor.URL+"/a")
		for i := range 5 {
			time.Sleep(150 * time.Millisecond)
			get(t, client, vendor.URL+"/b"+strconv.Itoa(i))
		}
		if n := counts(vendor); n["pause"] != 5 || len(n) != 1 {
			t.Errorf("breaches = %v, want 5 of the pause: %v", n, vendor.Breaches())
		}
		if said := check(t, vendor); !strings.Contains(said, "pause: request 2 came") || !strings.Contains(said, "pause: and 2 requests more") {
			t.Errorf("Check says %q", said)
		}
	})
}

func TestCheckCatchesCallsOverALimit(t *testing.T) {
	for _, limit := range []weirtest.Limit{
		weirtest.TokenBucket(1, time.Hour, 5),
		weirtest.FixedWindow(5, 365*24*time.Hour),
		weirtest.SlidingLog(5, time.Hour),
	} {
		everywhere(t, func(t *testing.T) {
			vendor := weirtest.New(t, limit)
			calls(t, vendor.Client(), vendor.URL, 1, 8)
			if n := counts(vendor); n["limit"] != 3 || len(n) != 1 {
				t.Errorf("breaches = %v, want 3 of the limit", n)
			}
			said := check(t, vendor)
			if !strings.Contains(said, "request 6 exceeded "+limit.String()+", as did 3 of 8; the test allows 0") {
				t.Errorf("Check says %q", said)
			}
			vendor.MaxRefusals = 3
			vendor.Check(t)
		})
	}
}

func TestCheckCatchesCallsInFlight(t *testing.T) {
	everywhere(t, func(t *testing.T) {
		vendor := weirtest.New(t, weirtest.InFlight(2))
		vendor.Handler = http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(time.Second) })
		calls(t, vendor.Client(), vendor.URL, 3, 1)
		if n := counts(vendor); n["limit"] != 1 {
			t.Errorf("breaches = %v, want 1 of the limit", n)
		}
	})
}

// A Transport below the limit, at a vendor that pauses once for another reason.
func TestCheckPassesAClientThatWaits(t *testing.T) {
	everywhere(t, func(t *testing.T) {
		vendor := weirtest.New(t, weirtest.TokenBucket(50, time.Second, 30))
		vendor.Dialect = weirtest.Named("retry-after")
		vendor.Faults = []weirtest.Fault{asked(20, "1")}
		transport := &weir.Transport{Base: vendor.Transport(), Limits: []throttle.Limit{throttle.TokenBucket(40, time.Second, 4)}}
		t.Cleanup(func() { transport.Close() })
		calls(t, &http.Client{Transport: transport}, vendor.URL, 8, 5)
		vendor.Check(t)
		if n := len(vendor.Arrivals()); n != 41 {
			t.Errorf("%d requests came, want 40 calls and a retry", n)
		}
	})
}

// Requests that were sent before the refusal arrived.
func TestCheckDoesNotBlameRequestsOnTheirWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		vendor := weirtest.New(t)
		vendor.Delivery = 50 * time.Millisecond
		vendor.Faults = []weirtest.Fault{asked(1, "1")}
		get(t, vendor.Client(), vendor.URL+"/a")
		time.Sleep(50 * time.Millisecond)
		get(t, vendor.Client(), vendor.URL+"/b") // on another connection
		vendor.Check(t)
		time.Sleep(time.Nanosecond)
		get(t, vendor.Client(), vendor.URL+"/c")
		if n := counts(vendor); n["pause"] != 1 {
			t.Errorf("breaches = %v, want one of the pause", n)
		}
	})
}

func TestPausesAreOfOneAccount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		vendor := weirtest.New(t)
		vendor.Key = func(r *http.Request) string { return r.URL.Path }
		vendor.Faults = []weirtest.Fault{asked(1, "1")}
		client := vendor.Client()
		get(t, client, vendor.URL+"/a")
		get(t, client, vendor.URL+"/b")
		vendor.Check(t)
	})
}
