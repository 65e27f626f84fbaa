package retries_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/backoff"
	"github.com/weirgo/weir/internal/acceptance/harness"
	"github.com/weirgo/weir/internal/testserver"
	"github.com/weirgo/weir/throttle"
)

// Resends of net/http itself behind one attempt: counted on the wire, bounded by cause, charged to
// the lane.

// hundred is a burst that earns nothing during a test.
func hundred() []throttle.Limit {
	return []throttle.Limit{throttle.TokenBucket(1, 24*time.Hour, 100)}
}

// wantCharged fails the test unless this many of the hundred permits are spent.
func wantCharged(t *testing.T, transport *weir.Transport, want int) {
	t.Helper()
	headroom := transport.Snapshot()[0].Limits[0].Headroom
	if got := 100 - headroom; got < float64(want)-0.1 || got > float64(want)+0.1 {
		t.Errorf("permits charged = %.2f, want %d", got, want)
	}
}

func framesRig(t *testing.T, frames *testserver.Frames, transport *weir.Transport) func() harness.Answer {
	t.Helper()
	server := testserver.RunFrames(t, frames)
	transport.Base, transport.Limits = server.Transport(), hundred()
	t.Cleanup(func() { transport.Close() })
	return func() (a harness.Answer) {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
		resp, err := transport.RoundTrip(req)
		if err != nil {
			return harness.Answer{Err: err}
		}
		resp.Body.Close()
		return harness.Answer{Status: resp.StatusCode}
	}
}

func TestHTTP2ResendsAreBoundedAndCharged(t *testing.T) {
	tests := []struct {
		name     string
		how      testserver.Refusal
		refusals int
		wire     int // streams, and permits
		status   int // zero: an error
	}{
		{"GOAWAY once", testserver.GoAway, 1, 2, 200},
		{"GOAWAY twice", testserver.GoAway, 2, 3, 200},
		{"GOAWAY for ever", testserver.GoAway, -1, 3, 0},
		{"REFUSED_STREAM once", testserver.RefusedStream, 1, 2, 200},
		{"REFUSED_STREAM twice", testserver.RefusedStream, 2, 3, 200},
		{"REFUSED_STREAM for ever", testserver.RefusedStream, -1, 3, 0},
		{"ENHANCE_YOUR_CALM", testserver.EnhanceYourCalm, -1, 1, 0},
		{"ENHANCE_YOUR_CALM of a stream", testserver.CalmStream, -1, 1, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			frames := &testserver.Frames{Refusals: tt.refusals, How: tt.how}
			transport := &weir.Transport{Retry: backoff.None}
			got := framesRig(t, frames, transport)()
			if got.Status != tt.status || (got.Err == nil) != (tt.status != 0) {
				t.Errorf("GET = %d, %v, want %d", got.Status, got.Err, tt.status)
			}
			if n := frames.Streams(); n != tt.wire {
				t.Errorf("streams on the wire = %d, want %d", n, tt.wire)
			}
			wantCharged(t, transport, tt.wire)
			var stopped *weir.ResendError
			if looped := tt.status == 0 && tt.wire > 1; errors.As(got.Err, &stopped) != looped || looped && stopped.Sent != tt.wire {
				t.Errorf("error = %v, want *weir.ResendError: %v, with %d sent", got.Err, looped, tt.wire)
			}
		})
	}
}

// A stop may be retried, within the bound of attempts.
func TestHTTP2LoopEndsWithAttempts(t *testing.T) {
	t.Parallel()
	frames := &testserver.Frames{Refusals: -1}
	transport := &weir.Transport{Retry: harness.After(0)}
	got := framesRig(t, frames, transport)()
	var ours *weir.Error
	var stopped *weir.ResendError
	if !errors.As(got.Err, &ours) || ours.Attempts != backoff.DefaultAttempts || !errors.As(got.Err, &stopped) {
		t.Errorf("GET = %v, want *weir.ResendError after %d attempts", got.Err, backoff.DefaultAttempts)
	}
	if n := frames.Streams(); n != 12 {
		t.Errorf("streams on the wire = %d, want 12", n)
	}
	wantCharged(t, transport, 12)
}

func TestHTTP2LoopThatEndsInTimeIsSuccess(t *testing.T) {
	t.Parallel()
	frames := &testserver.Frames{Refusals: 7}
	transport := &weir.Transport{Retry: harness.After(0)}
	if got := framesRig(t, frames, transport)(); got.Status != 200 {
		t.Errorf("GET = %d, %v, want 200", got.Status, got.Err)
	}
	if n := frames.Streams(); n != 8 {
		t.Errorf("streams on the wire = %d, want 8", n)
	}
	wantCharged(t, transport, 8)
}

func TestUnguardedResendsAreLeftAlone(t *testing.T) {
	t.Parallel()
	frames := &testserver.Frames{Refusals: 10}
	transport := &weir.Transport{Retry: backoff.None, UnguardedResends: true}
	if got := framesRig(t, frames, transport)(); got.Status != 200 {
		t.Errorf("GET = %d, %v, want 200", got.Status, got.Err)
	}
	if n := frames.Streams(); n != 11 {
		t.Errorf("streams on the wire = %d, want 11", n)
	}
	wantCharged(t, transport, 1)
}

// deadIdle returns a rig whose base keeps n idle connections, each of which closes without an
// answer when reused.
func deadIdle(t *testing.T, n int, transport *weir.Transport) *harness.Rig {
	t.Helper()
	var meet sync.WaitGroup
	meet.Add(n)
	gather := true
	handler := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		if gather {
			meet.Done()
			meet.Wait()
		}
	})
	transport.Limits = hundred()
	r := harness.SocketRig(t, &testserver.Vendor{Handler: handler}, transport)
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() { r.Want("warming GET", r.Get(t.Context(), "warm"), 200) })
	}
	wg.Wait()
	gather = false
	if got := r.Server.Conns(); got != n {
		t.Fatalf("connections = %d, want %d", got, n)
	}
	r.Vendor.SetFaults(testserver.Fault{Do: testserver.CloseReused})
	return r
}

func TestDeadIdleConnectionsEndInSuccess(t *testing.T) {
	for _, n := range []int{1, 8, 9, 16} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			transport := &weir.Transport{Retry: backoff.None}
			r := deadIdle(t, n, transport)
			r.Want("GET", r.Get(t.Context(), "a"), 200)
			// Eight at most are found dead, and then a new one is opened.
			want := min(n, 8) + 1
			if got := len(r.Vendor.Arrivals()) - n; got != want {
				t.Errorf("on the wire = %d, want %d", got, want)
			}
			wantCharged(t, transport, n+want)
		})
	}
}

// Other calls sent meanwhile keep their bound too.
func TestDeadIdleConnectionsUnderLoad(t *testing.T) {
	t.Parallel()
	transport := &weir.Transport{Retry: backoff.None}
	r := deadIdle(t, 16, transport)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() { r.Want("GET", r.Get(t.Context(), "a"), 200) })
	}
	wg.Wait()
	if got := len(r.Vendor.Arrivals()) - 16; got > 8*9 {
		t.Errorf("on the wire = %d, want at most 9 for each of 8", got)
	}
	wantCharged(t, transport, len(r.Vendor.Arrivals()))
}

// A request that cannot be repeated is not resent, and returns an error.
func TestDeadIdleConnectionsFailPost(t *testing.T) {
	t.Parallel()
	transport := &weir.Transport{Retry: backoff.None}
	r := deadIdle(t, 2, transport)
	req := r.Request(t.Context(), "a")
	req.Method = http.MethodPost
	if got := r.Do(req); got.Err == nil {
		t.Errorf("POST = %d, want an error", got.Status)
	}
	if got := len(r.Vendor.Arrivals()) - 2; got != 1 {
		t.Errorf("on the wire = %d, want 1", got)
	}
	wantCharged(t, transport, 3)
}

func TestUnguardedDeadIdleConnectionsAreLeftAlone(t *testing.T) {
	t.Parallel()
	transport := &weir.Transport{Retry: backoff.None, UnguardedResends: true}
	r := deadIdle(t, 12, transport)
	r.Want("GET", r.Get(t.Context(), "a"), 200)
	if got := len(r.Vendor.Arrivals()) - 12; got != 13 {
		t.Errorf("on the wire = %d, want 13", got)
	}
	wantCharged(t, transport, 13)
}

// Calls after a resend pay for it, at exact instants.
func TestResendIsPaidByLaterDepartures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t,
			&testserver.Vendor{Faults: []testserver.Fault{{First: 2, Last: 2, Do: testserver.CloseReused}}},
			&weir.Transport{Limits: harness.Every(time.Second)})
		r.Callers(t.Context(), 4).Wait()
		// The second call, at 1 s, is sent twice: the third waits for both.
		want := []time.Duration{0, time.Second, time.Second, 3 * time.Second, 4 * time.Second}
		harness.WantEqual(t, "arrivals", harness.Instants(r.Vendor.Arrivals()), want)
	})
}

func TestResendIsChargedItsCost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t,
			&testserver.Vendor{Faults: []testserver.Fault{{First: 2, Last: 2, Do: testserver.CloseReused}}},
			&weir.Transport{Limits: []throttle.Limit{throttle.TokenBucket(1, time.Hour, 100)}})
		r.Want("GET", r.Get(weir.WithCost(t.Context(), 10), "a"), 200)
		r.Want("GET", r.Get(weir.WithCost(t.Context(), 30), "b"), 200)
		wantCharged(t, r.Transport, 70)
	})
}

// A base that resends after an answer, for retries, redirects or authentication, is charged for
// each send and not stopped.
func TestBaseThatSendsSeveralTimesIsNotStopped(t *testing.T) {
	for name, start := range map[string]func(*httptest.Server){
		"HTTP/1.1":        (*httptest.Server).Start,
		"HTTP/1.1 in TLS": (*httptest.Server).StartTLS,
		"HTTP/2":          func(s *httptest.Server) { s.EnableHTTP2 = true; s.StartTLS() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var sent atomic.Int32
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if sent.Add(1) < 12 {
					w.WriteHeader(http.StatusInternalServerError)
				}
			}))
			start(server)
			defer server.Close()
			base := server.Client().Transport
			retrying := harness.BaseFunc(func(req *http.Request) (*http.Response, error) {
				for {
					resp, err := base.RoundTrip(req)
					if err != nil || resp.StatusCode < 500 {
						return resp, err
					}
					resp.Body.Close()
				}
			})
			transport := &weir.Transport{Base: retrying, Limits: hundred(), Retry: backoff.None}
			defer transport.Close()
			req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
			resp, err := transport.RoundTrip(req)
			if err != nil {
				t.Fatalf("RoundTrip = %v after %d sends, want 200", err, sent.Load())
			}
			resp.Body.Close()
			wantCharged(t, transport, 12)
		})
	}
}
