package harness

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/backoff"
	"github.com/weirgo/weir/internal/testserver"
	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// A Rig is a Transport in front of a vendor. All of its instants are since the
// vendor's start.
type Rig struct {
	*testing.T
	Vendor    *testserver.Vendor
	Server    *testserver.Server
	Transport *weir.Transport
	Client    *http.Client
}

// PipeRig is a rig for a bubble, over in-memory pipes.
func PipeRig(t *testing.T, vendor *testserver.Vendor, transport *weir.Transport) *Rig {
	t.Helper()
	return NewRig(t, testserver.Pipe, vendor, transport)
}

// ObeyingRig is a PipeRig whose lanes learn nothing, so that instants are exact.
func ObeyingRig(t *testing.T, vendor *testserver.Vendor, transport *weir.Transport) *Rig {
	t.Helper()
	transport.Learn = weir.LearnOff
	return PipeRig(t, vendor, transport)
}

// SocketRig is a rig over real sockets.
func SocketRig(t *testing.T, vendor *testserver.Vendor, transport *weir.Transport) *Rig {
	t.Helper()
	return NewRig(t, testserver.Listen, vendor, transport)
}

// NewRig opens a server for the vendor, and a transport that sends to it.
func NewRig(t *testing.T, open func(http.Handler) (*testserver.Server, error), vendor *testserver.Vendor, transport *weir.Transport) *Rig {
	t.Helper()
	server := testserver.Run(t, open, vendor)
	if transport.Base == nil {
		transport.Base = server.Transport()
	}
	if transport.Logger == nil {
		transport.Logger = slog.New(slog.DiscardHandler)
	}
	t.Cleanup(func() { transport.Close() })
	return &Rig{T: t, Vendor: vendor, Server: server, Transport: transport, Client: &http.Client{Transport: transport}}
}

// Now returns the time since the vendor's start.
func (r *Rig) Now() time.Duration { return time.Since(r.Vendor.Start()) }

// Request returns a GET with an id that the vendor records.
func (r *Rig) Request(ctx context.Context, id string) *http.Request {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.Server.URL+"/things", nil)
	if err != nil {
		r.Fatal(err)
	}
	req.Header.Set(testserver.DefaultIDHeader, id)
	return req
}

// An Answer is a caller's result, and its instant.
type Answer struct {
	Status int
	Header http.Header
	Body   string
	Err    error
	At     time.Duration
}

// Do sends a request through the transport itself and reads the answer whole.
func (r *Rig) Do(req *http.Request) Answer {
	resp, err := r.Transport.RoundTrip(req)
	a := Answer{Err: err, At: r.Now()}
	if err != nil {
		if resp != nil {
			r.Errorf("RoundTrip = %v and %v, want a response or an error", resp, err)
		}
		return a
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	a.Status, a.Header, a.Body, a.Err = resp.StatusCode, resp.Header, string(body), err
	return a
}

// Get sends a GET with an id.
func (r *Rig) Get(ctx context.Context, id string) Answer { return r.Do(r.Request(ctx, id)) }

// Want fails the test unless the answer has the status.
func (r *Rig) Want(what string, got Answer, status int) {
	r.Helper()
	if got.Status != status || got.Err != nil {
		r.Errorf("%s = %d, %v, want %d", what, got.Status, got.Err, status)
	}
}

// Callers are calls in progress, each from its own goroutine.
type Callers struct {
	Wg      sync.WaitGroup
	Answers []Answer
}

// Callers sends n GETs with the ids 0 to n-1. In a bubble they arrive in that order, all at the
// same instant.
func (r *Rig) Callers(ctx context.Context, n int) *Callers {
	c := &Callers{Answers: make([]Answer, n)}
	for i := range n {
		c.Wg.Go(func() { c.Answers[i] = r.Get(ctx, strconv.Itoa(i)) })
		synctest.Wait()
	}
	return c
}

// Wait returns the answers, by id.
func (c *Callers) Wait() []Answer {
	c.Wg.Wait()
	return c.Answers
}

// Instants returns the requests' arrivals.
func Instants(as testserver.Arrivals) []time.Duration {
	at := make([]time.Duration, len(as))
	for i, a := range as {
		at[i] = a.At
	}
	return at
}

// IDs returns the ids of requests.
func IDs(as testserver.Arrivals) []string {
	all := make([]string, len(as))
	for i, a := range as {
		all[i] = a.ID
	}
	return all
}

// Numbers returns the ids from first to last.
func Numbers(first, last int) []string {
	var all []string
	for i := first; i <= last; i++ {
		all = append(all, strconv.Itoa(i))
	}
	return all
}

// Spaced returns n instants from first on, an interval apart.
func Spaced(first, interval time.Duration, n int) []time.Duration {
	at := make([]time.Duration, n)
	for i := range at {
		at[i] = first + time.Duration(i)*interval
	}
	return at
}

// WantEqual fails the test unless two lists are equal.
func WantEqual[T comparable](t *testing.T, what string, got, want []T) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s = %v, want %v", what, got, want)
	}
}

// Hints returns the header of an answer that asks for a wait.
func Hints(retryAfter string) http.Header { return http.Header{"Retry-After": {retryAfter}} }

// Every returns the limit that most tests use.
func Every(interval time.Duration) []throttle.Limit {
	return []throttle.Limit{throttle.TokenBucket(1, interval, 1)}
}

// After returns a policy whose delays are all equal.
func After(delay time.Duration) *backoff.Policy {
	return &backoff.Policy{Delay: backoff.Constant(delay)}
}

// A StoreFunc is a store made from a function.
type StoreFunc func(key string, limits ...throttle.Limit) (throttle.Limiter, error)

// Limiter implements [throttle.Store].
func (f StoreFunc) Limiter(key string, limits ...throttle.Limit) (throttle.Limiter, error) {
	return f(key, limits...)
}

// A BaseFunc is a base made from a function.
type BaseFunc func(*http.Request) (*http.Response, error)

// RoundTrip implements [http.RoundTripper].
func (f BaseFunc) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// WantPaused fails the test unless the error is ErrPaused with that wait.
func WantPaused(t *testing.T, what string, got Answer, wait time.Duration) {
	t.Helper()
	var ours *weir.Error
	if !errors.As(got.Err, &ours) || !errors.Is(got.Err, weir.ErrPaused) || ours.Wait != wait {
		t.Errorf("%s = %d, %v, want ErrPaused with a wait of %v", what, got.Status, got.Err, wait)
	}
}

// Refuse answers the requests from first to last with a 429 and a Retry-After,
// after 10 ms.
func Refuse(first, last int, retryAfter string) testserver.Fault {
	return testserver.Fault{First: first, Last: last, Do: testserver.Answer, Header: Hints(retryAfter), Delay: 10 * time.Millisecond}
}

// Resume opens the lane of the rig's server.
func (r *Rig) Resume() {
	r.Helper()
	if err := r.Transport.Resume(r.Transport.Snapshot()[0].Key); err != nil {
		r.Errorf("Resume = %v", err)
	}
}

// Learned returns what the only lane has learned.
func (r *Rig) Learned() weir.Learned {
	r.Helper()
	states := r.Transport.Snapshot()
	if len(states) != 1 {
		r.Fatalf("lanes = %d, want 1", len(states))
	}
	return states[0].Learned
}

// A Drain is the outcome of many calls by many workers to a vendor whose limit is not, or wrongly,
// configured.
type Drain struct {
	Wall    time.Duration
	Refused int
	Failed  int
}

// DrainBy sends n calls from 64 workers, each one after another.
func DrainBy(r *Rig, n int) Drain {
	began := time.Now()
	var mu sync.Mutex
	var wg sync.WaitGroup
	var d Drain
	for range 64 {
		wg.Go(func() {
			for {
				mu.Lock()
				if n--; n < 0 {
					mu.Unlock()
					return
				}
				mu.Unlock()
				if a := r.Get(r.Context(), ""); a.Status != http.StatusOK {
					mu.Lock()
					d.Failed++
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	d.Wall, d.Refused = time.Since(began), r.Vendor.Arrivals().Count(http.StatusTooManyRequests)
	return d
}

// DrainTokens sends calls of 100 to 1,900 tokens from 64 workers, and settles each. The wall time
// is a multiple of the time that the vendor's limit takes.
func (r *Rig) DrainTokens(calls int) (wall float64, refused int) {
	costs, sum := make(chan int, calls), 0
	for range calls {
		n := 100 + rand.N(1801)
		costs <- n
		sum += n
	}
	close(costs)
	began := time.Now()
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			for n := range costs {
				req := r.Request(r.Context(), "")
				req.Header.Set("Tokens", strconv.Itoa(n))
				resp, err := r.Transport.RoundTrip(req)
				if err != nil || resp.StatusCode != http.StatusOK {
					r.Errorf("GET = %v, %v, want 200", resp, err)
					continue
				}
				resp.Body.Close()
				r.Settle(resp, n)
			}
		})
	}
	wg.Wait()
	l := r.Vendor.Limits[0]
	ideal := float64(sum-l.Burst) / float64(l.Permits) * l.Per.Seconds()
	return time.Since(began).Seconds() / ideal, r.Vendor.Arrivals().Count(http.StatusTooManyRequests)
}

// Call sends a GET through the client and returns its response, read whole.
func (r *Rig) Call() *http.Response {
	r.Helper()
	resp, err := r.Client.Get(r.Server.URL)
	if err != nil {
		r.Fatal(err)
	}
	resp.Body.Close()
	return resp
}

// Estimated sends a request with that estimate through the client.
func (r *Rig) Estimated(tokens int) *http.Response {
	r.Helper()
	req := r.Request(r.Context(), "a")
	req.Header.Set("Estimate", strconv.Itoa(tokens))
	resp, err := r.Client.Do(req)
	if err != nil {
		r.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	return resp
}

// Settle reports a call's actual cost.
func (r *Rig) Settle(resp *http.Response, tokens int) {
	r.Helper()
	if err := weir.Settle(resp, "tokens", tokens); err != nil {
		r.Errorf("Settle = %v", err)
	}
}

// WantArrivals fails the test unless this many requests arrived.
func (r *Rig) WantArrivals(n int) {
	r.Helper()
	if got := len(r.Vendor.Arrivals()); got != n {
		r.Errorf("arrivals = %d, want %d", got, n)
	}
}

// Sent reports whether a request was answered with success.
func Sent(ctx context.Context, transport *weir.Transport, url string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		panic(err)
	}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return false
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// Flying returns how many requests of the only lane are in flight.
func (r *Rig) Flying() int { return r.Transport.Snapshot()[0].InFlight }

// Open sends a request and leaves its body open.
func (r *Rig) Open(ctx context.Context, id string) *http.Response {
	r.Helper()
	resp, err := r.Transport.RoundTrip(r.Request(ctx, id))
	if err != nil {
		r.Fatal(err)
	}
	return resp
}

// WantServedAfterCollections sends a request that must wait for the garbage collector.
func (r *Rig) WantServedAfterCollections() {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.Context(), 20*time.Second)
	defer cancel()
	served := make(chan Answer)
	go func() { served <- r.Get(ctx, "next") }()
	for {
		select {
		case got := <-served:
			r.Want("GET after a body was dropped", got, 200)
			return
		case <-time.After(10 * time.Millisecond):
			runtime.GC()
		}
	}
}

// Protocols are the ways to reach a vendor over real sockets.
var Protocols = map[string]func(http.Handler) (*testserver.Server, error){"HTTP/1.1": testserver.Listen, "HTTP/2.0": testserver.ListenTLS}

// WantShutdownAfterCollections shuts the transport down, which must wait for the garbage collector.
func (r *Rig) WantShutdownAfterCollections() {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.Context(), 20*time.Second)
	defer cancel()
	ended := make(chan error)
	go func() { ended <- r.Transport.Shutdown(ctx) }()
	for {
		select {
		case err := <-ended:
			if err != nil {
				r.Errorf("Shutdown after a body was dropped = %v", err)
			}
			return
		case <-time.After(10 * time.Millisecond):
			runtime.GC()
		}
	}
}

// Quirk returns a request for one of the corners.
func (r *Rig) Quirk(method, pathAndQuery, body string) *http.Request {
	r.Helper()
	req, err := http.NewRequestWithContext(r.Context(), method, r.Server.URL+pathAndQuery, strings.NewReader(body))
	if err != nil {
		r.Fatal(err)
	}
	return req
}

// Upgrade returns a request for another protocol.
func (r *Rig) Upgrade() *http.Request {
	req := r.Quirk("GET", "/switch", "")
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", "chat")
	return req
}

// WantClosed fails the test unless the error, at that instant, is ErrClosed.
func WantClosed(t *testing.T, what string, got Answer, at time.Duration) {
	t.Helper()
	var ours *weir.Error
	if !errors.Is(got.Err, shaping.ErrClosed) || !errors.As(got.Err, &ours) || ours.Timeout() || got.At != at {
		t.Errorf("%s = %d, %v at %v, want ErrClosed at %v", what, got.Status, got.Err, got.At, at)
	}
}
