package weirtest_test

import (
	"math"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/weirtest"
)

func TestVendorRecordsArrivals(t *testing.T) {
	everywhere(t, func(t *testing.T) {
		vendor := weirtest.New(t, weirtest.FixedWindow(1, 365*24*time.Hour))
		vendor.RefusalStatus = 403
		client := vendor.Client()
		get(t, client, vendor.URL+"/a")
		get(t, client, "https://api.example/b")
		got := vendor.Arrivals()
		if len(got) != 2 {
			t.Fatalf("Arrivals() = %+v, want 2", got)
		}
		if a := got[0]; a.Method != "GET" || a.Path != "/a" || a.Status != 200 || !a.Granted {
			t.Errorf("first = %+v", a)
		}
		if a := got[1]; a.Path != "/b" || a.Status != 403 || a.Granted || a.At < got[0].At {
			t.Errorf("second = %+v", a)
		}
	})
}

// A program's own server has no connections that the vendor knows.
func TestVendorServesBehindAnyServer(t *testing.T) {
	vendor := &weirtest.Vendor{Delivery: 1, Faults: []weirtest.Fault{asked(1, "10")}}
	server := httptest.NewServer(vendor)
	defer server.Close()
	get(t, server.Client(), server.URL)
	get(t, server.Client(), server.URL)
	if n := counts(vendor); n["early"] != 1 {
		t.Errorf("breaches = %v, want an early one", n)
	}
}

// A handler's own refusals give times by Retry-After alone: a reset beside them is
// that of permits that remain.
func TestHandlerRefuses(t *testing.T) {
	everywhere(t, func(t *testing.T) {
		vendor := weirtest.New(t, weirtest.FixedWindow(10, 365*24*time.Hour))
		vendor.Dialect, vendor.Delivery = weirtest.Named("github"), 1
		vendor.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/wait" {
				w.Header().Set("Retry-After", "10")
			}
			w.WriteHeader(503)
		})
		client := vendor.Client()
		get(t, client, vendor.URL+"/free")
		time.Sleep(time.Millisecond)
		get(t, client, vendor.URL+"/wait")
		vendor.Check(t)
		time.Sleep(time.Millisecond)
		get(t, client, vendor.URL+"/free")
		if n := counts(vendor); n["pause"] != 1 {
			t.Errorf("breaches = %v, want one of the pause", n)
		}
	})
}

func TestMistakesPanic(t *testing.T) {
	for what, mistake := range map[string]func(){
		"weirtest: the zero Limit is not valid":                               func() { weirtest.New(t, weirtest.Limit{}) },
		"weirtest: New did not make this Vendor":                              func() { new(weirtest.Vendor).Transport() },
		"weirtest: sliding-log 0/1s is not positive":                          func() { weirtest.SlidingLog(0, time.Second) },
		"weirtest: concurrency 0 is not positive":                             func() { weirtest.InFlight(0) },
		"weirtest: token-bucket 1/2000000h0m0s burst 2 is too large to count": func() { weirtest.TokenBucket(1, 2_000_000*time.Hour, 2) },
	} {
		func() {
			defer func() {
				if got := recover(); got != what {
					t.Errorf("panic = %v, want %q", got, what)
				}
			}()
			mistake()
		}()
	}
}

// Goroutines of one bubble may each make a vendor at the same time.
func TestVendorsOfOneBubbleBeginTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				if url := weirtest.New(t).URL; url != "http://vendor.test" {
					t.Errorf("a vendor is at %s, not in the bubble", url)
				}
			})
		}
		wg.Wait()
	})
}

// A GraphQL API refuses under 200.
func TestVendorThatRefusesUnder200(t *testing.T) {
	everywhere(t, func(t *testing.T) {
		vendor := weirtest.New(t, weirtest.FixedWindow(1, 365*24*time.Hour))
		vendor.RefusalStatus, vendor.MaxRefusals = 200, 2
		vendor.Dialect = weirtest.Named("retry-after")
		client := vendor.Client()
		for range 3 {
			get(t, client, vendor.URL)
		}
		if n := counts(vendor); n["early"] != 1 {
			t.Errorf("breaches = %v, want an early one", n)
		}
	})
}

// A limit of the longest time is one.
func TestLongestLimits(t *testing.T) {
	for _, l := range []weirtest.Limit{weirtest.SlidingLog(1, math.MaxInt64), weirtest.FixedWindow(1, math.MaxInt64), weirtest.TokenBucket(1, math.MaxInt64-1, 1)} {
		vendor := &weirtest.Vendor{Limits: []weirtest.Limit{l}}
		for i, want := range []int{http.StatusOK, http.StatusTooManyRequests} {
			answer := httptest.NewRecorder()
			vendor.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/", nil))
			if answer.Code != want {
				t.Errorf("%v: answer %d is %d, want %d", l, i+1, answer.Code, want)
			}
		}
	}
}
