package peerbench

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"golang.org/x/time/rate"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/backoff"
	"github.com/weirgo/weir/throttle"
)

// A stub answers at once. Its type and its body's are unknown to the libraries, so none can take a
// short cut.
type stub struct{ header http.Header }

func (s *stub) RoundTrip(req *http.Request) (*http.Response, error) {
	return &http.Response{
		Status:        "200 OK",
		StatusCode:    http.StatusOK,
		Proto:         "HTTP/1.1",
		ProtoMajor:    1,
		ProtoMinor:    1,
		Header:        s.header,
		Body:          &stubBody{left: 2},
		ContentLength: 2,
		Request:       req,
	}, nil
}

type stubBody struct{ left int }

func (b *stubBody) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, io.EOF
	}
	n := min(len(p), b.left)
	b.left -= n
	return n, nil
}

func (*stubBody) Close() error { return nil }

// plain is the header of most answers; quotas adds the fields of many vendors.
func plain() http.Header {
	return http.Header{
		"Content-Type":   {"application/json"},
		"Content-Length": {"2"},
		"Date":           {"Fri, 02 Jan 2026 03:04:05 GMT"},
		"Server":         {"vendor"},
	}
}

func quotas() http.Header {
	h := plain()
	h["Ratelimit-Limit"] = []string{"200"}
	h["Ratelimit-Remaining"] = []string{"17"}
	h["Ratelimit-Reset"] = []string{"1"}
	return h
}

// unlimited never delays a call, but is a limit.
func unlimited() []throttle.Limit {
	return []throttle.Limit{throttle.TokenBucket(1_000_000, time.Second, plenty)}
}

// ignored takes spans and drops them. Without a processor the SDK's spans would not record.
type ignored struct{}

func (ignored) OnStart(context.Context, sdktrace.ReadWriteSpan) {}
func (ignored) OnEnd(sdktrace.ReadOnlySpan)                     {}
func (ignored) Shutdown(context.Context) error                  { return nil }
func (ignored) ForceFlush(context.Context) error                { return nil }

func tracer() *sdktrace.TracerProvider {
	return sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(ignored{}))
}

func meter() *sdkmetric.MeterProvider {
	return sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()))
}

// BenchmarkRoundTrip compares round trips over the stub: GET requests whose
// context has a deadline, their answers read and closed. go-retryablehttp
// brings an http.Client of its own into each round trip, whose cost alone is
// http.Client's row.
func BenchmarkRoundTrip(b *testing.B) {
	base := &stub{plain()}
	limited := func() http.RoundTripper {
		return &Limited{Limiter: rate.NewLimiter(1e6, plenty), Base: base}
	}
	client := &http.Client{Transport: base}
	for _, who := range []struct {
		name string
		send func(*http.Request) (*http.Response, error)
	}{
		{"stub", base.RoundTrip},
		{"http.Client", client.Do},
		{"xtime", limited().RoundTrip},
		{"retryablehttp", Retryable(base).RoundTrip},
		{"xtime+retryablehttp", Retryable(limited()).RoundTrip},
		{"failsafehttp", Failsafe(base, FailsafeLimiter(1e9, time.Second)).RoundTrip},
		{"otelhttp", otelhttp.NewTransport(base, otelhttp.WithTracerProvider(tracer()), otelhttp.WithMeterProvider(meter())).RoundTrip},
		{"weir", (&weir.Transport{Base: base, Limits: unlimited()}).RoundTrip},
		{"weir-quotas", (&weir.Transport{Base: &stub{quotas()}, Limits: unlimited()}).RoundTrip},
		{"weir-no-guard", (&weir.Transport{Base: base, Limits: unlimited(), UnguardedResends: true}).RoundTrip},
		{"weir-no-retries", (&weir.Transport{Base: base, Limits: unlimited(), Retry: backoff.None}).RoundTrip},
		{"weir-both-off", (&weir.Transport{Base: base, Limits: unlimited(), Retry: backoff.None, UnguardedResends: true}).RoundTrip},
		{"weir-spans", (&weir.Transport{Base: base, Limits: unlimited(), TracerProvider: tracer()}).RoundTrip},
		{"weir-no-learning", (&weir.Transport{Base: base, Limits: unlimited(), Learn: weir.LearnOff}).RoundTrip},
		{"weir-no-learning-quotas", (&weir.Transport{Base: &stub{quotas()}, Limits: unlimited(), Learn: weir.LearnOff}).RoundTrip},
		{"weir-nothing-set", (&weir.Transport{Base: base}).RoundTrip},
	} {
		b.Run("who="+who.name, func(b *testing.B) { roundTrips(b, who.send, requests(b, 1)) })
	}
}

// BenchmarkLanes compares one key with ten thousand, each of them a lane. The stub's rows show what
// the requests alone cost the caches.
func BenchmarkLanes(b *testing.B) {
	base := &stub{plain()}
	for _, n := range []int{1, 10_000} {
		b.Run(fmt.Sprintf("who=stub/lanes=%d", n), func(b *testing.B) { roundTrips(b, base.RoundTrip, requests(b, n)) })
	}
	for _, n := range []int{1, 10_000} {
		b.Run(fmt.Sprintf("who=weir/lanes=%d", n), func(b *testing.B) {
			t := &weir.Transport{Base: base, Limits: unlimited()}
			roundTrips(b, t.RoundTrip, requests(b, n))
		})
	}
}

// requests returns one request for each of n hosts.
func requests(tb testing.TB, n int) []*http.Request {
	ctx := deadline(tb)
	all := make([]*http.Request, n)
	for i := range all {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("https://api-%d.vendor.test/v1/things", i), nil)
		if err != nil {
			tb.Fatal(err)
		}
		req.Header.Set("Accept", "application/json")
		all[i] = req
	}
	return all
}

func roundTrips(b *testing.B, send func(*http.Request) (*http.Response, error), reqs []*http.Request) {
	for _, req := range reqs { // lanes are made on first use
		exchange(b, send, req)
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		exchange(b, send, reqs[i])
		if i++; i == len(reqs) {
			i = 0
		}
	}
}

func exchange(b *testing.B, send func(*http.Request) (*http.Response, error), req *http.Request) {
	resp, err := send(req)
	if err != nil {
		b.Fatal(err)
	}
	var buf [64]byte
	for err == nil {
		_, err = resp.Body.Read(buf[:])
	}
	resp.Body.Close()
}
