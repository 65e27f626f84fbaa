package weir_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptrace"
	"testing"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/backoff"
	"github.com/weirgo/weir/throttle"
)

// A stub answers at once, with nothing.
type stub struct{}

func (stub) RoundTrip(req *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, ProtoMajor: 1, Header: stubHeader, Body: stubBody{}, Request: req}, nil
}

var stubHeader = http.Header{"Content-Type": {"application/json"}, "Date": {"Fri, 20 Nov 2026 12:00:00 GMT"}, "Server": {"x"}, "Content-Length": {"0"}}

type stubBody struct{}

func (stubBody) Read([]byte) (int, error) { return 0, io.EOF }
func (stubBody) Close() error             { return nil }

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
	return stub{}.RoundTrip(req)
}

func BenchmarkRoundTrip(b *testing.B) {
	ctx, cancel := context.WithTimeout(b.Context(), time.Hour)
	defer cancel()
	req, _ := http.NewRequestWithContext(ctx, "GET", "http://api.example.com/v1/things", nil)
	for _, bench := range []struct {
		name      string
		transport http.RoundTripper
	}{
		{"stub", stub{}},
		{"bare", &weir.Transport{Base: stub{}, Limits: []throttle.Limit{throttle.TokenBucket(1e9, time.Second, 1e9)}, Retry: backoff.None, UnguardedResends: true}},
		{"metrics", &weir.Transport{Base: stub{}, Limits: []throttle.Limit{throttle.TokenBucket(1e9, time.Second, 1e9)}, Retry: backoff.None, UnguardedResends: true, MeterProvider: newMeterLog()}},
		{"whole", &weir.Transport{Base: stub{}, Limits: []throttle.Limit{throttle.TokenBucket(1e9, time.Second, 1e9)}}},
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
