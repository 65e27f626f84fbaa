package main

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/metric"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/distributed"
	"github.com/weirgo/weir/internal/testserver"
	"github.com/weirgo/weir/throttle"
)

// limits are the limits of each lane.
var limits = map[string]throttle.Limit{
	"healthy": throttle.TokenBucket(50, time.Second, 20),
	"used up": throttle.TokenBucket(5, time.Second, 50),
	"crowded": throttle.TokenBucket(4, time.Second, 1),
	"refused": throttle.TokenBucket(50, time.Second, 20),
	"failing": throttle.TokenBucket(50, time.Second, 20),
	"spike":   throttle.TokenBucket(200, time.Second, 50),
	"shadow":  throttle.TokenBucket(200, time.Second, 50),
}

// A town is transports and their vendors.
type town struct {
	vendor *testserver.Server
	meters metric.MeterProvider
	redis  *miniredis.Miniredis
	silent net.Listener // a Redis that never answers

	transports []*weir.Transport
	works      []work
}

// A work is calls of one lane. Each worker makes a call after the previous one and a rest.
type work struct {
	client  *http.Client
	url     string
	lane    string
	workers int // zero: one
	rest    time.Duration
	later   time.Time     // from then on the rest is hurried; zero: never
	hurried time.Duration // the later rest
}

// open makes the lanes, and starts nothing.
func open(meters metric.MeterProvider, quiet time.Duration) (*town, error) {
	t := &town{meters: meters}
	var err error
	if t.vendor, err = testserver.Listen(&testserver.Vendor{Handler: new(vendor)}); err != nil {
		return nil, err
	}
	if t.redis, err = miniredis.Run(); err != nil {
		return nil, err
	}
	if t.silent, err = net.Listen("tcp", "localhost:0"); err != nil {
		return nil, err
	}
	local := t.transport(&weir.Transport{
		LimitsFor: func(key string) []throttle.Limit { return []throttle.Limit{limits[key]} },
		Shadow:    []throttle.Limit{throttle.TokenBucket(20, time.Second, 20)},
		Line:      weir.Line{MaxWaiting: 50},
	})
	t.works = []work{
		{client: local, lane: "healthy", rest: 200 * time.Millisecond},
		{client: local, lane: "used up", workers: 3},
		{client: local, lane: "crowded", workers: 60, rest: 200 * time.Millisecond},
		{client: local, lane: "refused", url: "/refuse", rest: 100 * time.Millisecond},
		{client: local, lane: "failing", url: "/fail", workers: 5, rest: 100 * time.Millisecond},
		{client: local, lane: "spike", rest: time.Second, later: time.Now().Add(quiet), hurried: 20 * time.Millisecond},
		{client: local, lane: "shadow", rest: 25 * time.Millisecond},
		{client: t.replica(t.redis.Addr(), 20), lane: "shared", rest: 200 * time.Millisecond},
		{client: t.replica(t.redis.Addr(), 20), lane: "strayed", rest: 200 * time.Millisecond},
		{client: t.replica(t.redis.Addr(), 10), lane: "strayed", rest: 200 * time.Millisecond},
		{client: t.replica(t.silent.Addr().String(), 20), lane: "fallback", rest: 200 * time.Millisecond},
	}
	for i := range t.works {
		t.works[i].url = t.vendor.URL + t.works[i].url
	}
	return t, nil
}

// transport returns a client of a transport whose lanes a header names.
func (t *town) transport(of *weir.Transport) *http.Client {
	of.Key = func(req *http.Request) string { return req.Header.Get("X-Lane") }
	of.MeterProvider, of.Learn, of.Logger = t.meters, weir.LearnOff, slog.New(slog.DiscardHandler)
	t.transports = append(t.transports, of)
	return &http.Client{Transport: of}
}

// replica returns a client of a process that shares a limit through a Redis.
func (t *town) replica(addr string, perSecond int) *http.Client {
	store := distributed.New(redis.NewClient(&redis.Options{Addr: addr}), "operations")
	store.Logger = slog.New(slog.DiscardHandler)
	return t.transport(&weir.Transport{Store: store, Limits: []throttle.Limit{throttle.TokenBucket(perSecond, time.Second, perSecond)}})
}

func (t *town) close() {
	for _, transport := range t.transports {
		_ = transport.Close()
		if store, ok := transport.Store.(*distributed.Store); ok {
			_ = store.Close()
		}
	}
	t.vendor.Close()
	t.redis.Close()
	_ = t.silent.Close()
}

// calls returns the number of calls of all works.
var calls atomic.Uint64

// do calls until ctx ends.
func (w *work) do(ctx context.Context) {
	for ctx.Err() == nil {
		// Calls of one URL that fail one after the other would count as tries of one call.
		url := w.url + "?call=" + strconv.FormatUint(calls.Add(1), 10)
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return
		}
		req.Header.Set("X-Lane", w.lane)
		if resp, err := w.client.Do(req); err == nil {
			resp.Body.Close()
		}
		rest := w.rest
		if !w.later.IsZero() && time.Now().After(w.later) {
			rest = w.hurried
		}
		select {
		case <-time.After(rest):
		case <-ctx.Done():
		}
	}
}

// A vendor refuses or fails if the path says so.
type vendor struct{ calls atomic.Uint64 }

// ServeHTTP refuses every fourth call to /refuse, and fails each to /fail.
func (v *vendor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case strings.HasPrefix(r.URL.Path, "/refuse") && v.calls.Add(1)%4 == 0:
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusTooManyRequests)
	case strings.HasPrefix(r.URL.Path, "/fail"):
		w.WriteHeader(http.StatusInternalServerError)
	}
}
