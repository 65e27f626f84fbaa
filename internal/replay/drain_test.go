package replay

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"testing"
)

func TestDrainReadsNoMoreThanItsBound(t *testing.T) {
	tests := []struct {
		name         string
		size, length int64
		left         int64
	}{
		{"short", 100, 100, 0},
		{"of unknown length", 100, -1, 0},
		{"as long as the bound", drainBytes, drainBytes, 0},
		{"longer, which is known", drainBytes + 10, drainBytes + 10, 9}, // the one byte shows that there is more
		{"longer, which is not", drainBytes + 10, -1, 9},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := strings.NewReader(strings.Repeat("x", int(tt.size)))
			s := &source{Reader: r}
			Drain(&http.Response{Body: s, ContentLength: tt.length})
			s.check(t, 1)
			if left := int64(r.Len()); left != tt.left {
				t.Errorf("%d bytes left, want %d", left, tt.left)
			}
		})
	}
}

// A caller who copies the body learns that it is incomplete, however it is read.
func TestDrainedBodyEndsTheSameForAllReaders(t *testing.T) {
	for size, want := range map[int]error{drainBytes: nil, drainBytes + 1: io.ErrUnexpectedEOF} {
		resp := &http.Response{Body: io.NopCloser(strings.NewReader(strings.Repeat("x", size)))}
		Drain(resp)
		if n, err := io.Copy(io.Discard, resp.Body); n != drainBytes || err != want {
			t.Errorf("%d bytes, drained: copied %d, %v, want %d, %v", size, n, err, drainBytes, want)
		}
	}
}

// A base that stands in for a server may leave the body out.
func TestDrainOfAResponseWithoutABody(*testing.T) { Drain(new(http.Response)) }

func TestDrainedConnectionIsUsedAgain(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, strings.Repeat("x", 40_000))
	}))
	defer server.Close()
	base := &http.Transport{}
	defer base.CloseIdleConnections()
	for i := range 5 {
		reused := false
		trace := &httptrace.ClientTrace{GotConn: func(c httptrace.GotConnInfo) { reused = c.Reused }}
		req, err := http.NewRequestWithContext(httptrace.WithClientTrace(t.Context(), trace), "GET", server.URL, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := base.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		Drain(resp)
		if reused != (i > 0) {
			t.Errorf("request %d on a used connection: %v, want %v", i+1, reused, i > 0)
		}
	}
}
