package main

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// measure sends the calls of one run and shows the progress. It returns when all have ended, or
// soon after ctx has.
func measure(ctx context.Context, o options, c contestant, t target, d display) result {
	client := c.client(t.base)
	var l load
	stop := watch(d, func() (calls, refused int) { return l.calls(), countRefused(t.arrivals()) })
	start := time.Now()
	l.run(ctx, o, client, t.url)
	wall := time.Since(start)
	stop()
	slices.Sort(l.latency)
	return result{
		client:   c.name,
		title:    c.title,
		asked:    o.calls,
		failed:   l.failed,
		cause:    l.cause,
		latency:  l.latency,
		wall:     wall,
		limit:    t.limit,
		service:  t.service,
		remote:   o.url != "",
		arrivals: t.arrivals(),
	}
}

// A load is many calls from a few workers.
type load struct {
	begun atomic.Int64

	mu      sync.Mutex
	latency []time.Duration // of the calls that ended
	failed  int
	cause   string // of the first failure
}

func (l *load) run(ctx context.Context, o options, client *http.Client, url string) {
	var workers sync.WaitGroup
	for range o.workers {
		workers.Go(func() {
			for l.begun.Add(1) <= int64(o.calls) {
				start := time.Now()
				err := call(ctx, client, url)
				if ctx.Err() != nil {
					return // cut off: neither answered nor failed
				}
				l.note(time.Since(start), err)
			}
		})
	}
	workers.Wait()
}

func (l *load) note(latency time.Duration, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.latency = append(l.latency, latency)
	if err == nil {
		return
	}
	if l.failed++; l.failed == 1 {
		l.cause = withoutURL(err)
	}
}

func (l *load) calls() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.latency)
}

// withoutURL returns the error's text without the address, which may hold a
// secret.
func withoutURL(err error) string {
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err
	}
	return err.Error()
}
