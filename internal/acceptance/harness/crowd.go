package harness

import (
	"flag"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/backoff"
	"github.com/weirgo/weir/throttle"
)

// ManyLanes is the size of the benchmarks of the lane table. The default is small enough for CI;
// the documented figures come from
//
//	go test -run '^$' -bench Lanes -lanes 1000000
var ManyLanes = flag.Int("lanes", 10_000, "most lanes of BenchmarkLanes")

// A Crowd is a transport with many lanes, and a request to send through them.
type Crowd struct {
	Transport *weir.Transport
	Req       *http.Request
	Keys      []string
}

// NewCrowd returns a transport over a Stub, with keys for a number of lanes.
func NewCrowd(lanes, maxLanes int, limits ...throttle.Limit) *Crowd {
	f := &Crowd{
		Transport: &weir.Transport{
			Base: Stub{}, Limits: limits, MaxLanes: maxLanes, Retry: backoff.None, UnguardedResends: true,
			Key:    func(req *http.Request) string { return req.URL.Host },
			Logger: slog.New(slog.DiscardHandler),
		},
		Req: &http.Request{Method: http.MethodGet, URL: &url.URL{Scheme: "http"}, Header: http.Header{}},
	}
	for i := range lanes {
		f.Keys = append(f.Keys, "account-"+strconv.Itoa(i))
	}
	return f
}

// Call sends a request through one lane.
func (f *Crowd) Call(b *testing.B, key string) {
	f.Req.URL.Host = key
	resp, err := f.Transport.RoundTrip(f.Req)
	if err != nil {
		b.Fatal(err)
	}
	resp.Body.Close()
}

// Open sends one request through each lane.
func (f *Crowd) Open(b *testing.B) {
	for _, key := range f.Keys {
		f.Call(b, key)
	}
}

// Heap returns the bytes in use.
func Heap() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// Wide is a limit that never delays a call.
var Wide = throttle.TokenBucket(1e9, time.Second, 1e9)

// A Stub answers at once, with an empty body.
type Stub struct{}

// RoundTrip implements [http.RoundTripper].
func (Stub) RoundTrip(req *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, ProtoMajor: 1, Header: stubHeader, Body: StubBody{}, Request: req}, nil
}

var stubHeader = http.Header{"Content-Type": {"application/json"}, "Date": {"Fri, 20 Nov 2026 12:00:00 GMT"}, "Server": {"x"}, "Content-Length": {"0"}}

// A StubBody is empty.
type StubBody struct{}

// Read returns io.EOF.
func (StubBody) Read([]byte) (int, error) { return 0, io.EOF }

// Close does nothing.
func (StubBody) Close() error { return nil }
