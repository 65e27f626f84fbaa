package lanes_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/headers"
	"github.com/weirgo/weir/internal/acceptance/harness"
	"github.com/weirgo/weir/internal/testserver"
)

// Over sockets, in real time: calls in line go on after refusals without a time that concern their
// route or credential. Of 10/s, one call in 15 s was served when each of those in line tried the
// vendor as soon as its lane let it go.
func TestCallsInLineGoOnAfterRefusalsWithoutTime(t *testing.T) {
	for name, scope := range map[string]headers.Scope{"route": headers.ScopeRoute, "credential": headers.ScopeCredential} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(&testserver.Vendor{Limits: []testserver.Limit{testserver.TokenBucket(10, time.Second, 1)}})
			defer server.Close()
			base := &http.Transport{MaxIdleConnsPerHost: 64}
			defer base.CloseIdleConnections()
			transport := &weir.Transport{Base: base, Dialect: harness.ScopedBy(scope)}
			defer transport.Close()
			ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
			var served atomic.Int64
			var calling sync.WaitGroup
			for range 64 {
				calling.Go(func() {
					for ctx.Err() == nil {
						req, _ := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, nil)
						if resp, err := transport.RoundTrip(req); err == nil {
							_ = resp.Body.Close()
							if resp.StatusCode == http.StatusOK && served.Add(1) >= 40 {
								cancel()
							}
						}
					}
				})
			}
			calling.Wait()
			cancel()
			if n := served.Load(); n < 40 {
				t.Errorf("%d calls were served in 15 s, want 40 of 150 at least", n)
			}
		})
	}
}

// Over sockets, in real time: calls of a route go on while another one, which is counted by itself, is spent.
// As a part of one quota of the lane they took 43 s.
func TestCallsGoOnBesideASpentRoute(t *testing.T) {
	t.Parallel()
	var small, large atomic.Int64
	began := time.Now()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		time.Sleep(50 * time.Millisecond)
		limit, made := 3, &small
		if req.URL.Path == "/large" {
			limit, made = 1000, &large
		}
		for name, values := range harness.Reported(limit, limit-int(made.Add(1)), time.Minute-time.Since(began)) {
			w.Header()[name] = values
		}
	}))
	defer server.Close()
	transport := &weir.Transport{Dialect: harness.ScopedBy(headers.ScopeRoute)}
	defer transport.Close()
	client := &http.Client{Transport: transport}
	for range 3 {
		harness.Call(client, server.URL+"/small", time.Hour)
	}
	spent := time.Now()
	var calling sync.WaitGroup
	for range 8 {
		calling.Go(func() {
			for range 8 {
				harness.Call(client, server.URL+"/large", time.Hour)
			}
		})
	}
	calling.Wait()
	if took := time.Since(spent); took > 4*time.Second {
		t.Errorf("64 calls of 50 ms by eight callers took %v beside a spent route, want 0.4 s on an idle machine", took)
	}
}
