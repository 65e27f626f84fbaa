package weir_test

import (
	"context"
	"net/http"
	"net/http/httptrace"
	"testing"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/backoff"
	"github.com/weirgo/weir/internal/acceptance/harness"
	"github.com/weirgo/weir/throttle"
)

// A looking is a base that looks at the context of a request as net/http does.
type looking struct{}

func (looking) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(req.Context())
	defer cancel(nil)
	if trace := httptrace.ContextClientTrace(ctx); trace != nil {
		trace.GetConn("api.example.com:80")
		trace.WroteHeaders()
		trace.GotFirstResponseByte()
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return harness.Stub{}.RoundTrip(req)
}

func BenchmarkRoundTrip(b *testing.B) {
	ctx, cancel := context.WithTimeout(b.Context(), time.Hour)
	defer cancel()
	req, _ := http.NewRequestWithContext(ctx, "GET", "http://api.example.com/v1/things", nil)
	for _, bench := range []struct {
		name      string
		transport http.RoundTripper
	}{
		{"stub", harness.Stub{}},
		{"bare", &weir.Transport{Base: harness.Stub{}, Limits: []throttle.Limit{throttle.TokenBucket(1e9, time.Second, 1e9)}, Retry: backoff.None, UnguardedResends: true}},
		{"metrics", &weir.Transport{Base: harness.Stub{}, Limits: []throttle.Limit{throttle.TokenBucket(1e9, time.Second, 1e9)}, Retry: backoff.None, UnguardedResends: true, MeterProvider: harness.NewMeterLog()}},
		{"whole", &weir.Transport{Base: harness.Stub{}, Limits: []throttle.Limit{throttle.TokenBucket(1e9, time.Second, 1e9)}}},
		{"looking", looking{}},
		{"whole/looking", &weir.Transport{Base: looking{}, Limits: []throttle.Limit{throttle.TokenBucket(1e9, time.Second, 1e9)}}},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				resp, err := bench.transport.RoundTrip(req)
				if err != nil {
					b.Fatal(err)
				}
				resp.Body.Close()
			}
		})
	}
}
