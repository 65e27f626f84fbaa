package peerbench

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"text/tabwriter"
	"time"

	"golang.org/x/time/rate"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/throttle"
	"github.com/weirgo/weir/weirtest"
)

// clients are the clients of TestWhoWaits.
var clients = []struct {
	name string
	over func(base http.RoundTripper) http.RoundTripper
}{
	{"net/http", func(base http.RoundTripper) http.RoundTripper { return base }},
	{"failsafehttp", func(base http.RoundTripper) http.RoundTripper { return Failsafe(base, nil) }},
	{"go-retryablehttp", Retryable},
	{"a loop of one's own", Obedient},
	{"x/time/rate and go-retryablehttp", func(base http.RoundTripper) http.RoundTripper {
		return Retryable(&Limited{Limiter: rate.NewLimiter(9, 9), Base: base})
	}},
	{"Weir, nothing configured", func(base http.RoundTripper) http.RoundTripper {
		return &weir.Transport{Base: base, Logger: slog.New(slog.DiscardHandler)}
	}},
	{"Weir, the limit configured", func(base http.RoundTripper) http.RoundTripper {
		return &weir.Transport{
			Base: base, Logger: slog.New(slog.DiscardHandler),
			Limits: []throttle.Limit{throttle.FixedWindow(100, 10*time.Second)},
		}
	}},
}

// TestWhoWaits prints weirtest's findings for each client. 16 workers make 20 calls each, to a
// vendor of 100 calls in each 10 s that answers in 5 ms, so 30 s are needed. It reports in one
// dialect, or sends bare 429s.
//
//	go -C internal/peerbench test -run TestWhoWaits -v
func TestWhoWaits(t *testing.T) {
	var table bytes.Buffer
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "dialect\tclient\trequests\tearly\tin a pause\trefused\tcalls failed\tseconds")
	for _, dialect := range []string{"retry-after", "retry-after-ms", "x-ratelimit", ""} {
		for _, who := range clients {
			t.Run(dialect+"/"+who.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { waits(t, w, dialect, who.name, who.over) })
			})
		}
	}
	w.Flush()
	t.Log("\n" + table.String())
}

// waits prints one line of the table.
func waits(t *testing.T, w *tabwriter.Writer, dialect, name string, over func(http.RoundTripper) http.RoundTripper) {
	vendor := weirtest.New(t, weirtest.FixedWindow(100, 10*time.Second))
	vendor.Handler = http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(5 * time.Millisecond) })
	vendor.Delivery = 2 * oneWay
	if dialect != "" {
		vendor.Dialect = weirtest.Named(dialect)
	}
	transport := over(distant{vendor.Transport()})
	client := &http.Client{Transport: named{transport}}
	ctx, cancel := context.WithCancel(context.Background()) // closes connections of bodies that failsafehttp leaves open
	var failed atomic.Int64
	var all sync.WaitGroup
	began := time.Now()
	for worker := range 16 {
		all.Go(func() {
			for call := range 20 {
				if !Succeeds(ctx, client, fmt.Sprintf("%s/%d/%d", vendor.URL, worker, call)) {
					failed.Add(1)
				}
			}
		})
	}
	all.Wait()
	took := time.Since(began)
	cancel()
	if c, ok := transport.(interface{ Close() error }); ok {
		c.Close()
	}
	count := make(map[string]int)
	for _, b := range vendor.Breaches() {
		count[b.Rule]++
	}
	fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%d\t%d\t%.1f\n", dialect, name, len(vendor.Arrivals()), count["early"], count["pause"], count["limit"], failed.Load(), took.Seconds())
}

// oneWay is the time from a client to the vendor, and back.
const oneWay = 2 * time.Millisecond

// A distant round tripper adds the trip to the vendor.
type distant struct{ base http.RoundTripper }

func (d distant) RoundTrip(req *http.Request) (*http.Response, error) {
	time.Sleep(oneWay)
	defer time.Sleep(oneWay)
	return d.base.RoundTrip(req)
}

// A named round tripper gives each call an ID, which its retries repeat. Calls
// differ by their paths.
type named struct{ base http.RoundTripper }

func (n named) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.Header.Set("X-Request-Id", req.URL.Path)
	return n.base.RoundTrip(req)
}

// Failsafehttp waits for Retry-After, and sends its retries at once to a vendor
// that asks for a wait in any other field.
func ExampleFailsafe() {
	for _, dialect := range []string{"retry-after", "retry-after-ms", "x-ratelimit"} {
		vendor := &weirtest.Vendor{
			Limits:   []weirtest.Limit{weirtest.TokenBucket(1, time.Second, 1)},
			Dialect:  weirtest.Named(dialect),
			Delivery: time.Nanosecond, // a call is over before the next one begins
		}
		server := httptest.NewServer(vendor)
		client := &http.Client{Transport: Failsafe(http.DefaultTransport, nil)}
		for range 2 {
			Succeeds(context.Background(), client, server.URL)
		}
		early := 0
		for _, b := range vendor.Breaches() {
			if b.Rule == "early" {
				early++
			}
		}
		fmt.Printf("%s: %d early\n", dialect, early)
		server.Close()
	}
	// Output:
	// retry-after: 0 early
	// retry-after-ms: 2 early
	// x-ratelimit: 2 early
}
