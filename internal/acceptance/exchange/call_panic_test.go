package exchange_test

import (
	"context"
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
	"github.com/weirgo/weir/internal/acceptance/harness"
	"github.com/weirgo/weir/internal/testserver"
	"github.com/weirgo/weir/throttle"
)

// A panic in a function of the user leaves nothing behind.

// A panicLog panics at each line of log.
type panicLog struct{ slog.Handler }

func (panicLog) Enabled(_ context.Context, l slog.Level) bool { return l > slog.LevelDebug }
func (panicLog) Handle(context.Context, slog.Record) error    { panic("log") }

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

func TestPanicClosesResponseInHand(t *testing.T) {
	for name, tt := range map[string]struct {
		status int
		header http.Header
		*weir.Transport
	}{
		"check":     {500, nil, &weir.Transport{Retry: &backoff.Policy{CheckRetry: func(context.Context, *http.Response, error) (bool, error) { panic("check") }}}},
		"delay":     {500, nil, &weir.Transport{Retry: &backoff.Policy{Delay: func(int, *http.Response) (time.Duration, bool) { panic("delay") }}}},
		"logger":    {429, harness.Hints("3600"), &weir.Transport{Logger: slog.New(panicLog{})}},
		"unwatched": {429, harness.Hints("3600"), &weir.Transport{Logger: slog.New(panicLog{}), UnguardedResends: true}},
	} {
		t.Run(name, func(t *testing.T) {
			closed := 0
			var sent context.Context
			tr := tt.Transport
			tr.Base = harness.BaseFunc(func(req *http.Request) (*http.Response, error) {
				sent = req.Context()
				return &http.Response{StatusCode: tt.status, Header: tt.header, Body: harness.ClosedBody{Reader: strings.NewReader("x"), Closed: &closed}}, nil
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
				Shadow: []throttle.Limit{harness.Named(throttle.TokenBucket(1, time.Second, 1), "points")},
				Cost: func(req *http.Request, l throttle.Limit) int {
					if l.Unit == "points" && req.Header.Get(testserver.DefaultIDHeader) == "bad" {
						panic("cost")
					}
					return 1
				},
			},
		} {
			tr.Limits = harness.Every(time.Second)
			r := harness.PipeRig(t, &testserver.Vendor{}, tr)
			if !panics(func() { r.Get(t.Context(), "bad") }) {
				t.Errorf("%s: GET did not panic", name)
			}
			if got := r.Get(t.Context(), "good"); got.At != 0 || got.Err != nil {
				t.Errorf("%s: the next left at %v, %v, want 0s", name, got.At, got.Err)
			}
		}
	})
}

func TestPanicOfTracerLeavesNobodyInLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t, &testserver.Vendor{}, &weir.Transport{Limits: harness.Every(time.Second), TracerProvider: panicProvider{}})
		r.Want("GET", r.Get(t.Context(), "first"), 200)
		for range 3 {
			if !panics(func() { r.Get(t.Context(), "bad") }) {
				t.Error("GET did not panic")
			}
		}
		if state := r.Transport.Snapshot()[0]; state.Waiting != 0 || state.Requests != 0 {
			t.Errorf("%d wait and %d are in the lane, want 0", state.Waiting, state.Requests)
		}
		time.Sleep(time.Second)
		if got := r.Get(t.Context(), "next"); got.At != time.Second || got.Err != nil {
			t.Errorf("the next left at %v, %v, want 1s", got.At, got.Err)
		}
	})
}

func TestPanicOfLoggerLeavesLaneEmpty(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t, &testserver.Vendor{}, &weir.Transport{
			Key:    func(*http.Request) string { return "vendor/users/123" },
			Logger: slog.New(panicLog{}),
		})
		if !panics(func() { r.Get(t.Context(), "bad") }) {
			t.Error("GET did not panic")
		}
		r.Want("GET", r.Get(t.Context(), "good"), 200)
		if users := r.Transport.Snapshot()[0].Requests; users != 0 {
			t.Errorf("Requests = %d, want 0", users)
		}
	})
}
