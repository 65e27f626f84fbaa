package weir_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/backoff"
	"github.com/weirgo/weir/internal/testserver"
	"github.com/weirgo/weir/throttle"
)

// What is left where a function of the user panics: nothing.

// A panicLog panics when it is told something.
type panicLog struct{ slog.Handler }

func (panicLog) Enabled(context.Context, slog.Level) bool  { return true }
func (panicLog) Handle(context.Context, slog.Record) error { panic("log") }

// A panicTracer panics at each span.
type panicTracer struct{ noop.Tracer }

func (panicTracer) Start(context.Context, string, ...trace.SpanStartOption) (context.Context, trace.Span) {
	panic("tracer")
}

type panicProvider struct{ noop.TracerProvider }

func (panicProvider) Tracer(string, ...trace.TracerOption) trace.Tracer { return panicTracer{} }

// panics reports whether f panics.
func panics(f func()) (did bool) {
	defer func() { did = recover() != nil }()
	f()
	return false
}

// A toldBody tells when it is closed.
type toldBody struct {
	io.Reader
	closed *int
}

func (b toldBody) Close() error { *b.closed++; return nil }

func TestPanicClosesResponseInHand(t *testing.T) {
	for name, tt := range map[string]struct {
		status int
		header http.Header
		*weir.Transport
	}{
		"check":     {500, nil, &weir.Transport{Retry: &backoff.Policy{CheckRetry: func(context.Context, *http.Response, error) (bool, error) { panic("check") }}}},
		"delay":     {500, nil, &weir.Transport{Retry: &backoff.Policy{Delay: func(int, *http.Response) (time.Duration, bool) { panic("delay") }}}},
		"logger":    {429, hints("3600"), &weir.Transport{Logger: slog.New(panicLog{})}},
		"unwatched": {429, hints("3600"), &weir.Transport{Logger: slog.New(panicLog{}), UnguardedResends: true}},
	} {
		t.Run(name, func(t *testing.T) {
			closed := 0
			var sent context.Context
			tr := tt.Transport
			tr.Base = baseFunc(func(req *http.Request) (*http.Response, error) {
				sent = req.Context()
				return &http.Response{StatusCode: tt.status, Header: tt.header, Body: toldBody{strings.NewReader("x"), &closed}}, nil
			})
			defer tr.Close()
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://vendor.test/", nil)
			if err != nil {
				t.Fatal(err)
			}
			if !panics(func() { _, _ = tr.RoundTrip(req) }) || closed != 1 {
				t.Errorf("RoundTrip has closed the body %d times, want a panic and 1", closed)
			}
			if sent.Err() == nil && !tr.UnguardedResends {
				t.Error("the attempt's context has not ended, want its end")
			}
			if users := tr.Snapshot()[0].Requests; users != 0 {
				t.Errorf("Requests = %d, want 0", users)
			}
		})
	}
}

func TestPanicBeforeSendReturnsPermit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, tr := range map[string]*weir.Transport{
			"prepare": {Prepare: func(req *http.Request) error {
				if req.Header.Get(testserver.DefaultIDHeader) == "bad" {
					panic("prepare")
				}
				return nil
			}},
			"cost of a shadow": {
				Shadow: []throttle.Limit{named(throttle.TokenBucket(1, time.Second, 1), "points")},
				Cost: func(req *http.Request, l throttle.Limit) int {
					if l.Unit == "points" && req.Header.Get(testserver.DefaultIDHeader) == "bad" {
						panic("cost")
					}
					return 1
				},
			},
		} {
			tr.Limits = every(time.Second)
			r := pipeRig(t, &testserver.Vendor{}, tr)
			if !panics(func() { r.get(t.Context(), "bad") }) {
				t.Errorf("%s: GET did not panic", name)
			}
			if got := r.get(t.Context(), "good"); got.at != 0 || got.err != nil {
				t.Errorf("%s: the next left at %v, %v, want 0s", name, got.at, got.err)
			}
		}
	})
}

func TestPanicOfTracerLeavesNobodyInLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := pipeRig(t, &testserver.Vendor{}, &weir.Transport{Limits: every(time.Second), TracerProvider: panicProvider{}})
		r.want("GET", r.get(t.Context(), "first"), 200)
		for range 3 {
			if !panics(func() { r.get(t.Context(), "bad") }) {
				t.Error("GET did not panic")
			}
		}
		if state := r.transport.Snapshot()[0]; state.Waiting != 0 || state.Requests != 0 {
			t.Errorf("%d wait and %d are in the lane, want none", state.Waiting, state.Requests)
		}
		time.Sleep(time.Second)
		if got := r.get(t.Context(), "next"); got.at != time.Second || got.err != nil {
			t.Errorf("the next left at %v, %v, want 1s", got.at, got.err)
		}
	})
}

func TestPanicOfLoggerLeavesLaneEmpty(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := pipeRig(t, &testserver.Vendor{}, &weir.Transport{
			Key:    func(*http.Request) string { return "vendor/users/123" },
			Logger: slog.New(panicLog{}),
		})
		if !panics(func() { r.get(t.Context(), "bad") }) {
			t.Error("GET did not panic")
		}
		r.want("GET", r.get(t.Context(), "good"), 200)
		if users := r.transport.Snapshot()[0].Requests; users != 0 {
			t.Errorf("Requests = %d, want 0", users)
		}
	})
}
