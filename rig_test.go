package weir_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/backoff"
	"github.com/weirgo/weir/internal/testserver"
	"github.com/weirgo/weir/throttle"
)

// A rig is a Transport in front of a vendor. All of its instants are since the
// vendor's start.
type rig struct {
	*testing.T
	vendor    *testserver.Vendor
	server    *testserver.Server
	transport *weir.Transport
	client    *http.Client
}

// pipeRig is a rig for a bubble, over in-memory pipes.
func pipeRig(t *testing.T, vendor *testserver.Vendor, transport *weir.Transport) *rig {
	t.Helper()
	return newRig(t, testserver.Pipe, vendor, transport)
}

// obeyingRig is a pipeRig whose lanes obey refusals and learn nothing: the instants of what is learned
// are not exact.
func obeyingRig(t *testing.T, vendor *testserver.Vendor, transport *weir.Transport) *rig {
	t.Helper()
	transport.Learn = weir.LearnOff
	return pipeRig(t, vendor, transport)
}

// socketRig is a rig over real sockets.
func socketRig(t *testing.T, vendor *testserver.Vendor, transport *weir.Transport) *rig {
	t.Helper()
	return newRig(t, testserver.Listen, vendor, transport)
}

func newRig(t *testing.T, open func(http.Handler) (*testserver.Server, error), vendor *testserver.Vendor, transport *weir.Transport) *rig {
	t.Helper()
	server := testserver.Run(t, open, vendor)
	if transport.Base == nil {
		transport.Base = server.Transport()
	}
	if transport.Logger == nil {
		transport.Logger = slog.New(slog.DiscardHandler)
	}
	t.Cleanup(func() { transport.Close() })
	return &rig{T: t, vendor: vendor, server: server, transport: transport, client: &http.Client{Transport: transport}}
}

func (r *rig) now() time.Duration { return time.Since(r.vendor.Start()) }

// request returns a GET with an id that the vendor records.
func (r *rig) request(ctx context.Context, id string) *http.Request {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.server.URL+"/things", nil)
	if err != nil {
		r.Fatal(err)
	}
	req.Header.Set(testserver.DefaultIDHeader, id)
	return req
}

// An answer is what a caller got, and when.
type answer struct {
	status int
	header http.Header
	body   string
	err    error
	at     time.Duration
}

// do sends a request through the transport itself and reads the answer whole.
func (r *rig) do(req *http.Request) answer {
	resp, err := r.transport.RoundTrip(req)
	a := answer{err: err, at: r.now()}
	if err != nil {
		if resp != nil {
			r.Errorf("RoundTrip = %v and %v, want a response or an error", resp, err)
		}
		return a
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	a.status, a.header, a.body, a.err = resp.StatusCode, resp.Header, string(body), err
	return a
}

func (r *rig) get(ctx context.Context, id string) answer { return r.do(r.request(ctx, id)) }

// want fails the test unless the answer has the status.
func (r *rig) want(what string, got answer, status int) {
	r.Helper()
	if got.status != status || got.err != nil {
		r.Errorf("%s = %d, %v, want %d", what, got.status, got.err, status)
	}
}

// Callers are calls on their way, each from a goroutine of its own.
type callers struct {
	wg      sync.WaitGroup
	answers []answer
}

// callers sends n GETs with the ids 0 to n-1. In a bubble they arrive in that
// order, all at this instant.
func (r *rig) callers(ctx context.Context, n int) *callers {
	c := &callers{answers: make([]answer, n)}
	for i := range n {
		c.wg.Go(func() { c.answers[i] = r.get(ctx, strconv.Itoa(i)) })
		synctest.Wait()
	}
	return c
}

// wait returns the answers, by id.
func (c *callers) wait() []answer {
	c.wg.Wait()
	return c.answers
}

// instants returns when requests arrived.
func instants(as testserver.Arrivals) []time.Duration {
	at := make([]time.Duration, len(as))
	for i, a := range as {
		at[i] = a.At
	}
	return at
}

func ids(as testserver.Arrivals) []string {
	all := make([]string, len(as))
	for i, a := range as {
		all[i] = a.ID
	}
	return all
}

// numbers returns the ids from first to last.
func numbers(first, last int) []string {
	var all []string
	for i := first; i <= last; i++ {
		all = append(all, strconv.Itoa(i))
	}
	return all
}

// spaced returns n instants from first on, an interval apart.
func spaced(first, interval time.Duration, n int) []time.Duration {
	at := make([]time.Duration, n)
	for i := range at {
		at[i] = first + time.Duration(i)*interval
	}
	return at
}

func wantEqual[T comparable](t *testing.T, what string, got, want []T) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s = %v, want %v", what, got, want)
	}
}

// hints returns the header of an answer that asks for a wait.
func hints(retryAfter string) http.Header { return http.Header{"Retry-After": {retryAfter}} }

// every returns the one limit that most tests use.
func every(interval time.Duration) []throttle.Limit {
	return []throttle.Limit{throttle.TokenBucket(1, interval, 1)}
}

// after returns a policy whose delays are all the same.
func after(delay time.Duration) *backoff.Policy {
	return &backoff.Policy{Delay: backoff.Constant(delay)}
}

// A storeFunc is a store made of a function.
type storeFunc func(key string, limits ...throttle.Limit) (throttle.Limiter, error)

func (f storeFunc) Limiter(key string, limits ...throttle.Limit) (throttle.Limiter, error) {
	return f(key, limits...)
}

// A baseFunc is a base made of a function.
type baseFunc func(*http.Request) (*http.Response, error)

func (f baseFunc) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }
