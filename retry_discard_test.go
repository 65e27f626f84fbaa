package weir_test

import (
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/headers"
	"github.com/weirgo/weir/internal/testserver"
)

// What is thrown away is drained and closed, so that its connection carries the
// next attempt.
func TestTransportReusesConnectionOfDiscardedResponse(t *testing.T) {
	for _, status := range []int{429, 500} {
		for _, size := range []int{0, 100, 60_000} {
			t.Run(fmt.Sprint(status, " with ", size), func(t *testing.T) {
				r := socketRig(t,
					&testserver.Vendor{Faults: []testserver.Fault{{Last: 3, Do: testserver.Answer, Status: status, Size: size}}},
					&weir.Transport{Retry: after(0)})
				r.want("GET", r.get(t.Context(), "a"), 200)
				if got := len(r.vendor.Arrivals()); got != 4 {
					t.Errorf("arrivals = %d, want 4", got)
				}
				if got := r.server.Conns(); got != 1 {
					t.Errorf("connections = %d, want 1", got)
				}
			})
		}
	}
}

// A chunked body has no length to go by.
func TestTransportReusesConnectionOfDiscardedChunks(t *testing.T) {
	n := 0
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if n++; n < 4 {
			w.WriteHeader(500)
			for range 10 {
				w.Write(make([]byte, 5_000))
				http.NewResponseController(w).Flush()
			}
		}
	})
	r := socketRig(t, &testserver.Vendor{Handler: handler}, &weir.Transport{Retry: after(0)})
	r.want("GET", r.get(t.Context(), "a"), 200)
	if got := r.server.Conns(); got != 1 {
		t.Errorf("connections = %d, want 1", got)
	}
}

// More than a connection is worth is not read.
func TestTransportDropsLongDiscardedBody(t *testing.T) {
	r := socketRig(t,
		&testserver.Vendor{Faults: []testserver.Fault{{Last: 1, Do: testserver.Answer, Status: 500, Size: 8 << 20}}},
		&weir.Transport{Retry: after(0)})
	r.want("GET", r.get(t.Context(), "a"), 200)
	if got := r.server.Conns(); got != 2 {
		t.Errorf("connections = %d, want 2", got)
	}
}

func TestTransportDiscardsHungBodyAfterASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := pipeRig(t,
			&testserver.Vendor{Faults: []testserver.Fault{{Last: 1, Do: testserver.SlowBody, Status: 500, Size: 1_000, Delay: time.Hour}}},
			&weir.Transport{Retry: after(0)})
		r.want("GET", r.get(t.Context(), "a"), 200)
		wantEqual(t, "arrivals", instants(r.vendor.Arrivals()), []time.Duration{0, time.Second})
	})
}

// A hint in the body is not waited for much longer than a drain.
func TestTransportReadsHintOfHungBodyWithinBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dialect := &headers.Dialect{Body: []headers.Field{{Name: "wait", Tells: headers.FactRetryAfter}}}
		r := pipeRig(t,
			&testserver.Vendor{Faults: []testserver.Fault{{
				Last: 1, Do: testserver.SlowBody, Status: 429, Size: 1_000, Delay: time.Hour,
				Header: http.Header{"Content-Type": {"application/json"}},
			}}},
			&weir.Transport{Retry: after(0), Dialect: dialect})
		got := r.get(t.Context(), "a")
		r.want("GET", got, 200)
		if got.at > 10*time.Second {
			t.Errorf("answered at %v, want within 10s", got.at)
		}
	})
}

// A discarded body is not drained beyond the caller's patience.
func TestTransportDrainEndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := pipeRig(t,
			&testserver.Vendor{Faults: []testserver.Fault{{Do: testserver.SlowBody, Status: 500, Size: 1_000, Delay: time.Hour}}},
			&weir.Transport{Retry: after(0)})
		req := within(300*time.Millisecond)(r, r.request(t.Context(), "a"))
		if got := r.do(req); got.at > 300*time.Millisecond {
			t.Errorf("answered at %v, want no later than 300ms", got.at)
		}
	})
}
