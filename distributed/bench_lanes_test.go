package distributed_test

import (
	"context"
	"flag"
	"log/slog"
	"net/http"
	"net/url"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/backoff"
	"github.com/weirgo/weir/distributed"
	"github.com/weirgo/weir/internal/redistest"
	"github.com/weirgo/weir/throttle"
)

// The default is small enough for CI. The figures of the package documentation come from
//
//	go test -run '^$' -bench SharedLanes -benchtime 1x ./distributed -shared-lanes 100000
var sharedLanes = flag.Int("shared-lanes", 1000, "lanes of BenchmarkSharedLanes")

// BenchmarkSharedLanes measures the cost of a lane used once and then idle: bytes in Redis and in
// the process, and goroutines and connections of all lanes together.
func BenchmarkSharedLanes(b *testing.B) {
	bucket := throttle.TokenBucket(10, time.Hour, 10)
	for _, c := range []struct {
		name     string
		limits   []throttle.Limit
		learn    weir.Learning
		inFlight int
	}{
		{"bucket", []throttle.Limit{bucket}, weir.LearnOff, 0},
		{"bucket+window+log", []throttle.Limit{bucket, throttle.FixedWindow(5000, 24*time.Hour), throttle.SlidingLog(500, time.Hour)}, weir.LearnOff, 0},
		{"bucket+learning", []throttle.Limit{bucket}, weir.LearnOn, 0},
		{"bucket+flights", []throttle.Limit{bucket}, weir.LearnOff, 10},
	} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				t := &weir.Transport{
					Base: served{}, Limits: c.limits, Learn: c.learn, InFlight: weir.InFlight{Shared: c.inFlight}, MaxLanes: *sharedLanes, Retry: backoff.None,
					Key: func(req *http.Request) string { return req.URL.Host }, Logger: slog.New(slog.DiscardHandler),
				}
				measureLanes(b, t)
			}
		})
	}
}

// served answers every call at once.
type served struct{}

func (served) RoundTrip(req *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: http.NoBody, Request: req}, nil
}

// measureLanes opens the lanes of a transport over a new Redis.
func measureLanes(b *testing.B, t *weir.Transport) {
	b.Helper()
	server := redistest.Start(b)
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer client.Close()
	store := distributed.New(client, "crowd")
	store.Deadline, store.MaxDeadline = patience, patience
	store.Logger = t.Logger
	defer store.Close()
	t.Store = store
	defer t.Close()

	used := redisMemory(b, client)
	heap, goroutines := heapInUse(), runtime.NumGoroutine()
	openLanes(b, t, *sharedLanes)
	n := float64(*sharedLanes)
	for end := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > goroutines+30 && time.Now().Before(end); {
		runtime.Gosched() // the last calls end
	}
	b.ReportMetric(float64(heapInUse()-heap)/n, "B/lane")
	b.ReportMetric(float64(runtime.NumGoroutine()-goroutines), "goroutines")
	b.ReportMetric(float64(redisMemory(b, client)-used)/n, "redis-B/lane")
	keys, size := keysOf(b, client)
	b.ReportMetric(keys/n, "keys/lane")
	b.ReportMetric(size, "B/key")
	conns, err := client.Info(b.Context(), "clients").Result()
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(number(b, conns, "connected_clients:"), "conns")
}

// openLanes calls once in each of the lanes.
func openLanes(b *testing.B, t *weir.Transport, lanes int) {
	b.Helper()
	var calling sync.WaitGroup
	for g := range 64 {
		calling.Go(func() {
			for i := g; i < lanes; i += 64 {
				req := &http.Request{Method: http.MethodGet, URL: &url.URL{Scheme: "http", Host: "account-" + strconv.Itoa(i)}, Header: http.Header{}}
				resp, err := t.RoundTrip(req)
				if err != nil {
					b.Error(err)
					return
				}
				resp.Body.Close()
			}
		})
	}
	calling.Wait()
}

func heapInUse() int {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// redisMemory returns the memory that a server's data takes, with its tables.
func redisMemory(b *testing.B, client *redis.Client) int {
	b.Helper()
	info, err := client.Info(b.Context(), "memory").Result()
	if err != nil {
		b.Fatal(err)
	}
	return int(number(b, info, "used_memory_dataset:"))
}

// keysOf returns the number of keys, and their mean size by MEMORY USAGE, from a sample of a
// thousand.
func keysOf(b *testing.B, client *redis.Client) (n, size float64) {
	b.Helper()
	ctx := context.Background()
	all, err := client.DBSize(ctx).Result()
	if err != nil {
		b.Fatal(err)
	}
	keys, _, err := client.Scan(ctx, 0, "*", 1000).Result()
	if err != nil || len(keys) == 0 {
		b.Fatalf("%d keys, %v", len(keys), err)
	}
	for _, key := range keys {
		bytes, err := client.MemoryUsage(ctx, key, 0).Result()
		if err != nil {
			b.Fatal(err)
		}
		size += float64(bytes)
	}
	return float64(all), size / float64(len(keys))
}

// number returns the number after a word of INFO.
func number(b *testing.B, info, word string) float64 {
	b.Helper()
	_, rest, ok := strings.Cut(info, word)
	digits, _, _ := strings.Cut(rest, "\r")
	n, err := strconv.ParseFloat(digits, 64)
	if !ok || err != nil {
		b.Fatalf("no number after %s in %s", word, info)
	}
	return n
}
