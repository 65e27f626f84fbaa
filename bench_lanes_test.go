package weir_test

import (
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/backoff"
	"github.com/weirgo/weir/throttle"
)

// The benchmarks of the lane table. Their default is small enough for CI; the
// figures that the documents give come from
//
//	go test -run '^$' -bench Lanes -lanes 1000000
var manyLanes = flag.Int("lanes", 10_000, "most lanes of BenchmarkLanes")

// A crowd is a transport with many lanes, and a request to send through them.
type crowd struct {
	transport *weir.Transport
	req       *http.Request
	keys      []string
}

func newCrowd(lanes, maxLanes int, limits ...throttle.Limit) *crowd {
	f := &crowd{
		transport: &weir.Transport{
			Base: stub{}, Limits: limits, MaxLanes: maxLanes, Retry: backoff.None, UnguardedResends: true,
			Key:    func(req *http.Request) string { return req.URL.Host },
			Logger: slog.New(slog.DiscardHandler),
		},
		req: &http.Request{Method: http.MethodGet, URL: &url.URL{Scheme: "http"}, Header: http.Header{}},
	}
	for i := range lanes {
		f.keys = append(f.keys, "account-"+strconv.Itoa(i))
	}
	return f
}

func (f *crowd) call(b *testing.B, key string) {
	f.req.URL.Host = key
	resp, err := f.transport.RoundTrip(f.req)
	if err != nil {
		b.Fatal(err)
	}
	resp.Body.Close()
}

func (f *crowd) open(b *testing.B) {
	for _, key := range f.keys {
		f.call(b, key)
	}
}

func heap() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

func sizes() []int {
	sizes := []int{1}
	for n := 10_000; n < *manyLanes; n *= 10 {
		sizes = append(sizes, n)
	}
	return append(sizes, *manyLanes)
}

var wide = throttle.TokenBucket(1e9, time.Second, 1e9)

// The cost of a call does not grow with the number of lanes: one lane among
// many, and many in turn, which costs what the memory takes to be read.
func BenchmarkLanesCall(b *testing.B) {
	for _, lanes := range sizes() {
		for _, busy := range slices.Compact([]int{1, max(lanes/50, 1)}) {
			b.Run(fmt.Sprintf("lanes=%d/busy=%d", lanes, busy), func(b *testing.B) {
				f := newCrowd(lanes, lanes, wide)
				defer f.transport.Close()
				f.open(b)
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					f.call(b, f.keys[i%busy*(lanes/busy)])
				}
			})
		}
	}
}

// Memory of a lane, with the key's own bytes.
func BenchmarkLanesMemory(b *testing.B) {
	day := throttle.FixedWindow(20_000, 24*time.Hour)
	for _, tt := range []struct {
		name   string
		limits []throttle.Limit
	}{
		{"none", nil},
		{"bucket", []throttle.Limit{wide}},
		{"three", []throttle.Limit{throttle.TokenBucket(10, time.Second, 10), throttle.SlidingWindow(500, time.Minute), day}},
	} {
		b.Run(tt.name, func(b *testing.B) {
			for b.Loop() {
				f := newCrowd(*manyLanes, *manyLanes, tt.limits...)
				before := heap()
				f.open(b)
				b.ReportMetric(float64(heap()-before)/float64(*manyLanes), "B/lane")
				f.transport.Close()
			}
		})
	}
}

// Memory of a busy lane: one caller waits in it, with a goroutine of its own.
func BenchmarkLanesBusy(b *testing.B) {
	n := max(*manyLanes/50, 1)
	for b.Loop() {
		f := newCrowd(n, n, throttle.TokenBucket(1, time.Hour, 1))
		f.open(b)
		before := inUse()
		var waiting sync.WaitGroup
		for _, key := range f.keys {
			waiting.Go(func() {
				req := *f.req
				req.URL = &url.URL{Scheme: "http", Host: key}
				f.transport.RoundTrip(&req)
			})
		}
		for runtime.Gosched(); inLine(f.transport) < n; time.Sleep(time.Millisecond) {
		}
		b.ReportMetric(float64(inUse()-before)/float64(n), "B/waiter")
		f.transport.Close()
		waiting.Wait()
	}
}

func inLine(t *weir.Transport) (n int) {
	for _, lane := range t.Snapshot() {
		n += lane.Waiting
	}
	return n
}

// inUse is the heap and the stacks.
func inUse() int {
	h := heap()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return h + int(m.StackInuse)
}

// A key beyond the bound costs a look at a few lanes, however many there are:
// where one may go for it, and where none may and it shares one.
func BenchmarkLanesNewKey(b *testing.B) {
	for _, lanes := range sizes() {
		for name, limit := range map[string]throttle.Limit{"evicts": wide, "shares": throttle.TokenBucket(1e6, 1000*time.Hour, 1e6)} {
			b.Run(fmt.Sprintf("lanes=%d/%s", lanes, name), func(b *testing.B) {
				f := newCrowd(lanes, lanes, limit)
				defer f.transport.Close()
				f.open(b)
				if name == "shares" {
					f.transport.LimitsFor = func(key string) []throttle.Limit {
						if key == "" {
							return []throttle.Limit{wide}
						}
						return nil
					}
				}
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					f.call(b, "new-"+strconv.Itoa(i))
				}
			})
		}
	}
}

// What walks through all lanes: a state of each, and new limits for each.
func BenchmarkLanesAll(b *testing.B) {
	f := newCrowd(*manyLanes, *manyLanes, wide)
	defer f.transport.Close()
	f.open(b)
	b.Run("Snapshot", func(b *testing.B) {
		for b.Loop() {
			f.transport.Snapshot()
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(*manyLanes), "ns/lane")
	})
	b.Run("SetLimits", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			if err := f.transport.SetLimits(throttle.TokenBucket(1e9, time.Second, 1e9-1-i%2)); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(*manyLanes), "ns/lane")
	})
}
