package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/weirgo/weir/examples/internal/program"
	"github.com/weirgo/weir/internal/testserver"
	"github.com/weirgo/weir/throttle"
)

// The vendor's limits before and after the change.
var (
	first  = throttle.TokenBucket(50, time.Second, 10)
	second = throttle.TokenBucket(100, time.Second, 10)
)

const (
	workers = 32                    // each makes one call after the other
	service = 30 * time.Millisecond // duration of an answer, as from a nearby API
)

// learn calls the vendor, and prints a line a second about that. It ends early when ctx does.
func learn(ctx context.Context, length time.Duration, w io.Writer) (result, error) {
	vendor := &testserver.Vendor{Limits: []testserver.Limit{accepts(first)}, Service: service}
	server, err := testserver.Listen(vendor)
	if err != nil {
		return result{}, err
	}
	defer server.Close()
	calls, cancel := context.WithCancel(ctx) // without a deadline, for which Weir would reject the last calls
	defer cancel()
	var l load
	wait := l.begin(calls, weirClient(server.Transport(), w), server.URL)
	r := follow(ctx, vendor, length, w)
	cancel()
	wait()
	r.failed, r.cause = l.failed, l.cause
	return r, nil
}

func accepts(l throttle.Limit) testserver.Limit {
	return testserver.TokenBucket(l.Permits, l.Per, l.Burst)
}

// change returns when the vendor's limit changes.
func change(length time.Duration) time.Duration { return length * 3 / 8 }

// follow changes the vendor's limit when that is due, and prints the vendor's view until the time
// is over or ctx ends.
func follow(ctx context.Context, vendor *testserver.Vendor, length time.Duration, w io.Writer) result {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	due := time.After(time.Until(vendor.Start().Add(change(length))))
	over := time.After(time.Until(vendor.Start().Add(length)))
	r := result{phases: []phase{{limit: first}}}
	for {
		select {
		case <-due:
			vendor.SetLimits(accepts(second))
			r.phases = append(r.phases, phase{limit: second, from: time.Since(vendor.Start())})
		case <-tick.C:
			r.see(vendor)
			fmt.Fprintln(w, r.lately())
		case <-over:
			r.see(vendor)
			return r
		case <-ctx.Done():
			r.see(vendor)
			return r
		}
	}
}

// A load is endless calls from a few workers.
type load struct {
	mu     sync.Mutex
	failed int
	cause  string // of the first failure
}

// begin makes calls until ctx ends. It returns a function that waits for the workers.
func (l *load) begin(ctx context.Context, client *http.Client, url string) (wait func()) {
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for ctx.Err() == nil {
				l.call(ctx, client, url)
			}
		})
	}
	return all.Wait
}

func (l *load) call(ctx context.Context, client *http.Client, url string) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err == nil {
		err = program.Send(client, req)
	}
	if err == nil || ctx.Err() != nil {
		return // answered, or cut off by the end
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failed++; l.failed == 1 {
		l.cause = err.Error()
	}
}
