package weir_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/backoff"
	"github.com/weirgo/weir/internal/testserver"
	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// A countedBody is a request body that counts how often it is closed.
type countedBody struct {
	io.Reader
	closes atomic.Int32
	once   sync.Once
	closed chan struct{} // nil: nobody waits for it
}

func newCountedBody(text string) *countedBody {
	return &countedBody{Reader: strings.NewReader(text), closed: make(chan struct{})}
}

func (b *countedBody) Close() error {
	b.closes.Add(1)
	b.once.Do(func() {
		if b.closed != nil {
			close(b.closed)
		}
	})
	return nil
}

// http.Client does not close a body that its transport forgot.
func TestTransportClosesRequestBodyOnce(t *testing.T) {
	failure := errors.New("base failed")
	var delayed atomic.Bool
	tests := []struct {
		name      string
		transport *weir.Transport
		faults    []testserver.Fault
		before    func(*rig) // what happens first
		change    func(*rig, *http.Request) *http.Request
		want      error // nil: a response
		panics    bool
	}{
		{name: "success", transport: new(weir.Transport)},
		{
			name: "refused on its deadline", transport: &weir.Transport{Limits: every(time.Hour)},
			before: (*rig).spend, change: within(time.Minute), want: shaping.ErrDeadline,
		},
		{
			name: "longer than the longest wait", transport: &weir.Transport{Limits: every(time.Hour), Line: weir.Line{MaxWait: time.Minute}},
			before: (*rig).spend, want: shaping.ErrDeadline,
		},
		{
			name: "exceeds the burst", transport: &weir.Transport{Limits: every(time.Hour)},
			change: func(_ *rig, req *http.Request) *http.Request {
				return req.WithContext(weir.WithCost(req.Context(), 2))
			}, want: throttle.ErrExceedsBurst,
		},
		{
			name: "cancelled in line", transport: &weir.Transport{Limits: every(time.Hour)},
			before: (*rig).spend, change: cancelledWhen(func(r *rig) bool { return r.waiting() > 0 }), want: context.Canceled,
		},
		{
			name: "cancelled in flight", transport: new(weir.Transport),
			faults: []testserver.Fault{{Do: testserver.Hang}},
			change: cancelledWhen(func(r *rig) bool { return len(r.vendor.Arrivals()) > 0 }), want: context.Canceled,
		},
		{
			name:      "cancelled between attempts",
			transport: &weir.Transport{Retry: &backoff.Policy{Delay: func(int, *http.Response) (time.Duration, bool) { delayed.Store(true); return time.Hour, true }, BufferBody: 1 << 10}},
			faults:    []testserver.Fault{{Do: testserver.Answer, Status: 500}},
			change:    cancelledWhen(func(*rig) bool { return delayed.Load() }), want: context.Canceled,
		},
		{
			name: "cancelled before", transport: new(weir.Transport),
			change: func(_ *rig, req *http.Request) *http.Request {
				ctx, cancel := context.WithCancel(req.Context())
				cancel()
				return req.WithContext(ctx)
			}, want: context.Canceled,
		},
		{
			name: "panic of the base", panics: true,
			transport: &weir.Transport{Base: baseFunc(func(*http.Request) (*http.Response, error) { panic("base") })},
		},
		{
			name: "panic of Prepare", panics: true,
			transport: &weir.Transport{Prepare: func(*http.Request) error { panic("prepare") }},
		},
		{
			name: "panic of Key", panics: true,
			transport: &weir.Transport{Key: func(*http.Request) string { panic("key") }},
		},
		{
			name: "panic of Cost", panics: true,
			transport: &weir.Transport{Limits: every(time.Hour), Cost: func(*http.Request, throttle.Limit) int { panic("cost") }},
		},
		{
			name: "base fails", want: failure,
			transport: &weir.Transport{Base: closesBody(nil, failure)},
		},
		{
			name: "base returns a response with an error", want: failure,
			transport: &weir.Transport{Base: closesBody(&http.Response{StatusCode: 200, Body: http.NoBody}, failure)},
		},
		{
			name: "base returns nothing", want: errAny,
			transport: &weir.Transport{Base: closesBody(nil, nil)},
		},
		{
			name: "base fails and forgets the body", want: failure,
			transport: &weir.Transport{Base: baseFunc(func(*http.Request) (*http.Response, error) { return nil, failure })},
		},
		{
			name: "Prepare fails", want: failure,
			transport: &weir.Transport{Prepare: func(*http.Request) error { return failure }},
		},
		{
			name: "negative cost", want: errAny,
			transport: &weir.Transport{Limits: every(time.Hour), Cost: func(*http.Request, throttle.Limit) int { return -1 }},
		},
		{
			name: "limits that do not validate", want: errAny,
			transport: &weir.Transport{Limits: []throttle.Limit{{Permits: -1}}},
		},
		{
			name: "limits of the lane that do not validate", want: errAny,
			transport: &weir.Transport{LimitsFor: func(string) []throttle.Limit { return []throttle.Limit{{Permits: -1}} }},
		},
		{
			name: "closed transport", transport: new(weir.Transport), want: shaping.ErrClosed,
			before: func(r *rig) { r.transport.Close() },
		},
		{
			name: "no URL", transport: new(weir.Transport), want: errAny,
			change: func(_ *rig, req *http.Request) *http.Request { req.URL = nil; return req },
		},
		{
			name: "nobody listens", want: errAny,
			transport: &weir.Transport{Retry: after(0)},
			before:    func(r *rig) { r.server.Close() },
		},
		{
			name: "attempts ran out", transport: &weir.Transport{Retry: &backoff.Policy{Delay: backoff.Constant(0), BufferBody: 1 << 20}},
			faults: []testserver.Fault{{Do: testserver.Answer, Status: 500}},
		},
		{
			name: "lane is closed", transport: new(weir.Transport), want: weir.ErrPaused,
			faults: []testserver.Fault{{Do: testserver.Answer, Header: hints("600")}},
			before: func(r *rig) { r.get(r.Context(), "first") },
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := socketRig(t, &testserver.Vendor{Faults: tt.faults}, tt.transport)
			if tt.before != nil {
				tt.before(r)
			}
			body := newCountedBody("body")
			req, _ := http.NewRequestWithContext(t.Context(), http.MethodPut, r.server.URL, body)
			if tt.change != nil {
				req = tt.change(r, req)
			}
			func() {
				defer func() {
					if p := recover(); (p != nil) != tt.panics {
						t.Errorf("panic = %v, want one: %v", p, tt.panics)
					}
				}()
				got := r.do(req)
				if tt.want == nil && got.err != nil || tt.want != nil && tt.want != errAny && !errors.Is(got.err, tt.want) || tt.want == errAny && got.err == nil {
					t.Errorf("RoundTrip = %d, %v, want %v", got.status, got.err, tt.want)
				}
			}()
			select {
			case <-body.closed:
			case <-time.After(10 * time.Second):
				t.Error("body is not closed after 10 s")
			}
			r.server.Close() // and with it all that might close it again
			if got := body.closes.Load(); got != 1 {
				t.Errorf("closes of the body = %d, want 1", got)
			}
		})
	}
}

// errAny stands for an error that has no name.
var errAny = errors.New("any error")

// spend takes the one permit that the limits have at hand.
func (r *rig) spend() { r.want("first GET", r.get(r.Context(), "first"), 200) }

// waiting returns how many stand in line.
func (r *rig) waiting() (n int) {
	for _, lane := range r.transport.Snapshot() {
		n += lane.Waiting
	}
	return n
}

func within(d time.Duration) func(*rig, *http.Request) *http.Request {
	return func(r *rig, req *http.Request) *http.Request {
		ctx, cancel := context.WithTimeout(req.Context(), d)
		r.Cleanup(cancel)
		return req.WithContext(ctx)
	}
}

// cancelledWhen cancels the request once the state holds.
func cancelledWhen(state func(*rig) bool) func(*rig, *http.Request) *http.Request {
	return func(r *rig, req *http.Request) *http.Request {
		ctx, cancel := context.WithCancel(req.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			for !state(r) && ctx.Err() == nil {
				<-time.After(time.Millisecond)
			}
			cancel()
		}()
		r.Cleanup(func() { cancel(); <-done })
		return req.WithContext(ctx)
	}
}

// closesBody is a base that does with the body what its contract says.
func closesBody(resp *http.Response, err error) http.RoundTripper {
	return baseFunc(func(req *http.Request) (*http.Response, error) {
		req.Body.Close()
		return resp, err
	})
}

// Each body that GetBody made is closed as well.
func TestTransportClosesEveryBodyOfGetBody(t *testing.T) {
	r := socketRig(t,
		&testserver.Vendor{Faults: []testserver.Fault{{Do: testserver.Answer, Status: 500}}},
		&weir.Transport{Retry: after(0)})
	bodies := []*countedBody{newCountedBody("body")}
	req, _ := http.NewRequest(http.MethodPut, r.server.URL, bodies[0])
	req.ContentLength = 4
	req.GetBody = func() (io.ReadCloser, error) {
		bodies = append(bodies, newCountedBody("body"))
		return bodies[len(bodies)-1], nil
	}
	r.want("PUT", r.do(req), 500)
	r.server.Close()
	if len(bodies) != backoff.DefaultAttempts {
		t.Errorf("bodies = %d, want %d", len(bodies), backoff.DefaultAttempts)
	}
	for i, body := range bodies {
		<-body.closed
		if got := body.closes.Load(); got != 1 {
			t.Errorf("closes of body %d = %d, want 1", i, got)
		}
	}
}
