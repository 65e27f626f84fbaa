package retries_test

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
	"github.com/weirgo/weir/internal/acceptance/harness"
	"github.com/weirgo/weir/internal/testserver"
	"github.com/weirgo/weir/shaping"
)

// A discarded response is drained and closed, so that its connection serves the next attempt. A
// machine that stops may cost a connection, hence the bubble.
func TestTransportReusesConnectionOfDiscardedResponse(t *testing.T) {
	for _, status := range []int{429, 500} {
		for _, size := range []int{0, 100, 60_000} {
			t.Run(fmt.Sprint(status, " with ", size), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := harness.PipeRig(t,
						&testserver.Vendor{Faults: []testserver.Fault{{Last: 3, Do: testserver.Answer, Status: status, Size: size}}},
						&weir.Transport{Retry: harness.After(0)})
					r.Want("GET", r.Get(t.Context(), "a"), 200)
					if got := len(r.Vendor.Arrivals()); got != 4 {
						t.Errorf("arrivals = %d, want 4", got)
					}
					if got := r.Server.Conns(); got != 1 {
						t.Errorf("connections = %d, want 1", got)
					}
				})
			})
		}
	}
}

// A chunked body has no length.
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
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t, &testserver.Vendor{Handler: handler}, &weir.Transport{Retry: harness.After(0)})
		r.Want("GET", r.Get(t.Context(), "a"), 200)
		if got := r.Server.Conns(); got != 1 {
			t.Errorf("connections = %d, want 1", got)
		}
	})
}

// No more is read than a connection is worth.
func TestTransportDropsLongDiscardedBody(t *testing.T) {
	r := harness.SocketRig(t,
		&testserver.Vendor{Faults: []testserver.Fault{{Last: 1, Do: testserver.Answer, Status: 500, Size: 8 << 20}}},
		&weir.Transport{Retry: harness.After(0)})
	r.Want("GET", r.Get(t.Context(), "a"), 200)
	if got := r.Server.Conns(); got != 2 {
		t.Errorf("connections = %d, want 2", got)
	}
}

// A body that stays open costs an attempt no more than a new connection, and Close of the last one
// nothing.
func TestTransportDiscardsHungBodyAfterAMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t,
			&testserver.Vendor{Faults: []testserver.Fault{{Do: testserver.SlowBody, Status: 500, Size: 1_000, Delay: time.Hour}}},
			&weir.Transport{Retry: harness.After(0)})
		resp, err := r.Transport.RoundTrip(r.Request(t.Context(), "a"))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		const moment = 100 * time.Millisecond
		if harness.WantEqual(t, "arrivals", harness.Instants(r.Vendor.Arrivals()), harness.Spaced(0, moment, 4)); r.Now() != 3*moment {
			t.Errorf("closed at %v, want with the last attempt, %v", r.Now(), 3*moment)
		}
	})
}

// A response is kept until the next attempt departs. A wait that ends otherwise returns it, with 64
// KiB of its body.
func TestResponseInHandIsReturnedIfTheNextWaitFails(t *testing.T) {
	slow := testserver.Fault{Last: 1, Do: testserver.SlowBody, Status: 500, Size: 160, Delay: time.Hour}
	for _, tt := range []struct {
		name      string
		fault     testserver.Fault // of the first request
		told      string           // wait in the answer to the second
		meanwhile func(*harness.Rig)
		at        time.Duration
		size      int
		broken    bool
	}{
		{"the transport is closed", harness.Answered(1, testserver.Fault{Status: 500, Size: 100}), "", func(r *harness.Rig) { r.Transport.Close() }, 500 * time.Millisecond, 100, false},
		{"the transport is closed in line", harness.Answered(1, testserver.Fault{Status: 500, Size: 100}), "5", func(r *harness.Rig) {
			r.Start("other")
			time.Sleep(time.Second)
			r.Transport.Close()
		}, 1500 * time.Millisecond, 100, false},
		{"it is shed", harness.Answered(1, testserver.Fault{Status: 500, Size: 100}), "5", func(r *harness.Rig) {
			r.Start("other")
			time.Sleep(time.Second)
			r.Start("newcomer")
		}, 1500 * time.Millisecond, 100, false},
		{"the lane is closed", harness.Answered(1, testserver.Fault{Status: 500, Size: 100}), "600", func(r *harness.Rig) { r.Start("other") }, time.Second, 100, false},
		{"the deadline is too near", harness.Answered(1, testserver.Fault{Status: 500, Size: 100}), "60", func(r *harness.Rig) { r.Start("other") }, time.Second, 100, false},
		{"no body", harness.Answered(1, testserver.Fault{Status: 500}), "60", func(r *harness.Rig) { r.Start("other") }, time.Second, 0, false},
		{"as long as is kept", harness.Answered(1, testserver.Fault{Status: 500, Size: 64 << 10}), "60", func(r *harness.Rig) { r.Start("other") }, time.Second, 64 << 10, false},
		{"too long", harness.Answered(1, testserver.Fault{Status: 500, Size: 64<<10 + 1}), "60", func(r *harness.Rig) { r.Start("other") }, time.Second, 64 << 10, true},
		{"it stands still", slow, "60", func(r *harness.Rig) { r.Start("other") }, 1100 * time.Millisecond, 10, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := harness.PipeRig(t, &testserver.Vendor{Faults: []testserver.Fault{tt.fault, harness.Answered(2, testserver.Fault{Header: harness.Hints(tt.told)})}},
					&weir.Transport{Retry: harness.After(time.Second), Line: weir.Line{MaxWaiting: 2, Overflow: shaping.OverflowShedOldest}})
				first, done := harness.Within(10*time.Second)(r, r.Request(t.Context(), "a")), make(chan harness.Answer, 1)
				go func() { done <- r.Do(first) }()
				time.Sleep(500 * time.Millisecond)
				tt.meanwhile(r)
				got := <-done
				broken := errors.Is(got.Err, io.ErrUnexpectedEOF)
				if got.Status != 500 || broken != tt.broken || got.Err != nil && !broken || len(got.Body) != tt.size || got.At != tt.at {
					t.Errorf("GET = %d, %d bytes, %v at %v, want 500, %d bytes at %v", got.Status, len(got.Body), got.Err, got.At, tt.size, tt.at)
				}
				r.Transport.Close()
			})
		})
	}
}

// A server may answer before it has read the request. Closing the request's body then breaks the
// connection, and with it the answer.
func TestResponseIsWholeIfNoRetryFollows(t *testing.T) {
	const size = 1 << 20
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(500)
		w.Write(make([]byte, size))
	})
	r := harness.SocketRig(t, &testserver.Vendor{Handler: handler}, &weir.Transport{Retry: &backoff.Policy{BudgetShare: -1, BudgetPerSecond: -1}})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, r.Server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Body = rewindable{io.NewSectionReader(zeros{}, 0, 100<<20)}
	got := r.Do(req)
	r.Want("PUT", got, 500)
	if len(got.Body) != size {
		t.Errorf("PUT = %d bytes, want %d", len(got.Body), size)
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
		r := harness.PipeRig(t, &testserver.Vendor{Faults: []testserver.Fault{{Do: testserver.Answer, Status: 500, Size: 100}}},
			&weir.Transport{Retry: harness.After(0), Prepare: func(*http.Request) error {
				if prepared++; prepared > 2 {
					return errors.New("no token")
				}
				return nil
			}})
		if got := r.Get(t.Context(), "a"); got.Status != 500 || got.Err != nil || len(got.Body) != 100 {
			t.Errorf("GET = %d, %d bytes, %v, want the second answer", got.Status, len(got.Body), got.Err)
		}
		r.WantArrivals(2)
	})
}

// A cancelled caller gets its error, as from net/http.
func TestResponseInHandIsNotReturnedToACallerWhoHasGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t, &testserver.Vendor{Faults: []testserver.Fault{endless500}}, &weir.Transport{Retry: harness.After(time.Second)})
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(500*time.Millisecond, cancel)
		if got := r.Get(ctx, "a"); !errors.Is(got.Err, context.Canceled) || got.At != 500*time.Millisecond {
			t.Errorf("GET = %d, %v at %v, want the context's error at 500ms", got.Status, got.Err, got.At)
		}
	})
}

// A hint in the body is awaited not much longer than a drain.
func TestTransportReadsHintOfHungBodyWithinBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dialect := &headers.Dialect{Body: []headers.Field{{Name: "wait", Fact: headers.FactRetryAfter}}}
		r := harness.PipeRig(t,
			&testserver.Vendor{Faults: []testserver.Fault{{
				Last: 1, Do: testserver.SlowBody, Status: 429, Size: 1_000, Delay: time.Hour,
				Header: http.Header{"Content-Type": {"application/json"}},
			}}},
			&weir.Transport{Retry: harness.After(0), Dialect: dialect})
		got := r.Get(t.Context(), "a")
		r.Want("GET", got, 200)
		if got.At > 10*time.Second {
			t.Errorf("answered at %v, want within 10s", got.At)
		}
	})
}

// A discarded body is not drained beyond the caller's patience.
func TestTransportDrainEndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t,
			&testserver.Vendor{Faults: []testserver.Fault{{Do: testserver.SlowBody, Status: 500, Size: 1_000, Delay: time.Hour}}},
			&weir.Transport{Retry: harness.After(0)})
		req := harness.Within(300*time.Millisecond)(r, r.Request(t.Context(), "a"))
		if got := r.Do(req); got.At > 300*time.Millisecond {
			t.Errorf("answered at %v, want no later than 300ms", got.At)
		}
	})
}
