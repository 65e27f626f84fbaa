package weir_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/backoff"
	"github.com/weirgo/weir/internal/testserver"
	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// vendor opens somebody else's API. Real programs leave Base at its zero.
func vendor(faults ...testserver.Fault) (base *http.Transport, record *testserver.Vendor, closeIt func()) {
	record = &testserver.Vendor{Faults: faults}
	server, err := testserver.Pipe(record)
	if err != nil {
		panic(err)
	}
	return server.Transport(), record, server.Close
}

// A hundred calls per second at most, twenty of them at once. The vendor refuses the first call for
// a moment; the caller does not notice.
func Example() {
	base, record, closeVendor := vendor(testserver.Fault{Last: 1, Do: testserver.Answer, Header: http.Header{"Retry-After-Ms": {"5"}}})
	defer closeVendor()

	client := &http.Client{Transport: &weir.Transport{
		Base:   base,
		Limits: []throttle.Limit{throttle.TokenBucket(100, time.Second, 20)},
	}}
	resp, err := client.Get("http://api.example.com/v1/things")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	fmt.Println(resp.StatusCode, "after", len(record.Arrivals()), "attempts")
	// Output: 200 after 2 attempts
}

// A lane for each customer's account, with the limits of its tier. The key has
// the account as a hash only.
func Example_laneForEachAccount() {
	base, _, closeVendor := vendor()
	defer closeVendor()

	transport := &weir.Transport{
		Base: base,
		Key:  weir.ByHeader("X-Account"),
		LimitsFor: func(string) []throttle.Limit {
			return []throttle.Limit{throttle.TokenBucket(1, time.Hour, 1)}
		},
	}
	defer transport.Close()
	for _, account := range []string{"acme", "globex", "acme"} {
		// A call that must not wait states that.
		ctx := weir.WithMaxWait(context.Background(), time.Millisecond)
		req, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://api.example.com/", nil)
		req.Header.Set("X-Account", account)
		resp, err := transport.RoundTrip(req)
		if err != nil {
			fmt.Println(account, "would wait:", errors.Is(err, shaping.ErrDeadline))
			continue
		}
		resp.Body.Close()
		fmt.Println(account, resp.StatusCode)
	}
	// Output:
	// acme 200
	// globex 200
	// acme would wait: true
}

// A restarted program continues with the learned limits: here a file would keep them.
func ExampleTransport_ImportLearned() {
	base, _, closeVendor := vendor()
	defer closeVendor()

	known := map[string]json.RawMessage{"api.example.com": json.RawMessage(`{"version":1,"rate":50,"width":0.02}`)}
	transport := &weir.Transport{Base: base}
	defer transport.Close()
	if err := transport.ImportLearned(known); err != nil {
		fmt.Println(err) // of another version: those lanes start without knowledge
	}
	client := &http.Client{Transport: transport}
	resp, err := client.Get("http://api.example.com/")
	if err != nil {
		fmt.Println(err)
		return
	}
	resp.Body.Close()
	for _, lane := range transport.Snapshot() {
		fmt.Printf("%s: %.0f/s learned\n", lane.Key, lane.Learned.Rate)
	}
	known = transport.ExportLearned()
	fmt.Println(len(known), "lane to keep")
	// Output:
	// api.example.com: 50/s learned
	// 1 lane to keep
}

// Two limits of different units. The cost in tokens is an estimate, which the
// response corrects.
func ExampleSettle() {
	base, _, closeVendor := vendor()
	defer closeVendor()

	tokens := throttle.TokenBucket(1000, 24*time.Hour, 1000).Of("tokens")
	transport := &weir.Transport{
		Base:   base,
		Limits: []throttle.Limit{throttle.TokenBucket(10, time.Second, 10), tokens},
		Cost: func(_ *http.Request, limit throttle.Limit) int {
			if limit.Unit == "tokens" {
				return 400
			}
			return 1
		},
	}
	defer transport.Close()
	client := &http.Client{Transport: transport}
	resp, err := client.Get("http://api.example.com/")
	if err != nil {
		fmt.Println(err)
		return
	}
	resp.Body.Close()
	fmt.Printf("%.0f tokens at hand\n", transport.Snapshot()[0].Limits[1].Headroom)
	if err := weir.Settle(resp, "tokens", 150); err != nil {
		fmt.Println(err)
	}
	fmt.Printf("%.0f tokens at hand\n", transport.Snapshot()[0].Limits[1].Headroom)
	// Output:
	// 600 tokens at hand
	// 850 tokens at hand
}

// An error says which lane and limit held the call, and for how long.
func ExampleError() {
	base, _, closeVendor := vendor()
	defer closeVendor()

	daily := throttle.TokenBucket(1, 24*time.Hour, 1).Named("daily")
	client := &http.Client{
		Transport: &weir.Transport{Base: base, Limits: []throttle.Limit{daily}},
		Timeout:   time.Minute,
	}
	for range 2 {
		resp, err := client.Get("http://api.example.com/")
		var held *weir.Error
		if errors.As(err, &held) {
			fmt.Println(held.Lane, held.Limit, held.Wait.Round(time.Hour), held.Timeout())
			continue
		}
		resp.Body.Close()
		fmt.Println(resp.StatusCode)
	}
	// Output:
	// 200
	// api.example.com daily 24h0m0s true
}

// Values that age are made after the wait, for each attempt.
func ExampleTransport_prepare() {
	base, record, closeVendor := vendor(testserver.Fault{Last: 1, Do: testserver.Answer, Status: 503})
	defer closeVendor()
	record.IDHeader = "Authorization"

	attempt := 0
	transport := &weir.Transport{
		Base:  base,
		Retry: &backoff.Policy{Delay: backoff.Constant(time.Millisecond)},
		Prepare: func(req *http.Request) error {
			attempt++
			req.Header.Set("Authorization", fmt.Sprint("signature ", attempt))
			return nil
		},
	}
	defer transport.Close()
	resp, err := (&http.Client{Transport: transport}).Get("http://api.example.com/")
	if err != nil {
		fmt.Println(err)
		return
	}
	resp.Body.Close()
	for _, a := range record.Arrivals() {
		fmt.Println(a.ID, a.Status)
	}
	// Output:
	// signature 1 503
	// signature 2 200
}

func ExampleWithCost() {
	base, _, closeVendor := vendor()
	defer closeVendor()

	transport := &weir.Transport{Base: base, Limits: []throttle.Limit{throttle.TokenBucket(10, time.Hour, 10)}}
	defer transport.Close()
	for _, cost := range []int{8, 11} {
		ctx := weir.WithCost(context.Background(), cost)
		req, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://api.example.com/export", nil)
		resp, err := transport.RoundTrip(req)
		if err != nil {
			fmt.Println("never:", errors.Is(err, throttle.ErrExceedsBurst))
			continue
		}
		resp.Body.Close()
		fmt.Printf("%d, %.0f left\n", resp.StatusCode, transport.Snapshot()[0].Limits[0].Headroom)
	}
	// Output:
	// 200, 2 left
	// never: true
}

func ExampleWithRetry() {
	base, record, closeVendor := vendor(testserver.Fault{Do: testserver.Answer, Status: 503})
	defer closeVendor()

	client := &http.Client{Transport: &weir.Transport{Base: base}}
	ctx := weir.WithRetry(context.Background(), backoff.None)
	req, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://api.example.com/", nil)
	resp, err := client.Do(req)
	if err != nil {
		fmt.Println(err)
		return
	}
	resp.Body.Close()
	fmt.Println(resp.StatusCode, "after", len(record.Arrivals()), "attempt")
	// Output: 503 after 1 attempt
}

func ExampleByRoute() {
	key := weir.ByRoute("GET /users/{id}", "/search")
	for _, url := range []string{"https://api.example.com/users/17", "https://api.example.com/search?q=go", "https://api.example.com/"} {
		req, _ := http.NewRequest(http.MethodGet, url, nil)
		fmt.Println(key(req))
	}
	// Output:
	// api.example.com GET /users/{id}
	// api.example.com /search
	// api.example.com
}

// A tighter limit is tried out beside the one that is enforced. The snapshot counts its decision on
// each call.
func ExampleTransport_Snapshot() {
	base, _, closeVendor := vendor()
	defer closeVendor()

	transport := &weir.Transport{
		Base:   base,
		Limits: []throttle.Limit{throttle.TokenBucket(100, time.Second, 20)},
		Shadow: []throttle.Limit{throttle.TokenBucket(1, time.Hour, 2)},
	}
	defer transport.Close()
	client := &http.Client{Transport: transport}
	for range 5 {
		resp, err := client.Get("http://api.example.com/")
		if err != nil {
			fmt.Println(err)
			return
		}
		resp.Body.Close()
	}
	for _, lane := range transport.Snapshot() {
		fmt.Println(lane.Key, lane.Waiting, "in line")
		for _, count := range lane.Shadow {
			fmt.Printf("%d requests: enforced %v, shadow %v\n", count.Requests, count.Live, count.Candidate)
		}
	}
	// Output:
	// api.example.com 0 in line
	// 2 requests: enforced admitted, shadow admitted
	// 3 requests: enforced admitted, shadow held
}

// New limits apply at once, also to calls in line.
func ExampleTransport_SetLimits() {
	base, _, closeVendor := vendor()
	defer closeVendor()

	transport := &weir.Transport{Base: base, Limits: []throttle.Limit{throttle.TokenBucket(1, time.Hour, 1)}}
	defer transport.Close()
	client := &http.Client{Transport: transport}
	for range 2 {
		resp, err := client.Get("http://api.example.com/") // the second would wait an hour
		if err != nil {
			fmt.Println(err)
			return
		}
		resp.Body.Close()
		fmt.Println(resp.StatusCode)
		if err := transport.SetLimits(throttle.TokenBucket(1000, time.Second, 10)); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// 200
	// 200
}

// Lanes are metrics of the provider, or of the global one.
func ExampleTransport_metrics() {
	base, _, closeVendor := vendor()
	defer closeVendor()

	reader := metric.NewManualReader() // an exporter's, in a program
	transport := &weir.Transport{Base: base, MeterProvider: metric.NewMeterProvider(metric.WithReader(reader))}
	defer transport.Close()
	for range 3 {
		resp, err := (&http.Client{Transport: transport}).Get("http://api.example.com/things")
		if err != nil {
			fmt.Println(err)
			return
		}
		resp.Body.Close()
	}

	var collected metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &collected); err != nil {
		fmt.Println(err)
		return
	}
	for _, m := range collected.ScopeMetrics[0].Metrics {
		if sum, ok := m.Data.(metricdata.Sum[int64]); ok && m.Name == "weir.admissions" {
			lane, _ := sum.DataPoints[0].Attributes.Value("weir.lane")
			fmt.Println(m.Name, lane.AsString(), sum.DataPoints[0].Value)
		}
	}

	// Output:
	// weir.admissions api.example.com 3
}

// The waits of a program's own queue are spans, as a Transport's are.
func ExampleWaitHook() {
	spans := tracetest.NewSpanRecorder()
	limiter, err := throttle.Local{}.Limiter("jobs", throttle.LeakyBucket(100, time.Second))
	if err != nil {
		fmt.Println(err)
		return
	}
	queue := shaping.NewQueue(limiter)
	queue.Hook = weir.WaitHook("jobs", trace.NewTracerProvider(trace.WithSpanProcessor(spans)))
	for range 3 {
		if err := queue.Wait(context.Background()); err != nil {
			fmt.Println(err)
		}
	}
	var names []string
	for _, span := range spans.Ended() {
		names = append(names, span.Name())
	}
	fmt.Println(strings.Join(names, " "))
	// Output: weir.wait weir.wait
}
