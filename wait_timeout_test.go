package weir_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/backoff"
	"github.com/weirgo/weir/headers"
	"github.com/weirgo/weir/internal/testserver"
	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// http.Client.Timeout bounds everything, and our error is what its user sees.

// wantTimeout returns the *weir.Error in an error of http.Client's that tells of
// a timeout before anything was sent.
func wantTimeout(t *testing.T, err error) *weir.Error {
	t.Helper()
	var u *url.Error
	if !errors.As(err, &u) || !u.Timeout() {
		t.Errorf("Do = %v, want a *url.Error with Timeout()", err)
	}
	var ours *weir.Error
	if !errors.As(err, &ours) {
		t.Fatalf("Do = %v, want *weir.Error in it", err)
	}
	if !ours.Timeout() || !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, shaping.ErrDeadline) {
		t.Errorf("Timeout(), DeadlineExceeded, ErrDeadline of %v = %v, %v, %v, want true", ours,
			ours.Timeout(), errors.Is(err, context.DeadlineExceeded), errors.Is(err, shaping.ErrDeadline))
	}
	return ours
}

func TestClientTimeoutRefusesWaitAtOnce(t *testing.T) {
	r := socketRig(t, &testserver.Vendor{}, &weir.Transport{Limits: every(time.Hour)})
	r.spend()
	r.client.Timeout = time.Minute
	began := time.Now()
	_, err := r.client.Get(r.server.URL)
	ours := wantTimeout(t, err)
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("refused after %v, want at once", took)
	}
	if ours.Wait <= 59*time.Minute || ours.Wait > time.Hour || ours.Attempts != 0 || ours.Limit == "" {
		t.Errorf("Wait, Attempts, Limit = %v, %d, %q, want nearly 1h, 0, its name", ours.Wait, ours.Attempts, ours.Limit)
	}
	if got := len(r.vendor.Arrivals()); got != 1 {
		t.Errorf("arrivals = %d, want 1", got)
	}
}

func TestClientTimeoutRefusesWaitAtOnceExactly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := pipeRig(t, &testserver.Vendor{}, &weir.Transport{Limits: every(10 * time.Second)})
		r.spend()
		r.client.Timeout = 10 * time.Second // a millisecond too short
		_, err := r.client.Get(r.server.URL)
		if ours := wantTimeout(t, err); ours.Wait != 10*time.Second || r.now() != 0 {
			t.Errorf("refused a wait of %v at %v, want 10s at 0s", ours.Wait, r.now())
		}
		r.client.Timeout = 10*time.Second + 2*time.Millisecond
		resp, err := r.client.Get(r.server.URL)
		if err != nil {
			t.Fatalf("GET with a millisecond to spare = %v", err)
		}
		resp.Body.Close()
		wantEqual(t, "arrivals", instants(r.vendor.Arrivals()), []time.Duration{0, 10 * time.Second})
	})
}

// The forecast is for a caller alone. Where others stand before it, it is let
// in, and sent away when its time is up.
func TestClientTimeoutEndsWaitInLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := pipeRig(t, &testserver.Vendor{}, &weir.Transport{Limits: every(time.Second)})
		others := r.callers(t.Context(), 5)
		r.client.Timeout = 2500 * time.Millisecond
		_, err := r.client.Get(r.server.URL)
		wantTimeout(t, err)
		if at := r.now(); at < time.Second || at >= 2500*time.Millisecond {
			t.Errorf("sent away at %v, want in line before 2.5s", at)
		}
		others.wait()
		wantEqual(t, "arrivals", instants(r.vendor.Arrivals()), spaced(0, time.Second, 5))
	})
}

// Where nothing tells when permits come, the wait ends a millisecond before the
// deadline: later, the client's own error would hide ours.
func TestClientTimeoutEndsWaitOfUnknownLength(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := pipeRig(t, &testserver.Vendor{}, &weir.Transport{
			Limits: every(time.Second),
			Store:  storeFunc(func(string, ...throttle.Limit) (throttle.Limiter, error) { return silent(), nil }),
		})
		r.client.Timeout = 2500 * time.Millisecond
		_, err := r.client.Get(r.server.URL)
		wantTimeout(t, err)
		if at := r.now(); at != 2499*time.Millisecond {
			t.Errorf("sent away at %v, want 2.499s", at)
		}
	})
}

// A silent limiter never grants anything, and tells nothing.
func silent() throttle.Limiter {
	return throttle.LimiterFunc(func(throttle.Instant, throttle.Request) (throttle.Instant, error) { return throttle.Never, nil })
}

func TestClientTimeoutEndsAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := pipeRig(t, &testserver.Vendor{Faults: []testserver.Fault{{Do: testserver.Hang}}}, new(weir.Transport))
		r.client.Timeout = 2 * time.Second
		_, err := r.client.Get(r.server.URL)
		var u *url.Error
		if !errors.As(err, &u) || !u.Timeout() || !errors.Is(err, context.DeadlineExceeded) || r.now() != 2*time.Second {
			t.Errorf("Get = %v at %v, want a timeout at 2s", err, r.now())
		}
	})
}

// A delay between attempts that cannot end in time is not begun.
func TestClientTimeoutReturnsResponseInHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := pipeRig(t,
			&testserver.Vendor{Faults: []testserver.Fault{{Do: testserver.Answer, Status: 503}}},
			&weir.Transport{Retry: after(5 * time.Second)})
		r.client.Timeout = 5 * time.Second
		resp, err := r.client.Get(r.server.URL)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != 503 || r.now() != 0 || len(r.vendor.Arrivals()) != 1 {
			t.Errorf("Get = %d at %v after %d attempts, want 503 at once after 1", resp.StatusCode, r.now(), len(r.vendor.Arrivals()))
		}
	})
}

// The time of a request counts from its beginning, the first wait included.
func TestMaxElapsedCountsFirstWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		retry := after(time.Second)
		retry.MaxElapsed = 4 * time.Second
		r := pipeRig(t,
			&testserver.Vendor{Faults: []testserver.Fault{{First: 2, Do: testserver.Answer, Status: 500}}},
			&weir.Transport{Limits: every(5 * time.Second), Retry: retry})
		r.spend()
		r.want("GET", r.get(t.Context(), "late"), 500)
		wantEqual(t, "arrivals", instants(r.vendor.Arrivals()), []time.Duration{0, 5 * time.Second})
	})
}

func TestErrorElapsedCountsFirstWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := pipeRig(t, &testserver.Vendor{}, &weir.Transport{Limits: every(5 * time.Second)})
		r.spend()
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(2*time.Second, cancel)
		var ours *weir.Error
		if got := r.get(ctx, "a"); !errors.As(got.err, &ours) || ours.Elapsed != 2*time.Second {
			t.Errorf("error = %+v, want Elapsed of 2s", got.err)
		}
	})
}

func TestErrorElapsedCountsWaitForScope(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := pipeRig(t,
			&testserver.Vendor{Faults: []testserver.Fault{{Last: 1, Do: testserver.Answer, Header: hints("5")}}},
			&weir.Transport{Dialect: scopedBy(headers.ScopeRoute), Retry: backoff.None})
		r.get(t.Context(), "refused")
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(2*time.Second, cancel)
		var ours *weir.Error
		if got := r.get(ctx, "a"); !errors.As(got.err, &ours) || ours.Elapsed != 2*time.Second {
			t.Errorf("error = %+v, want Elapsed of 2s", got.err)
		}
	})
}

// The attempt's timeout is until its response begins.
func TestAttemptTimeoutTriesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		retry := after(50 * time.Millisecond)
		retry.AttemptTimeout = 100 * time.Millisecond
		r := pipeRig(t,
			&testserver.Vendor{Faults: []testserver.Fault{
				{Last: 1, Do: testserver.Hang},
				{First: 2, Do: testserver.SlowBody, Size: 1_600, Delay: 100 * time.Millisecond},
			}},
			&weir.Transport{Retry: retry})
		got := r.get(t.Context(), "a")
		r.want("GET", got, 200)
		if len(got.body) != 1_600 {
			t.Errorf("body = %d bytes, want 1600", len(got.body))
		}
		wantEqual(t, "arrivals", instants(r.vendor.Arrivals()), []time.Duration{0, 150 * time.Millisecond})
	})
}

func TestAttemptTimeoutIsReturnedForPost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		retry := after(0)
		retry.AttemptTimeout = 100 * time.Millisecond
		r := pipeRig(t, &testserver.Vendor{Faults: []testserver.Fault{{Do: testserver.Hang}}}, &weir.Transport{Retry: retry})
		req := r.request(t.Context(), "a")
		req.Method = http.MethodPost
		got := r.do(req)
		var ours *weir.Error
		if !errors.As(got.err, &ours) || !ours.Timeout() || ours.Attempts != 1 || got.at != 100*time.Millisecond {
			t.Errorf("POST = %v at %v, want a timeout at 100ms", got.err, got.at)
		}
	})
}

// A response that comes with the attempt's end is whole or not returned.
func TestAttemptTimeoutNeverReturnsBrokenResponse(t *testing.T) {
	retry := after(0)
	retry.AttemptTimeout = time.Second
	retry.Attempts = 1
	synctest.Test(t, func(t *testing.T) {
		r := pipeRig(t, &testserver.Vendor{}, &weir.Transport{Retry: retry})
		base, closed := r.transport.Base, 0
		r.transport.Base = baseFunc(func(req *http.Request) (*http.Response, error) {
			resp, err := base.RoundTrip(req)
			<-req.Context().Done() // the timer fires in this moment
			if err == nil {
				resp.Body = toldBody{resp.Body, &closed}
			}
			return resp, err
		})
		got := r.get(t.Context(), "a")
		if got.status != 0 {
			t.Errorf("GET = %d, body %q, %v, want the attempt's timeout", got.status, got.body, got.err)
		}
		var ours *weir.Error
		if !errors.As(got.err, &ours) || !ours.Timeout() {
			t.Errorf("GET = %v, want a timeout", got.err)
		}
		if closed != 1 {
			t.Errorf("the response's body was closed %d times, want once", closed)
		}
	})
}

// An attempt that failed has ended before the next one begins, and all that
// the base does for it.
func TestFailedAttemptsContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var first context.Context
		transport := &weir.Transport{Retry: after(time.Second), Base: baseFunc(func(req *http.Request) (*http.Response, error) {
			if first == nil {
				first = req.Context()
				time.AfterFunc(time.Millisecond, func() {
					if first.Err() == nil {
						t.Error("the context of a failed attempt lives on in the delay")
					}
				})
				return nil, io.ErrUnexpectedEOF
			}
			return stub{}.RoundTrip(req)
		})}
		defer transport.Close()
		resp, err := transport.RoundTrip(getOf("a.test"))
		if err != nil || first == nil {
			t.Fatalf("RoundTrip = %v, want the second attempt's answer", err)
		}
		resp.Body.Close()
	})
}
