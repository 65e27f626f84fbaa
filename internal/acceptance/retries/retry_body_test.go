package retries_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	trace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/backoff"
	"github.com/weirgo/weir/internal/acceptance/harness"
	"github.com/weirgo/weir/internal/testserver"
)

// A body is sent again only if it can be read again, and then it is equal.

// bodies is a vendor's handler that keeps the bodies it read, and fails first.
type bodies struct {
	mu   sync.Mutex
	fail int
	got  []string
}

func (b *bodies) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, _ := io.ReadAll(req.Body)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.got = append(b.got, string(body))
	if len(b.got) <= b.fail {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
}

// A seeker is a body that can seek, and starts in its middle.
type seeker struct {
	*strings.Reader
	harness.CountedBody
}

func (s *seeker) Read(p []byte) (int, error) { return s.Reader.Read(p) }

func TestBodyIsSentAgain(t *testing.T) {
	text := strings.Repeat("body ", 10_000)
	tests := []struct {
		name   string
		change func(*testing.T, *http.Request, *backoff.Policy)
		want   int
	}{
		{"by GetBody", func(*testing.T, *http.Request, *backoff.Policy) {}, 3},
		{"by seeking, from where it stood", func(_ *testing.T, req *http.Request, _ *backoff.Policy) {
			r := strings.NewReader("before" + text)
			r.Seek(6, io.SeekStart)
			req.GetBody, req.Body = nil, &seeker{Reader: r}
		}, 3},
		{"of a file", func(t *testing.T, req *http.Request, _ *backoff.Policy) {
			name := filepath.Join(t.TempDir(), "body")
			os.WriteFile(name, []byte(text), 0o600)
			f, err := os.Open(name)
			if err != nil {
				t.Fatal(err)
			}
			req.GetBody, req.Body = nil, f
		}, 3},
		{"from a buffer asked for", func(_ *testing.T, req *http.Request, p *backoff.Policy) {
			req.GetBody, req.Body, p.BufferBody = nil, harness.NewCountedBody(text), 1<<20
		}, 3},
		{"from a buffer, chunked", func(_ *testing.T, req *http.Request, p *backoff.Policy) {
			req.GetBody, req.Body, req.ContentLength, p.BufferBody = nil, harness.NewCountedBody(text), -1, 1<<20
		}, 3},
		{"not beyond the buffer", func(_ *testing.T, req *http.Request, p *backoff.Policy) {
			req.GetBody, req.Body, req.ContentLength, p.BufferBody = nil, harness.NewCountedBody(text), -1, 1<<10
		}, 1},
		{"from the buffer of the default", func(_ *testing.T, req *http.Request, _ *backoff.Policy) {
			req.GetBody, req.Body = nil, harness.NewCountedBody(text)
		}, 3},
		{"from the buffer of the default, chunked", func(_ *testing.T, req *http.Request, _ *backoff.Policy) {
			req.GetBody, req.Body, req.ContentLength = nil, harness.NewCountedBody(text), -1
		}, 3},
		{"in memory", func(_ *testing.T, req *http.Request, p *backoff.Policy) {
			req.GetBody, p.BufferBody = nil, -1
		}, 3},
		{"not without a way", func(_ *testing.T, req *http.Request, p *backoff.Policy) {
			req.GetBody, req.Body, p.BufferBody = nil, harness.NewCountedBody(text), -1
		}, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			vendor := &bodies{fail: 2}
			policy := harness.After(0)
			r := harness.SocketRig(t, &testserver.Vendor{Handler: vendor}, &weir.Transport{Retry: policy})
			req, _ := http.NewRequestWithContext(t.Context(), http.MethodPut, r.Server.URL, strings.NewReader(text))
			tt.change(t, req, policy)
			got := r.Do(req)
			if wantStatus := map[bool]int{true: 200, false: 503}[tt.want > 1]; got.Status != wantStatus || got.Err != nil {
				t.Errorf("PUT = %d, %v, want %d", got.Status, got.Err, wantStatus)
			}
			if len(vendor.got) != tt.want {
				t.Errorf("attempts = %d, want %d", len(vendor.got), tt.want)
			}
			for i, body := range vendor.got {
				if body != text {
					t.Errorf("body of attempt %d = %d bytes, want the %d bytes", i+1, len(body), len(text))
				}
			}
		})
	}
}

// A failing GetBody must not lose the response in hand. A kept body stays open when the base closes
// it: the rest may be read again.
func TestBodyIsKeptOnlyWhereItMayBeSentAgain(t *testing.T) {
	tests := []struct {
		name   string
		policy *backoff.Policy
		length int64
		kept   bool
	}{
		{"no policy", nil, backoff.DefaultBufferBody, true},
		{"no policy, longer", nil, backoff.DefaultBufferBody + 1, false},
		{"defaults", new(backoff.Policy), backoff.DefaultBufferBody, true},
		{"defaults, longer", new(backoff.Policy), backoff.DefaultBufferBody + 1, false},
		{"a bound", &backoff.Policy{BufferBody: 10}, 10, true},
		{"a bound, longer", &backoff.Policy{BufferBody: 10}, 11, false},
		{"nothing", &backoff.Policy{BufferBody: -1}, 1, false},
		{"none", backoff.None, 1, false},
		{"fewer than none", &backoff.Policy{Attempts: -1, MaxThrottled: -1, BufferBody: 10}, 1, false},
		{"refusals alone", &backoff.Policy{Attempts: 1}, 1, true},
		{"all but refusals", &backoff.Policy{MaxThrottled: -1}, 1, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			body := harness.NewCountedBody("")
			req, _ := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://vendor.test", body)
			req.ContentLength = tt.length
			transport := &weir.Transport{Retry: tt.policy, Base: harness.BaseFunc(func(out *http.Request) (*http.Response, error) {
				out.Body.Close()
				if kept := body.Closes.Load() == 0; kept != tt.kept {
					t.Errorf("kept = %v, want %v", kept, tt.kept)
				}
				return harness.Stub{}.RoundTrip(out)
			})}
			defer transport.Close()
			resp, err := transport.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if n := body.Closes.Load(); n != 1 {
				t.Errorf("body closed %d times, want 1", n)
			}
		})
	}
}

func TestFailingGetBodyReturnsResponseInHand(t *testing.T) {
	r := harness.SocketRig(t, &testserver.Vendor{Handler: &bodies{fail: 1}}, &weir.Transport{Retry: harness.After(0)})
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodPut, r.Server.URL, strings.NewReader("body"))
	req.GetBody = func() (io.ReadCloser, error) { return nil, harness.ErrAny }
	r.Want("PUT", r.Do(req), 503)
}

// Without a response, the attempt's failure is more useful than GetBody's.
func TestFailingGetBodyReturnsErrorOfAttempt(t *testing.T) {
	failure := &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	tr := &weir.Transport{Retry: harness.After(0), Base: harness.ClosesBody(nil, failure)}
	defer tr.Close()
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://vendor.test", strings.NewReader("body"))
	req.GetBody = func() (io.ReadCloser, error) { return nil, harness.ErrAny }
	if _, err := tr.RoundTrip(req); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("PUT = %v, want %v", err, failure)
	}
}

// A call that only its body prevents from a retry reports that in a line of debug log and in the
// caller's span.
func TestLostBodyIsReported(t *testing.T) {
	tests := []struct {
		name   string
		length int
		change func(*http.Request)
		want   bool
	}{
		{"within the default", 64 << 10, func(*http.Request) {}, false},
		{"beyond the default", 64<<10 + 1, func(*http.Request) {}, true},
		{"beyond the default, chunked", 64<<10 + 1, func(req *http.Request) { req.ContentLength = -1 }, true},
		{"a method that is never repeated", 64<<10 + 1, func(req *http.Request) { req.Method = http.MethodPost }, false},
		{"GetBody fails", 1, func(req *http.Request) {
			req.GetBody = func() (io.ReadCloser, error) { return nil, harness.ErrAny }
		}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var log bytes.Buffer
			spans := harness.NewSpanLog()
			r := harness.SocketRig(t, &testserver.Vendor{Handler: &bodies{fail: 9}}, &weir.Transport{
				Retry:  harness.After(0),
				Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
			})
			ctx, span := spans.Tracer("test").Start(t.Context(), "caller")
			req, _ := http.NewRequestWithContext(ctx, http.MethodPut, r.Server.URL, harness.NewCountedBody(strings.Repeat("x", tt.length)))
			req.ContentLength = int64(tt.length)
			tt.change(req)
			r.Want("PUT", r.Do(req), 503)
			span.End()
			events := slices.DeleteFunc(spans.Recorder.Ended()[0].Events(), func(e trace.Event) bool { return e.Name != "weir.not_retried" })
			if told := strings.Contains(log.String(), "not tried again"); told != tt.want || (len(events) == 1) != tt.want {
				t.Errorf("log %q, events %v, want a report: %v", log.String(), events, tt.want)
			}
			if tt.want {
				for _, kv := range []attribute.KeyValue{attribute.String("weir.retry.outcome", "body"), attribute.String("error.type", "5xx"), attribute.Int("weir.attempt", 1)} {
					if !slices.Contains(events[0].Attributes, kv) {
						t.Errorf("attributes = %v, want %v", events[0].Attributes, kv)
					}
				}
			}
		})
	}
}

// An empty body is no body.
func TestNoBodyIsSentAgain(t *testing.T) {
	for _, body := range []io.Reader{nil, http.NoBody} {
		vendor := &bodies{fail: 2}
		r := harness.SocketRig(t, &testserver.Vendor{Handler: vendor}, &weir.Transport{Retry: harness.After(0)})
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodPut, r.Server.URL, body)
		req.GetBody = nil
		r.Want("PUT", r.Do(req), 200)
	}
}

// A failing body is the caller's own error, and nothing unrepeatable is retried.
func TestBodyErrorIsReturned(t *testing.T) {
	failure := errors.New("body broke")
	r := harness.SocketRig(t, &testserver.Vendor{Handler: new(bodies)}, &weir.Transport{Retry: harness.After(0)})
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodPut, r.Server.URL, io.MultiReader(strings.NewReader("half"), failing{failure}))
	req.ContentLength = 100
	if got := r.Do(req); !errors.Is(got.Err, failure) {
		t.Errorf("PUT = %d, %v, want the body's error", got.Status, got.Err)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// A writeCount counts the writes of the connections that it dials.
type writeCount struct{ n atomic.Int32 }

func (w *writeCount) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, address)
	return &countedConn{conn, w}, err
}

type countedConn struct {
	net.Conn
	count *writeCount
}

func (c *countedConn) Write(p []byte) (int, error) {
	c.count.n.Add(1)
	return c.Conn.Write(p)
}

// net/http sends a header and a body in memory in one write, if it recognises the body's type: in
// each attempt.
func TestBodyInMemoryIsOneWriteWithItsHeader(t *testing.T) {
	for name, change := range map[string]func(*http.Request){
		"of NewRequest":   func(*http.Request) {},
		"without GetBody": func(req *http.Request) { req.GetBody = nil },
	} {
		t.Run(name, func(t *testing.T) {
			vendor := &bodies{fail: 2}
			var writes writeCount
			base := &http.Transport{DialContext: writes.dial}
			defer base.CloseIdleConnections()
			r := harness.SocketRig(t, &testserver.Vendor{Handler: vendor}, &weir.Transport{Base: base, Retry: harness.After(0)})
			req, _ := http.NewRequestWithContext(t.Context(), http.MethodPut, r.Server.URL, strings.NewReader("body"))
			change(req)
			r.Want("PUT", r.Do(req), 200)
			if got := writes.n.Load(); got != 3 || len(vendor.got) != 3 {
				t.Errorf("writes = %d for %d attempts, want 3 for 3", got, len(vendor.got))
			}
		})
	}
}

// BenchmarkPost sends small bodies over loopback, with and without Weir.
func BenchmarkPost(b *testing.B) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		_, _ = io.Copy(io.Discard, req.Body)
	}))
	defer server.Close()
	base := &http.Transport{}
	defer base.CloseIdleConnections()
	tr := &weir.Transport{Base: base}
	defer tr.Close()
	for name, transport := range map[string]http.RoundTripper{"plain": base, "weir": tr} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				req, _ := http.NewRequestWithContext(b.Context(), http.MethodPost, server.URL, strings.NewReader("body"))
				resp, err := transport.RoundTrip(req)
				if err != nil {
					b.Fatal(err)
				}
				resp.Body.Close()
			}
		})
	}
}
