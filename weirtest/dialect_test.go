package weirtest_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/weirtest"
)

// Each dialect gives a time that Check reads, and at that time the vendor grants.
func TestDialectsGiveATimeThatCheckReads(t *testing.T) {
	for _, name := range weirtest.Dialects() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				vendor := weirtest.New(t, weirtest.TokenBucket(2, 3*time.Second, 1))
				vendor.Dialect, vendor.MaxRefusals = weirtest.Named(name), 2
				client := vendor.Client()
				get(t, client, vendor.URL) // granted
				get(t, client, vendor.URL) // refused for 1.5 s
				time.Sleep(1400 * time.Millisecond)
				get(t, client, vendor.URL)
				if n := counts(vendor); n["early"] != 1 {
					t.Fatalf("breaches = %v, want an early one: %v", n, vendor.Breaches())
				}
				time.Sleep(1100 * time.Millisecond) // a second refusal, 0.1 s before, is rounded up to 1 s
				if status, _ := get(t, client, vendor.URL); status != 200 || len(vendor.Breaches()) != 1 {
					t.Errorf("after 2.5 s: %d, breaches = %v", status, vendor.Breaches())
				}
			})
		})
	}
}

func TestDialectOfOnesOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		vendor := weirtest.New(t, weirtest.FixedWindow(5, time.Minute))
		var last weirtest.Answer
		vendor.Dialect = func(h http.Header, a weirtest.Answer) {
			last = a
			weirtest.Named("github")(h, a)
			h.Set("X-Mine", "yes")
		}
		_, header := get(t, vendor.Client(), vendor.URL)
		if header.Get("X-Mine") != "yes" || header.Get("X-RateLimit-Remaining") != "4" {
			t.Errorf("header = %v", header)
		}
		if !last.Granted || last.Wait != 0 || last.Limit != 5 || last.Remaining != 4 || last.Reset != time.Minute {
			t.Errorf("answer = %+v", last)
		}
	})
}

func TestNamedPanicsForAnUnknownName(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	weirtest.Named("retryafter")
}
