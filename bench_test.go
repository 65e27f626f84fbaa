package weir_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/backoff"
	"github.com/weirgo/weir/internal/acceptance/harness"
	"github.com/weirgo/weir/throttle"
)

func sizes() []int {
	sizes := []int{1}
	for n := 10_000; n < *harness.ManyLanes; n *= 10 {
		sizes = append(sizes, n)
	}
	return append(sizes, *harness.ManyLanes)
}

// The cost of a call does not grow with the number of lanes: one lane among
// many, and many in turn, which costs what the memory takes to be read.
func BenchmarkLanesCall(b *testing.B) {
	for _, lanes := range sizes() {
		for _, busy := range slices.Compact([]int{1, max(lanes/50, 1)}) {
			b.Run(fmt.Sprintf("lanes=%d/busy=%d", lanes, busy), func(b *testing.B) {
				f := harness.NewCrowd(lanes, lanes, harness.Wide)
				defer f.Transport.Close()
				f.Open(b)
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					f.Call(b, f.Keys[i%busy*(lanes/busy)])
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
		{"bucket", []throttle.Limit{harness.Wide}},
		{"three", []throttle.Limit{throttle.TokenBucket(10, time.Second, 10), throttle.SlidingWindow(500, time.Minute), day}},
	} {
		b.Run(tt.name, func(b *testing.B) {
			for b.Loop() {
				f := harness.NewCrowd(*harness.ManyLanes, *harness.ManyLanes, tt.limits...)
				before := harness.Heap()
				f.Open(b)
				b.ReportMetric(float64(harness.Heap()-before)/float64(*harness.ManyLanes), "B/lane")
				f.Transport.Close()
			}
		})
	}
}

// Memory of a busy lane: one caller waits in it, with a goroutine of its own.
func BenchmarkLanesBusy(b *testing.B) {
	n := max(*harness.ManyLanes/50, 1)
	for b.Loop() {
		f := harness.NewCrowd(n, n, throttle.TokenBucket(1, time.Hour, 1))
		f.Open(b)
		before := inUse()
		var waiting sync.WaitGroup
		for _, key := range f.Keys {
			waiting.Go(func() {
				req := *f.Req
				req.URL = &url.URL{Scheme: "http", Host: key}
				f.Transport.RoundTrip(&req)
			})
		}
		for inLine(f.Transport) < n {
			runtime.Gosched() // no message comes when all are in line
		}
		b.ReportMetric(float64(inUse()-before)/float64(n), "B/waiter")
		f.Transport.Close()
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
	h := harness.Heap()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return h + int(m.StackInuse)
}

// A key beyond the bound costs a look at a few lanes, however many there are:
// where one may go for it, and where none may and it shares one.
func BenchmarkLanesNewKey(b *testing.B) {
	for _, lanes := range sizes() {
		for name, limit := range map[string]throttle.Limit{"evicts": harness.Wide, "shares": throttle.TokenBucket(1e6, 1000*time.Hour, 1e6)} {
			b.Run(fmt.Sprintf("lanes=%d/%s", lanes, name), func(b *testing.B) {
				f := harness.NewCrowd(lanes, lanes, limit)
				defer f.Transport.Close()
				f.Open(b)
				if name == "shares" {
					f.Transport.LimitsFor = func(key string) []throttle.Limit {
						if key == "" {
							return []throttle.Limit{harness.Wide}
						}
						return nil
					}
				}
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					f.Call(b, "new-"+strconv.Itoa(i))
				}
			})
		}
	}
}

// What walks through all lanes: a state of each, and new limits for each.
func BenchmarkLanesAll(b *testing.B) {
	f := harness.NewCrowd(*harness.ManyLanes, *harness.ManyLanes, harness.Wide)
	defer f.Transport.Close()
	f.Open(b)
	b.Run("Snapshot", func(b *testing.B) {
		for b.Loop() {
			f.Transport.Snapshot()
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(*harness.ManyLanes), "ns/lane")
	})
	b.Run("SetLimits", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			if err := f.Transport.SetLimits(throttle.TokenBucket(1e9, time.Second, 1e9-1-i%2)); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(*harness.ManyLanes), "ns/lane")
	})
}

// An answering is a base whose answers have a header.
type answering http.Header

func (a answering) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header(a), Body: harness.StubBody{}}, nil
}

var reporting = answering{"Ratelimit-Limit": {"200"}, "Ratelimit-Remaining": {"17"}, "Ratelimit-Reset": {"60"}}

// What the gate of a lane costs: one that only counts, and those that ask.
func BenchmarkGate(b *testing.B) {
	ctx, cancel := context.WithTimeout(b.Context(), time.Hour)
	defer cancel()
	req, _ := http.NewRequestWithContext(ctx, "GET", "http://api.example.com/v1/things", nil)
	limits := []throttle.Limit{throttle.TokenBucket(1e9, time.Second, 1e9)}
	for _, bench := range []struct {
		name      string
		transport *weir.Transport
	}{
		{"counts", &weir.Transport{Base: harness.Stub{}, Limits: limits}},
		{"unlimited", &weir.Transport{Base: harness.Stub{}}},
		{"bounded", &weir.Transport{Base: harness.Stub{}, Limits: limits, InFlight: weir.InFlight{Max: 100}}},
		{"learned", &weir.Transport{Base: reporting, Limits: limits}},
		{"waits-for-reset", &weir.Transport{Base: reporting, Limits: limits, WaitForReset: true, Learn: weir.LearnOff}},
	} {
		bench.transport.Retry, bench.transport.UnguardedResends = backoff.None, true
		bench.transport.Logger = slog.New(slog.DiscardHandler)
		call := func(b *testing.B) {
			resp, err := bench.transport.RoundTrip(req)
			if err != nil {
				b.Error(err)
				return
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				call(b)
			}
		})
		b.Run(bench.name+"/parallel", func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					call(b)
				}
			})
		})
	}
}

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

// What a call costs with one key, by Key and by Keys, and with three keys.
func BenchmarkKeys(b *testing.B) {
	for _, keys := range [][]string{nil, {"account"}, {"customer", "route", "account"}} {
		b.Run(fmt.Sprintf("keys=%d", len(keys)), func(b *testing.B) {
			transport := &weir.Transport{
				Base: harness.Stub{}, Limits: []throttle.Limit{harness.Wide}, Retry: backoff.None,
				Key: func(*http.Request) string { return "account" },
			}
			if keys != nil {
				transport.Keys = func(*http.Request) []string { return keys }
			}
			defer transport.Close()
			req := harness.GetOf("vendor.test")
			b.ReportAllocs()
			for b.Loop() {
				resp, err := transport.RoundTrip(req)
				if err != nil {
					b.Fatal(err)
				}
				resp.Body.Close()
			}
		})
	}
}

// What a call costs whose vendor names its bucket.
func BenchmarkBuckets(b *testing.B) {
	resp := &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Header: http.Header{"X-Ratelimit-Bucket": {"h1"}}}
	transport := &weir.Transport{
		Base: harness.BaseFunc(func(*http.Request) (*http.Response, error) { copied := *resp; return &copied, nil }), Limits: []throttle.Limit{harness.Wide}, Retry: backoff.None,
	}
	defer transport.Close()
	req := harness.GetOf("discord.com")
	b.ReportAllocs()
	for b.Loop() {
		resp, err := transport.RoundTrip(req)
		if err != nil {
			b.Fatal(err)
		}
		resp.Body.Close()
	}
}

// Memory of a customer's lane, alone and under an account, with the key's own bytes. On amd64
// a lane takes 3.1 KB, and its place under the account 2.4 KB while nobody waits.
func BenchmarkKeysMemory(b *testing.B) {
	const customers = 10_000
	for _, account := range []string{"", "account"} {
		b.Run("account="+account, func(b *testing.B) {
			for b.Loop() {
				var customer string
				transport := &weir.Transport{
					Base: harness.Stub{}, Limits: []throttle.Limit{harness.Wide}, Retry: backoff.None, MaxLanes: 2 * customers,
					Key: func(*http.Request) string { return customer },
				}
				if account != "" {
					transport.Keys = func(*http.Request) []string { return []string{customer, account} }
				}
				req, before := harness.GetOf("vendor.test"), harness.Heap()
				for i := range customers {
					customer = "customer " + strconv.Itoa(i)
					resp, err := transport.RoundTrip(req)
					if err != nil {
						b.Fatal(err)
					}
					resp.Body.Close()
				}
				b.ReportMetric(float64(harness.Heap()-before)/customers, "B/lane")
				transport.Close()
			}
		})
	}
}
