package weirtest_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/hashicorp/go-retryablehttp"

	"github.com/weirgo/weir/weirtest"
)

// In a test, a vendor is served until the test ends.
func ExampleNew() {
	var t *testing.T // of the test
	vendor := weirtest.New(t, weirtest.TokenBucket(50, time.Second, 10))
	vendor.Dialect = weirtest.Named("retry-after")
	client := vendor.Client() // or yours, over vendor.Transport() or at vendor.URL
	for range 10 {
		resp, err := client.Get(vendor.URL)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	vendor.Check(t)
}

// A net/http client ignores refusals: its second call comes at once, and so does its third.
func ExampleVendor_Breaches() {
	vendor := &weirtest.Vendor{
		Limits:   []weirtest.Limit{weirtest.TokenBucket(1, time.Hour, 1)},
		Dialect:  weirtest.Named("retry-after"),
		Delivery: time.Nanosecond, // a call is over before the next one begins
	}
	server := httptest.NewServer(vendor)
	defer server.Close()
	for _, path := range []string{"/users/1", "/users/2", "/users/3", "/users/3"} {
		if resp, err := http.Get(server.URL + path); err == nil {
			resp.Body.Close()
		}
	}
	for _, b := range vendor.Breaches() {
		fmt.Println(b.Rule, b.Request)
	}
	// Output:
	// limit 2
	// pause 3
	// limit 3
	// early 4
	// limit 4
}

// The client of go-retryablehttp reads Retry-After and no other field. To a vendor
// that asks for a wait in milliseconds or by a reset, its retries come too early.
func ExampleNamed() {
	for _, dialect := range []string{"retry-after", "retry-after-ms", "x-ratelimit", "github"} {
		vendor := &weirtest.Vendor{
			Limits:   []weirtest.Limit{weirtest.TokenBucket(1, time.Second, 1)},
			Dialect:  weirtest.Named(dialect),
			Delivery: time.Nanosecond,
		}
		server := httptest.NewServer(vendor)
		client := retryablehttp.NewClient()
		client.Logger, client.RetryMax = nil, 1
		client.RetryWaitMin, client.RetryWaitMax = time.Millisecond, time.Millisecond
		for range 2 {
			if resp, err := client.Get(server.URL); err == nil {
				resp.Body.Close()
			}
		}
		early := 0
		for _, b := range vendor.Breaches() {
			if b.Rule == "early" {
				early++
			}
		}
		fmt.Printf("%s: %d early\n", dialect, early)
		client.HTTPClient.CloseIdleConnections()
		server.Close()
	}
	// Output:
	// retry-after: 0 early
	// retry-after-ms: 1 early
	// x-ratelimit: 1 early
	// github: 1 early
}

// A vendor whose third answer is a bare 429, and whose fifth never comes.
func ExampleFault() {
	vendor := &weirtest.Vendor{Faults: []weirtest.Fault{
		{First: 3, Last: 3, Status: http.StatusTooManyRequests},
		{First: 5, Last: 5, Hang: true},
	}}
	server := httptest.NewServer(vendor)
	defer server.Close()
	client := http.Client{Timeout: time.Second}
	for range 6 {
		if resp, err := client.Get(server.URL); err == nil {
			resp.Body.Close()
		}
	}
	for _, a := range vendor.Arrivals() {
		fmt.Print(a.Status, " ")
	}
	// Output: 200 200 429 200 0 200
}
