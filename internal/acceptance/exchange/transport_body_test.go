package exchange_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/backoff"
	"github.com/weirgo/weir/internal/acceptance/harness"
	"github.com/weirgo/weir/internal/testserver"
	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// http.Client does not close a body that its transport left open.
func TestTransportClosesRequestBodyOnce(t *testing.T) {
	failure := errors.New("base failed")
	var delayed atomic.Bool
	tests := []struct {
		name      string
		transport *weir.Transport
		faults    []testserver.Fault
		before    func(*harness.Rig) // setup
		change    func(*harness.Rig, *http.Request) *http.Request
		want      error // nil: a response
		panics    bool
	}{
		{name: "success", transport: new(weir.Transport)},
		{
			name: "refused on its deadline", transport: &weir.Transport{Limits: harness.Every(time.Hour)},
			before: (*harness.Rig).Spend, change: harness.Within(time.Minute), want: shaping.ErrDeadline,
		},
		{
			name: "longer than the longest wait", transport: &weir.Transport{Limits: harness.Every(time.Hour), Line: weir.Line{MaxWait: time.Minute}},
			before: (*harness.Rig).Spend, want: shaping.ErrDeadline,
		},
		{
			name: "exceeds the burst", transport: &weir.Transport{Limits: harness.Every(time.Hour)},
			change: func(_ *harness.Rig, req *http.Request) *http.Request {
				return req.WithContext(weir.WithCost(req.Context(), 2))
			}, want: throttle.ErrExceedsBurst,
		},
		{
			name: "cancelled in line", transport: &weir.Transport{Limits: harness.Every(time.Hour)},
			before: (*harness.Rig).Spend, change: cancelledWhen(func(r *harness.Rig) bool { return r.Waiting() > 0 }), want: context.Canceled,
		},
		{
			name: "cancelled in flight", transport: new(weir.Transport),
			faults: []testserver.Fault{{Do: testserver.Hang}},
			change: cancelledWhen(func(r *harness.Rig) bool { return len(r.Vendor.Arrivals()) > 0 }), want: context.Canceled,
		},
		{
			name:      "cancelled between attempts",
			transport: &weir.Transport{Retry: &backoff.Policy{Delay: func(int, *http.Response) (time.Duration, bool) { delayed.Store(true); return time.Hour, true }, BufferBody: 1 << 10}},
			faults:    []testserver.Fault{{Do: testserver.Answer, Status: 500}},
			change:    cancelledWhen(func(*harness.Rig) bool { return delayed.Load() }), want: context.Canceled,
		},
		{
			name: "cancelled before", transport: new(weir.Transport),
			change: func(_ *harness.Rig, req *http.Request) *http.Request {
				ctx, cancel := context.WithCancel(req.Context())
				cancel()
				return req.WithContext(ctx)
			}, want: context.Canceled,
		},
		{
			name: "panic of the base", panics: true,
			transport: &weir.Transport{Base: harness.BaseFunc(func(*http.Request) (*http.Response, error) { panic("base") })},
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
			transport: &weir.Transport{Limits: harness.Every(time.Hour), Cost: func(*http.Request, throttle.Limit) int { panic("cost") }},
		},
		{
			name: "base fails", want: failure,
			transport: &weir.Transport{Base: harness.ClosesBody(nil, failure)},
		},
		{
			name: "base returns a response with an error", want: failure,
			transport: &weir.Transport{Base: harness.ClosesBody(&http.Response{StatusCode: 200, Body: http.NoBody}, failure)},
		},
		{
			name: "base returns nothing", want: harness.ErrAny,
			transport: &weir.Transport{Base: harness.ClosesBody(nil, nil)},
		},
		{
			name: "base fails and forgets the body", want: failure,
			transport: &weir.Transport{Base: harness.BaseFunc(func(*http.Request) (*http.Response, error) { return nil, failure })},
		},
		{
			name: "Prepare fails", want: failure,
			transport: &weir.Transport{Prepare: func(*http.Request) error { return failure }},
		},
		{
			name: "negative cost", want: harness.ErrAny,
			transport: &weir.Transport{Limits: harness.Every(time.Hour), Cost: func(*http.Request, throttle.Limit) int { return -1 }},
		},
		{
			name: "limits that do not validate", want: harness.ErrAny,
			transport: &weir.Transport{Limits: []throttle.Limit{{Permits: -1}}},
		},
		{
			name: "limits of the lane that do not validate", want: harness.ErrAny,
			transport: &weir.Transport{LimitsFor: func(string) []throttle.Limit { return []throttle.Limit{{Permits: -1}} }},
		},
		{
			name: "closed transport", transport: new(weir.Transport), want: shaping.ErrClosed,
			before: func(r *harness.Rig) { r.Transport.Close() },
		},
		{
			name: "no URL", transport: new(weir.Transport), want: harness.ErrAny,
			change: func(_ *harness.Rig, req *http.Request) *http.Request { req.URL = nil; return req },
		},
		{
			name: "nobody listens", want: harness.ErrAny,
			transport: &weir.Transport{Retry: harness.After(0)},
			before:    func(r *harness.Rig) { r.Server.Close() },
		},
		{
			name: "attempts ran out", transport: &weir.Transport{Retry: &backoff.Policy{Delay: backoff.Constant(0), BufferBody: 1 << 20}},
			faults: []testserver.Fault{{Do: testserver.Answer, Status: 500}},
		},
		{
			name: "lane is closed", transport: new(weir.Transport), want: weir.ErrPaused,
			faults: []testserver.Fault{{Do: testserver.Answer, Header: harness.Hints("600")}},
			before: func(r *harness.Rig) { r.Get(r.Context(), "first") },
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := harness.SocketRig(t, &testserver.Vendor{Faults: tt.faults}, tt.transport)
			if tt.before != nil {
				tt.before(r)
			}
			body := harness.NewCountedBody("body")
			req, _ := http.NewRequestWithContext(t.Context(), http.MethodPut, r.Server.URL, body)
			if tt.change != nil {
				req = tt.change(r, req)
			}
			func() {
				defer func() {
					if p := recover(); (p != nil) != tt.panics {
						t.Errorf("panic = %v, want one: %v", p, tt.panics)
					}
				}()
				got := r.Do(req)
				if tt.want == nil && got.Err != nil || tt.want != nil && tt.want != harness.ErrAny && !errors.Is(got.Err, tt.want) || tt.want == harness.ErrAny && got.Err == nil {
					t.Errorf("RoundTrip = %d, %v, want %v", got.Status, got.Err, tt.want)
				}
			}()
			select {
			case <-body.Closed:
			case <-time.After(10 * time.Second):
				t.Error("body is not closed after 10 s")
			}
			r.Server.Close() // and everything that might close it again
			if got := body.Closes.Load(); got != 1 {
				t.Errorf("closes of the body = %d, want 1", got)
			}
		})
	}
}

// cancelledWhen cancels the request once the state holds.
func cancelledWhen(state func(*harness.Rig) bool) func(*harness.Rig, *http.Request) *http.Request {
	return func(r *harness.Rig, req *http.Request) *http.Request {
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

// Each body from GetBody is closed as well.
func TestTransportClosesEveryBodyOfGetBody(t *testing.T) {
	r := harness.SocketRig(t,
		&testserver.Vendor{Faults: []testserver.Fault{{Do: testserver.Answer, Status: 500}}},
		&weir.Transport{Retry: harness.After(0)})
	bodies := []*harness.CountedBody{harness.NewCountedBody("body")}
	req, _ := http.NewRequest(http.MethodPut, r.Server.URL, bodies[0])
	req.ContentLength = 4
	req.GetBody = func() (io.ReadCloser, error) {
		bodies = append(bodies, harness.NewCountedBody("body"))
		return bodies[len(bodies)-1], nil
	}
	r.Want("PUT", r.Do(req), 500)
	r.Server.Close()
	if len(bodies) != backoff.DefaultAttempts {
		t.Errorf("bodies = %d, want %d", len(bodies), backoff.DefaultAttempts)
	}
	for i, body := range bodies {
		<-body.Closed
		if got := body.Closes.Load(); got != 1 {
			t.Errorf("closes of body %d = %d, want 1", i, got)
		}
	}
}
