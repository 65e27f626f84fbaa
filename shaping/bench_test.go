package shaping_test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// Nothing waits: the permits are at hand.
func BenchmarkWait(b *testing.B) {
	deadline, cancel := context.WithTimeout(b.Context(), time.Hour)
	defer cancel()
	one := throttle.TokenBucket(1e9, time.Second, 1e9)
	two := throttle.TokenBucket(2e9, time.Second, 1e9)
	for _, c := range []struct {
		name   string
		ctx    context.Context
		limits []throttle.Limit
	}{
		{"one", b.Context(), []throttle.Limit{one}},
		{"two", b.Context(), []throttle.Limit{one, two}},
		{"one/deadline", deadline, []throttle.Limit{one}},
		{"two/deadline", deadline, []throttle.Limit{one, two}},
	} {
		b.Run(c.name+"/1", func(b *testing.B) {
			q := newQueue(b, c.limits...)
			b.ReportAllocs()
			for b.Loop() {
				if err := q.Wait(c.ctx); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(c.name+"/64", func(b *testing.B) {
			q := newQueue(b, c.limits...)
			b.ReportAllocs()
			b.SetParallelism((64 + runtime.GOMAXPROCS(0) - 1) / runtime.GOMAXPROCS(0))
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if err := q.Wait(c.ctx); err != nil {
						b.Error(err)
					}
				}
			})
		})
	}
}

// Everybody stands in line, and leaves it at each wake-up.
func BenchmarkLine(b *testing.B) {
	const waiters = 64
	limiter := newDoor()
	q := shaping.NewQueue(limiter)
	b.ReportAllocs()
	var wg sync.WaitGroup
	for range waiters {
		wg.Go(func() {
			for range b.N/waiters + 1 {
				if err := q.Wait(b.Context()); err != nil {
					b.Error(err)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() {
		wg.Wait()
		close(done)
	}()
	for {
		select {
		case <-done:
			return
		default:
			limiter.open.Store(true)
			limiter.wake()
			limiter.open.Store(false)
			runtime.Gosched()
		}
	}
}

// A door lets everybody pass while it is open.
type door struct {
	throttle.Limiter
	silent
	open atomic.Bool
}

func newDoor() *door {
	d := new(door)
	d.Limiter = throttle.LimiterFunc(func(now throttle.Instant, _ throttle.Request) (throttle.Instant, error) {
		if d.open.Load() {
			return now, nil
		}
		return throttle.Never, nil
	})
	return d
}

// One worker over a rate that it must wait for each time: the rate it reaches.
func BenchmarkOneWorker(b *testing.B) {
	for _, rate := range []int{1000, 10_000} {
		for _, workers := range []int{1, 64} {
			b.Run(fmt.Sprint(rate, "/", workers), func(b *testing.B) {
				q := newQueue(b, throttle.LeakyBucket(rate, time.Second))
				start := time.Now()
				var wg sync.WaitGroup
				for range workers {
					wg.Go(func() {
						for range b.N/workers + 1 {
							if err := q.Wait(b.Context()); err != nil {
								b.Error(err)
							}
						}
					})
				}
				wg.Wait()
				departed := (b.N/workers + 1) * workers
				b.ReportMetric(float64(departed)/time.Since(start).Seconds()/float64(rate), "of-rate")
			})
		}
	}
}

// Joining a line and leaving it costs the same whatever its length.
func BenchmarkJoinAndCancel(b *testing.B) {
	for _, length := range []int{1000, 100_000} {
		b.Run(fmt.Sprint(length), func(b *testing.B) {
			q := newQueue(b, throttle.LeakyBucket(1, 24*time.Hour))
			stop := crowd(b, q, length, false)
			b.ReportAllocs()
			for b.Loop() {
				ctx, cancel := context.WithCancel(b.Context())
				q2 := make(chan error)
				go func() { q2 <- q.Wait(ctx) }()
				runtime.Gosched()
				cancel()
				<-q2
			}
			stop()
		})
	}
}

// crowd puts callers in line; what it returns cancels them and waits.
func crowd(b *testing.B, q *shaping.Queue, n int, deadlines bool) (stop func() time.Duration) {
	q.MaxWaiting = n + 1000
	if err := q.Wait(b.Context()); err != nil {
		b.Fatal(err)
	}
	all, cancel := context.WithCancel(b.Context())
	if deadlines {
		all, cancel = context.WithTimeout(b.Context(), 365*24*time.Hour)
	}
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() { _ = q.Wait(all) })
	}
	for q.State().Waiting < n {
		time.Sleep(time.Millisecond)
	}
	return func() time.Duration {
		start := time.Now()
		cancel()
		wg.Wait()
		return time.Since(start)
	}
}

// What 100,000 waiters hold, and how long it takes to cancel them all, beside
// goroutines that only wait for a channel and their context.
func BenchmarkWaiters(b *testing.B) {
	const n = 100_000
	queue := func() *shaping.Queue { return newQueue(b, throttle.LeakyBucket(1, 24*time.Hour)) }
	for _, c := range []struct {
		name  string
		crowd func() (stop func() time.Duration)
	}{
		{"bare", func() func() time.Duration { return bareCrowd(b, n) }},
		{"plain", func() func() time.Duration { return crowd(b, queue(), n, false) }},
		{"deadlines", func() func() time.Duration { return crowd(b, queue(), n, true) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				debug.FreeOSMemory()
				rss, held := memory(b)
				stop := c.crowd()
				rssAfter, heldAfter := memory(b)
				cancelled := stop()
				b.ReportMetric(float64(rssAfter-rss)/n, "RSS-B/waiter")
				b.ReportMetric(float64(heldAfter-held)/n, "heap+stack-B/waiter")
				b.ReportMetric(cancelled.Seconds()*1000, "ms-cancel-all")
			}
		})
	}
}

func bareCrowd(b *testing.B, n int) (stop func() time.Duration) {
	all, cancel := context.WithCancel(b.Context())
	var wg, parked sync.WaitGroup
	parked.Add(n)
	for range n {
		wg.Go(func() {
			ready := make(chan struct{})
			parked.Done()
			select {
			case <-ready:
			case <-all.Done():
			}
		})
	}
	parked.Wait()
	return func() time.Duration {
		start := time.Now()
		cancel()
		wg.Wait()
		return time.Since(start)
	}
}

func memory(b *testing.B) (rss, held int64) {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	data, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, int64(m.HeapAlloc + m.StackInuse)
	}
	pages, err := strconv.ParseInt(strings.Fields(string(data))[1], 10, 64)
	if err != nil {
		b.Fatal(err)
	}
	return pages * int64(os.Getpagesize()), int64(m.HeapAlloc + m.StackInuse)
}
