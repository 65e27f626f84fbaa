package recipes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/weirtest"
)

// A way is a way to put an SDK over its Transport.
type way int

const (
	recommended way = iota // its own retries are off
	retrying               // its own retries are on
	outside                // recommended, with otelhttp around the Transport
	inside                 // recommended, with otelhttp below it
)

// A refusal is a vendor's answer to the first calls.
type refusal struct {
	status int
	after  string // Retry-After; empty: it states no time
	times  int    // calls answered like this; zero: all; negative: none
	body   string // empty: one with an error for each SDK
}

// A rig is an SDK over a Transport, before a vendor.
type rig struct {
	vendor    *weirtest.Vendor
	transport *weir.Transport
	tracer    *sdktrace.TracerProvider
	spans     *tracetest.SpanRecorder
	body      string                      // of the last request of the SDK: "none", "GetBody" or "stream"
	tries     int                         // of the SDK
	call      func(context.Context) error // makes one call
}

// in runs f with a rig, in a bubble. Afterwards it checks that no request came too early.
func (r *row) in(t *testing.T, w way, refuse refusal, f func(t *testing.T, rig *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		g := &rig{vendor: weirtest.New(t), spans: tracetest.NewSpanRecorder()}
		g.tracer = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(g.spans))
		g.vendor.Handler = r.vendor(refuse)
		g.transport = r.transport()
		transport := g.transport
		transport.Base, transport.TracerProvider, transport.Logger = aim{g.vendor.Transport()}, g.tracer, slog.New(slog.DiscardHandler)
		defer transport.Close()
		var top http.RoundTripper = transport
		traced := otelhttp.WithTracerProvider(g.tracer)
		switch w {
		case inside:
			transport.Base = otelhttp.NewTransport(transport.Base, traced)
		case outside:
			top = otelhttp.NewTransport(transport, traced)
		}
		client := r.client
		if w == retrying && r.retrying != nil {
			client = r.retrying
		}
		g.call = client(looking{top, g})
		f(t, g)
		time.Sleep(time.Hour) // twilio-go leaves bodies open, until a timeout ends them
		g.vendor.Check(t)
	})
}

// vendor answers the first calls with the refusal, and the others as the SDK expects.
func (r *row) vendor(refuse refusal) http.HandlerFunc {
	var came atomic.Int32
	return func(w http.ResponseWriter, req *http.Request) {
		if n := int(came.Add(1)); refuse.times != 0 && n > refuse.times {
			r.serve(w, req)
			return
		}
		_, _ = io.Copy(io.Discard, req.Body)
		w.Header().Set("Content-Type", "application/json")
		if refuse.after != "" {
			w.Header().Set("Retry-After", refuse.after)
		}
		w.WriteHeader(refuse.status)
		if refuse.body != "" {
			fmt.Fprint(w, refuse.body)
			return
		}
		fmt.Fprintf(w, `{"error":{"message":"no","type":"api_error"},"type":"error","message":"no","code":%d}`, refuse.status)
	}
}

// serve gives the ordinary answer.
func (r *row) serve(w http.ResponseWriter, req *http.Request) {
	if r.handler != nil {
		r.handler.ServeHTTP(w, req)
		return
	}
	_, _ = io.Copy(io.Discard, req.Body)
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprint(w, "{}")
}

// An aim sends all requests to a vendor in this process, also those for https.
type aim struct{ base http.RoundTripper }

func (a aim) RoundTrip(req *http.Request) (*http.Response, error) {
	copied, url := *req, *req.URL
	url.Scheme, copied.URL = "http", &url
	return a.base.RoundTrip(&copied)
}

// A looking transport counts the SDK's tries, and records the kind of their body.
type looking struct {
	http.RoundTripper
	rig *rig
}

func (l looking) RoundTrip(req *http.Request) (*http.Response, error) {
	l.rig.tries++
	switch {
	case req.Body == nil || req.Body == http.NoBody:
		l.rig.body = "none"
	case req.GetBody != nil:
		l.rig.body = "GetBody"
	default:
		l.rig.body = "stream"
	}
	return l.RoundTripper.RoundTrip(req)
}

// tree returns the spans below a span of the user: "HTTP(wait) HTTP" for two, the first of which
// has one below it.
func (g *rig) tree(t *testing.T) string {
	ctx, root := g.tracer.Tracer("user").Start(t.Context(), "user")
	err := g.call(ctx)
	for again := (requeued{}); errors.As(err, &again); err = g.call(ctx) {
		time.Sleep(again.after)
	}
	if err != nil {
		t.Errorf("call = %v, want success after one refusal", err)
	}
	root.End()
	spans := g.spans.Ended()
	slices.SortStableFunc(spans, func(a, b sdktrace.ReadOnlySpan) int { return a.StartTime().Compare(b.StartTime()) })
	top := root.SpanContext().SpanID()
	text := below(spans, func(s sdktrace.ReadOnlySpan) bool { return s.Parent().SpanID() == top })
	if apart := below(spans, func(s sdktrace.ReadOnlySpan) bool { return !s.Parent().IsValid() && s.Name() != "user" }); apart != "" {
		text = strings.TrimSpace(text + " apart: " + apart)
	}
	return text
}

// below returns the selected spans, each with those below it.
func below(spans []sdktrace.ReadOnlySpan, pick func(sdktrace.ReadOnlySpan) bool) string {
	var words []string
	for _, s := range spans {
		if !pick(s) {
			continue
		}
		word := strings.TrimPrefix(s.Name(), "weir.")
		if strings.Contains(s.InstrumentationScope().Name, "otelhttp") {
			word = "HTTP"
		}
		if inner := below(spans, func(b sdktrace.ReadOnlySpan) bool { return b.Parent().SpanID() == s.SpanContext().SpanID() }); inner != "" {
			word += "(" + inner + ")"
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

// An answered error is a response that an SDK returns without an error.
type answered int

func (a answered) Error() string { return strconv.Itoa(int(a)) }
func (answered) seen() string    { return "none: the response has the status" }

// answer returns the error of a response's status.
func answer(status int, err error) error {
	if err == nil && status >= http.StatusBadRequest {
		return answered(status)
	}
	return err
}

// plain returns a Transport without a preset.
func plain() *weir.Transport { return new(weir.Transport) }
