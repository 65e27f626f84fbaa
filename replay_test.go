package weir_test

import (
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/backoff"
	"github.com/weirgo/weir/internal/testserver"
)

// A body is sent again only where it can be had again, and then the same.

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

// A seeker is a body that can seek, and stands somewhere in its middle.
type seeker struct {
	*strings.Reader
	countedBody
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
			req.GetBody, req.Body, p.BufferBody = nil, newCountedBody(text), 1<<20
		}, 3},
		{"from a buffer, chunked", func(_ *testing.T, req *http.Request, p *backoff.Policy) {
			req.GetBody, req.Body, req.ContentLength, p.BufferBody = nil, newCountedBody(text), -1, 1<<20
		}, 3},
		{"not beyond the buffer", func(_ *testing.T, req *http.Request, p *backoff.Policy) {
			req.GetBody, req.Body, req.ContentLength, p.BufferBody = nil, newCountedBody(text), -1, 1<<10
		}, 1},
		{"not without a way", func(_ *testing.T, req *http.Request, _ *backoff.Policy) {
			req.GetBody, req.Body = nil, newCountedBody(text)
		}, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			vendor := &bodies{fail: 2}
			policy := after(0)
			r := socketRig(t, &testserver.Vendor{Handler: vendor}, &weir.Transport{Retry: policy})
			req, _ := http.NewRequestWithContext(t.Context(), http.MethodPut, r.server.URL, strings.NewReader(text))
			tt.change(t, req, policy)
			got := r.do(req)
			if wantStatus := map[bool]int{true: 200, false: 503}[tt.want > 1]; got.status != wantStatus || got.err != nil {
				t.Errorf("PUT = %d, %v, want %d", got.status, got.err, wantStatus)
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

func TestGetBodyErrorIsReturned(t *testing.T) {
	failure := errors.New("body is gone")
	r := socketRig(t, &testserver.Vendor{Handler: &bodies{fail: 1}}, &weir.Transport{Retry: after(0)})
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodPut, r.server.URL, strings.NewReader("body"))
	req.GetBody = func() (io.ReadCloser, error) { return nil, failure }
	got := r.do(req)
	var ours *weir.Error
	if !errors.Is(got.err, failure) || !errors.As(got.err, &ours) || ours.Status != 503 || ours.Attempts != 1 {
		t.Errorf("PUT = %d, %v, want the error of GetBody with the last status", got.status, got.err)
	}
}

// An empty body is no body.
func TestNoBodyIsSentAgain(t *testing.T) {
	for _, body := range []io.Reader{nil, http.NoBody} {
		vendor := &bodies{fail: 2}
		r := socketRig(t, &testserver.Vendor{Handler: vendor}, &weir.Transport{Retry: after(0)})
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodPut, r.server.URL, body)
		req.GetBody = nil
		r.want("PUT", r.do(req), 200)
	}
}

// A body that fails is an error of the caller's own, with nothing tried again
// that cannot be.
func TestBodyErrorIsReturned(t *testing.T) {
	failure := errors.New("body broke")
	r := socketRig(t, &testserver.Vendor{Handler: new(bodies)}, &weir.Transport{Retry: after(0)})
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodPut, r.server.URL, io.MultiReader(strings.NewReader("half"), failing{failure}))
	req.ContentLength = 100
	if got := r.do(req); !errors.Is(got.err, failure) {
		t.Errorf("PUT = %d, %v, want the body's error", got.status, got.err)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
