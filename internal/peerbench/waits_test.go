package peerbench

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
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
	{"a loop that waits for `Retry-After`", Obedient},
	{"x/time/rate at 9/s with a burst of 9, and go-retryablehttp", func(base http.RoundTripper) http.RoundTripper {
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

// dialects are those of TestWhoWaits, by what docs/testing.md calls them.
var dialects = []struct{ name, title string }{
	{"retry-after", "`Retry-After`, seconds"}, {"retry-after-ms", "`Retry-After-Ms`"}, {"x-ratelimit", "`X-RateLimit-Reset`"}, {"", "nothing: bare 429s"},
}

// A waited is what weirtest finds wrong with a client.
type waited struct {
	requests, early, paused, refused, failed int
	seconds                                  float64
}

// near reports whether two runs agree but for that share.
func (w waited) near(other waited, share float64) bool {
	for _, pair := range [][2]int{
		{w.requests, other.requests}, {w.early, other.early}, {w.paused, other.paused}, {w.refused, other.refused}, {w.failed, other.failed},
	} {
		if most := max(pair[0], pair[1]); math.Abs(float64(pair[0]-pair[1])) > max(8, share*float64(most)) {
			return false
		}
	}
	return math.Abs(w.seconds-other.seconds) < max(0.2, share*other.seconds)
}

// said returns the rows of docs/testing.md, by dialect and client.
func said(t *testing.T) map[[2]string]waited {
	t.Helper()
	page, err := os.ReadFile("../../docs/testing.md")
	if err != nil {
		t.Fatal(err)
	}
	rows, dialect := map[[2]string]waited{}, ""
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 8 {
			continue
		}
		if title := strings.TrimSpace(cells[0]); title != "" {
			dialect = title
		}
		var w waited
		if _, err := fmt.Sscan(strings.Join(cells[2:], " "), &w.requests, &w.early, &w.paused, &w.refused, &w.failed, &w.seconds); err == nil {
			rows[[2]string{dialect, strings.TrimSpace(cells[1])}] = w
		}
	}
	return rows
}

// TestWhoWaits prints weirtest's findings for each client, and compares them with docs/testing.md.
// 16 workers make 20 calls each, to a vendor of 100 calls in each 10 s that answers in 5 ms, so
// 30 s are needed. It reports in one dialect, or sends bare 429s.
//
//	go -C internal/peerbench test -run TestWhoWaits -v
func TestWhoWaits(t *testing.T) {
	var table bytes.Buffer
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "dialect\tclient\trequests\tearly\tin a pause\trefused\tcalls failed\tseconds")
	rows := said(t)
	for _, dialect := range dialects {
		for _, who := range clients {
			var got waited
			synctest.Test(t, func(t *testing.T) { got = waits(t, dialect.name, who.over) })
			fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%d\t%d\t%.1f\n", dialect.name, who.name, got.requests, got.early, got.paused, got.refused, got.failed, got.seconds)
			want, ok := rows[[2]string{dialect.title, who.name}]
			if !ok {
				want, ok = rows[[2]string{"any", who.name}]
			}
			share := 0.1
			if strings.Contains(who.name, "loop") { // whose waits are random
				share = 0.75
			}
			if !ok || !got.near(want, share) {
				t.Errorf("%s, %s: %+v, and docs/testing.md says %+v", dialect.title, who.name, got, want)
			}
		}
	}
	w.Flush()
	t.Log("\n" + table.String())
}

// waits runs a client.
func waits(t *testing.T, dialect string, over func(http.RoundTripper) http.RoundTripper) waited {
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
	return waited{len(vendor.Arrivals()), count["early"], count["pause"], count["limit"], int(failed.Load()), took.Seconds()}
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
