package weir_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/backoff"
	"github.com/weirgo/weir/internal/testserver"
	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// flying returns how many requests of the only lane are in flight.
func (r *rig) flying() int { return r.transport.Snapshot()[0].InFlight }

func TestMaxInFlightHoldsTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := obeyingRig(t, &testserver.Vendor{Limits: []testserver.Limit{testserver.Concurrency(3)}, Service: time.Second}, &weir.Transport{InFlight: weir.InFlight{Max: 3}})
		for _, got := range r.callers(t.Context(), 10).wait() {
			r.want("GET", got, 200)
		}
		const s = time.Second
		wantEqual(t, "arrivals", instants(r.vendor.Arrivals()), []time.Duration{0, 0, 0, s, s, s, 2 * s, 2 * s, 2 * s, 3 * s})
		if n := r.flying(); n != 0 {
			t.Errorf("%d in flight after all answers, want 0", n)
		}
	})
}

// open sends a request and leaves its body open.
func (r *rig) open(ctx context.Context, id string) *http.Response {
	r.Helper()
	resp, err := r.transport.RoundTrip(r.request(ctx, id))
	if err != nil {
		r.Fatal(err)
	}
	return resp
}

func TestRequestIsInFlightUntilItsBodyEnds(t *testing.T) {
	for name, end := range map[string]func(*http.Response) error{
		"closed": func(resp *http.Response) error { return resp.Body.Close() },
		"read":   func(resp *http.Response) error { _, err := io.ReadAll(resp.Body); return err },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := pipeRig(t, &testserver.Vendor{}, &weir.Transport{InFlight: weir.InFlight{Max: 1}})
				first := r.open(t.Context(), "first")
				var second answer
				var line sync.WaitGroup
				line.Go(func() { second = r.get(t.Context(), "second") })
				time.Sleep(time.Minute)
				if n := len(r.vendor.Arrivals()); n != 1 || r.flying() != 1 {
					t.Errorf("%d arrivals and %d in flight while the first body is open, want 1 and 1", n, r.flying())
				}
				if err := end(first); err != nil {
					t.Error(err)
				}
				line.Wait()
				if r.want("the second GET", second, 200); second.at != time.Minute {
					t.Errorf("the second was answered at %v, want 1m", second.at)
				}
				first.Body.Close() // once more ends nothing
				if n := r.flying(); n != 0 {
					t.Errorf("%d in flight at the end, want 0", n)
				}
			})
		})
	}
}

func TestUntilHeadersLetsStreamsLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := pipeRig(t, &testserver.Vendor{}, &weir.Transport{InFlight: weir.InFlight{Max: 1, UntilHeaders: true}})
		first := r.open(t.Context(), "first")
		defer first.Body.Close()
		if got := r.get(t.Context(), "second"); got.at != 0 {
			t.Errorf("the second was answered at %v, want at once", got.at)
		}
	})
}

// No permit is spent for those whom calls in flight hold, and both bounds hold.
func TestFullLaneSpendsNoPermits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := pipeRig(t, &testserver.Vendor{Service: 3 * time.Second}, &weir.Transport{
			InFlight: weir.InFlight{Max: 2},
			Limits:   []throttle.Limit{throttle.TokenBucket(1, time.Second, 3)},
		})
		line := r.callers(t.Context(), 5)
		if at := r.transport.Snapshot()[0].Limits[0].Headroom; at != 1 {
			t.Errorf("%g permits at hand while the lane is full, want 1 of 3", at)
		}
		line.wait()
		const s = time.Second
		wantEqual(t, "arrivals", instants(r.vendor.Arrivals()), []time.Duration{0, 0, 3 * s, 3 * s, 6 * s})
	})
}

// An ending is how a request ends.
type ending struct {
	fault   testserver.Fault // of the first arrivals
	prepare error            // of Prepare
	panics  bool             // the base does
	d       time.Duration    // of the context; zero: no deadline
}

// endings are all of them.
var endings = map[string]ending{
	"served":   {},
	"reset":    {fault: testserver.Fault{Last: 9, Do: testserver.ResetEarly}},
	"mid body": {fault: testserver.Fault{Last: 1, Do: testserver.ResetMidBody}},
	"refused":  {fault: testserver.Fault{Last: 99, Do: testserver.Answer, Status: 429}},
	"prepare":  {prepare: errors.New("boom")},
	"panic":    {panics: true},
	"hangs":    {fault: testserver.Fault{Last: 1, Do: testserver.Hang}, d: time.Second},
}

// end sends a request that ends so. The next ones are served, unless the base
// panics.
func (e ending) end(r *rig) {
	if e.fault.Last > 0 {
		r.vendor.Faults = []testserver.Fault{e.fault}
	}
	if e.prepare != nil {
		r.transport.Prepare = func(*http.Request) error { return e.prepare }
	}
	if e.panics {
		r.transport.Base = baseFunc(func(*http.Request) (*http.Response, error) { panic("boom") })
	}
	ctx := r.Context()
	if e.d > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, e.d)
		defer cancel()
	}
	defer func() {
		_ = recover()
		r.vendor.Faults, r.transport.Prepare = nil, nil
	}()
	r.get(ctx, "a")
}

// Whatever becomes of a request, it is not in flight afterwards.
func TestFlightEndsHoweverTheRequestDoes(t *testing.T) {
	for name, ending := range endings {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := pipeRig(t, &testserver.Vendor{}, &weir.Transport{InFlight: weir.InFlight{Max: 1}})
				ending.end(r)
				if n := r.flying(); n != 0 {
					t.Errorf("%d in flight afterwards, want 0", n)
				}
			})
		})
	}
}

func TestCallerOfAFullLaneGivesUpAtItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := pipeRig(t, &testserver.Vendor{}, &weir.Transport{InFlight: weir.InFlight{Max: 1}})
		defer r.open(t.Context(), "first").Body.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		got := r.get(ctx, "second")
		var ours *weir.Error
		if !errors.Is(got.err, shaping.ErrDeadline) || !errors.As(got.err, &ours) || ours.Reason != throttle.ReasonConcurrency {
			t.Errorf("GET = %v, want ErrDeadline for concurrency", got.err)
		}
	})
}

// A body that nobody closes is found, over a real connection.
func TestDroppedBodyEndsItsFlight(t *testing.T) {
	var log bytes.Buffer
	r := socketRig(t, &testserver.Vendor{}, &weir.Transport{InFlight: weir.InFlight{Max: 1}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	for range 2 {
		r.open(t.Context(), "dropped")
		r.wantServedAfterCollections()
	}
	if n := strings.Count(log.String(), "never closed"); n != 1 {
		t.Errorf("%d lines of log, want 1:\n%s", n, &log)
	}
}

// wantServedAfterCollections sends a request that has to wait for the garbage collector.
func (r *rig) wantServedAfterCollections() {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.Context(), 20*time.Second)
	defer cancel()
	served := make(chan answer)
	go func() { served <- r.get(ctx, "next") }()
	for {
		select {
		case got := <-served:
			r.want("GET after a body was dropped", got, 200)
			return
		case <-time.After(10 * time.Millisecond):
			runtime.GC()
		}
	}
}

// The answer that an outer client's next try would get again keeps no body in flight.
func TestDroppedBodyOfAKeptAnswerEndsItsFlight(t *testing.T) {
	vendor := &testserver.Vendor{Faults: []testserver.Fault{{Last: 2, Do: testserver.Answer, Status: 502, Size: 64}}}
	r := socketRig(t, vendor, &weir.Transport{InFlight: weir.InFlight{Max: 1}, Retry: &backoff.Policy{Attempts: 2, Delay: backoff.Constant(time.Millisecond)}, Logger: slog.New(slog.DiscardHandler)})
	if got := r.open(t.Context(), "dropped"); got.StatusCode != 502 {
		t.Fatalf("the first GET is answered %d, want 502", got.StatusCode)
	}
	r.wantServedAfterCollections()
}

// A fleet's permits are had for those who may fly.
func TestMaxInFlightOfAReplica(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 2, &testserver.Vendor{Limits: []testserver.Limit{testserver.Concurrency(4)}, Service: 100 * time.Millisecond}, throttle.TokenBucket(100, time.Second, 10))
		for _, r := range f.replicas {
			r.transport.InFlight.Max = 2
		}
		var lines [2]*callers
		for i, r := range f.replicas {
			lines[i] = r.callers(t.Context(), 20)
		}
		for i, line := range lines {
			for _, got := range line.wait() {
				f.replicas[i].want("GET", got, 200)
			}
		}
		arrivals := f.replicas[0].vendor.Arrivals()
		if n := len(arrivals.Granted()); n != 40 || len(arrivals) != 40 {
			t.Errorf("%d of %d arrivals were served, want 40 of 40", n, len(arrivals))
		}
		// 40 calls of 100 ms, 4 at a time.
		if took := arrivals.Span(); took < 900*time.Millisecond || took > 1500*time.Millisecond {
			t.Errorf("they took %v, want a second", took)
		}
	})
}
