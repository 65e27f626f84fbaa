package weir_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/backoff"
	"github.com/weirgo/weir/headers"
	"github.com/weirgo/weir/internal/testserver"
	"github.com/weirgo/weir/shaping"
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

// A body that stays open costs an attempt no more than a new connection would,
// and Close of the last one nothing.
func TestTransportDiscardsHungBodyAfterAMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := pipeRig(t,
			&testserver.Vendor{Faults: []testserver.Fault{{Do: testserver.SlowBody, Status: 500, Size: 1_000, Delay: time.Hour}}},
			&weir.Transport{Retry: after(0)})
		resp, err := r.transport.RoundTrip(r.request(t.Context(), "a"))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		const moment = 100 * time.Millisecond
		if wantEqual(t, "arrivals", instants(r.vendor.Arrivals()), spaced(0, moment, 4)); r.now() != 3*moment {
			t.Errorf("closed at %v, want with the last attempt, %v", r.now(), 3*moment)
		}
	})
}

// A response is kept until the next attempt departs: a wait that ends otherwise
// returns it, with 64 KiB of its body.
func TestResponseInHandIsReturnedIfTheNextWaitFails(t *testing.T) {
	slow := testserver.Fault{Last: 1, Do: testserver.SlowBody, Status: 500, Size: 160, Delay: time.Hour}
	for _, tt := range []struct {
		name      string
		fault     testserver.Fault // of the first request
		told      string           // wait in the answer to the second
		meanwhile func(*rig)
		at        time.Duration
		size      int
		broken    bool
	}{
		{"the transport is closed", answered(1, testserver.Fault{Status: 500, Size: 100}), "", func(r *rig) { r.transport.Close() }, 500 * time.Millisecond, 100, false},
		{"the transport is closed in line", answered(1, testserver.Fault{Status: 500, Size: 100}), "5", func(r *rig) {
			r.start("other")
			time.Sleep(time.Second)
			r.transport.Close()
		}, 1500 * time.Millisecond, 100, false},
		{"it is shed", answered(1, testserver.Fault{Status: 500, Size: 100}), "5", func(r *rig) {
			r.start("other")
			time.Sleep(time.Second)
			r.start("newcomer")
		}, 1500 * time.Millisecond, 100, false},
		{"the lane is closed", answered(1, testserver.Fault{Status: 500, Size: 100}), "600", func(r *rig) { r.start("other") }, time.Second, 100, false},
		{"the deadline is too near", answered(1, testserver.Fault{Status: 500, Size: 100}), "60", func(r *rig) { r.start("other") }, time.Second, 100, false},
		{"no body", answered(1, testserver.Fault{Status: 500}), "60", func(r *rig) { r.start("other") }, time.Second, 0, false},
		{"as long as is kept", answered(1, testserver.Fault{Status: 500, Size: 64 << 10}), "60", func(r *rig) { r.start("other") }, time.Second, 64 << 10, false},
		{"too long", answered(1, testserver.Fault{Status: 500, Size: 64<<10 + 1}), "60", func(r *rig) { r.start("other") }, time.Second, 64 << 10, true},
		{"it stands still", slow, "60", func(r *rig) { r.start("other") }, 1100 * time.Millisecond, 10, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := pipeRig(t, &testserver.Vendor{Faults: []testserver.Fault{tt.fault, answered(2, testserver.Fault{Header: hints(tt.told)})}},
				&weir.Transport{Retry: after(time.Second), Line: weir.Line{MaxWaiting: 2, Overflow: shaping.OverflowShedOldest}})
			first, done := within(10*time.Second)(r, r.request(t.Context(), "a")), make(chan answer, 1)
			go func() { done <- r.do(first) }()
			time.Sleep(500 * time.Millisecond)
			tt.meanwhile(r)
			got := <-done
			broken := errors.Is(got.err, io.ErrUnexpectedEOF)
			if got.status != 500 || broken != tt.broken || got.err != nil && !broken || len(got.body) != tt.size || got.at != tt.at {
				t.Errorf("%s: GET = %d, %d bytes, %v at %v, want 500, %d bytes at %v", tt.name, got.status, len(got.body), got.err, got.at, tt.size, tt.at)
			}
			r.transport.Close()
		})
	}
}

// A server may answer before it has read the request. To close the request's
// body then breaks the connection, and with it the answer.
func TestResponseIsWholeIfNoRetryFollows(t *testing.T) {
	const size = 1 << 20
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(500)
		w.Write(make([]byte, size))
	})
	r := socketRig(t, &testserver.Vendor{Handler: handler}, &weir.Transport{Retry: &backoff.Policy{BudgetShare: -1, BudgetPerSecond: -1}})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, r.server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Body = rewindable{io.NewSectionReader(zeros{}, 0, 100<<20)}
	got := r.do(req)
	r.want("PUT", got, 500)
	if len(got.body) != size {
		t.Errorf("PUT = %d bytes, want %d", len(got.body), size)
	}
}

// A rewindable is a body that can seek.
type rewindable struct{ io.ReadSeeker }

func (rewindable) Close() error { return nil }

// zeros is an endless file.
type zeros struct{}

func (zeros) ReadAt(p []byte, _ int64) (int, error) { return len(p), nil }

// An error of Prepare ends the call, and keeps no response from its caller.
func TestResponseInHandIsReturnedIfPrepareFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		prepared := 0
		r := pipeRig(t, &testserver.Vendor{Faults: []testserver.Fault{{Do: testserver.Answer, Status: 500, Size: 100}}},
			&weir.Transport{Retry: after(0), Prepare: func(*http.Request) error {
				if prepared++; prepared > 2 {
					return errors.New("no token")
				}
				return nil
			}})
		if got := r.get(t.Context(), "a"); got.status != 500 || got.err != nil || len(got.body) != 100 {
			t.Errorf("GET = %d, %d bytes, %v, want the second answer", got.status, len(got.body), got.err)
		}
		r.wantArrivals(2)
	})
}

// A caller that has gone gets its error, as from net/http.
func TestResponseInHandIsNotReturnedToACallerWhoHasGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := pipeRig(t, &testserver.Vendor{Faults: []testserver.Fault{endless500}}, &weir.Transport{Retry: after(time.Second)})
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(500*time.Millisecond, cancel)
		if got := r.get(ctx, "a"); !errors.Is(got.err, context.Canceled) || got.at != 500*time.Millisecond {
			t.Errorf("GET = %d, %v at %v, want the context's error at 500ms", got.status, got.err, got.at)
		}
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
