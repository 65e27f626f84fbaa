package limits_test

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
	"github.com/weirgo/weir/internal/acceptance/harness"
	"github.com/weirgo/weir/internal/testserver"
	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// http.Client.Timeout bounds everything, and its user sees our error.

// wantTimeout returns the *weir.Error in an error of http.Client that reports a timeout before
// anything was sent.
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
	r := harness.SocketRig(t, &testserver.Vendor{}, &weir.Transport{Limits: harness.Every(time.Hour)})
	r.Spend()
	r.Client.Timeout = time.Minute
	began := time.Now()
	_, err := r.Client.Get(r.Server.URL)
	ours := wantTimeout(t, err)
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("refused after %v, want at once", took)
	}
	if ours.Wait <= 59*time.Minute || ours.Wait > time.Hour || ours.Attempts != 0 || ours.Limit == "" {
		t.Errorf("Wait, Attempts, Limit = %v, %d, %q, want nearly 1h, 0, its name", ours.Wait, ours.Attempts, ours.Limit)
	}
	if got := len(r.Vendor.Arrivals()); got != 1 {
		t.Errorf("arrivals = %d, want 1", got)
	}
}

func TestClientTimeoutRefusesWaitAtOnceExactly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t, &testserver.Vendor{}, &weir.Transport{Limits: harness.Every(10 * time.Second)})
		r.Spend()
		r.Client.Timeout = 10 * time.Second // a millisecond too short
		_, err := r.Client.Get(r.Server.URL)
		if ours := wantTimeout(t, err); ours.Wait != 10*time.Second || r.Now() != 0 {
			t.Errorf("refused a wait of %v at %v, want 10s at 0s", ours.Wait, r.Now())
		}
		r.Client.Timeout = 10*time.Second + 2*time.Millisecond
		resp, err := r.Client.Get(r.Server.URL)
		if err != nil {
			t.Fatalf("GET with a millisecond to spare = %v", err)
		}
		resp.Body.Close()
		harness.WantEqual(t, "arrivals", harness.Instants(r.Vendor.Arrivals()), []time.Duration{0, 10 * time.Second})
	})
}

// The forecast covers a caller alone. Behind others it is admitted, and rejected when its time is
// up.
func TestClientTimeoutEndsWaitInLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t, &testserver.Vendor{}, &weir.Transport{Limits: harness.Every(time.Second)})
		others := r.Callers(t.Context(), 5)
		r.Client.Timeout = 2500 * time.Millisecond
		_, err := r.Client.Get(r.Server.URL)
		wantTimeout(t, err)
		if at := r.Now(); at < time.Second || at >= 2500*time.Millisecond {
			t.Errorf("sent away at %v, want in line before 2.5s", at)
		}
		others.Wait()
		harness.WantEqual(t, "arrivals", harness.Instants(r.Vendor.Arrivals()), harness.Spaced(0, time.Second, 5))
	})
}

// If it is unknown when permits come, the wait ends a millisecond before the deadline: later, the
// client's own error would hide ours.
func TestClientTimeoutEndsWaitOfUnknownLength(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t, &testserver.Vendor{}, &weir.Transport{
			Limits: harness.Every(time.Second),
			Store:  harness.StoreFunc(func(string, ...throttle.Limit) (throttle.Limiter, error) { return silent(), nil }),
		})
		r.Client.Timeout = 2500 * time.Millisecond
		_, err := r.Client.Get(r.Server.URL)
		wantTimeout(t, err)
		if at := r.Now(); at != 2499*time.Millisecond {
			t.Errorf("sent away at %v, want 2.499s", at)
		}
	})
}

// A silent limiter never grants anything, and never wakes.
func silent() throttle.Limiter {
	return throttle.LimiterFunc(func(throttle.Instant, throttle.Request) (throttle.Instant, error) { return throttle.Never, nil })
}

func TestClientTimeoutEndsAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t, &testserver.Vendor{Faults: []testserver.Fault{{Do: testserver.Hang}}}, new(weir.Transport))
		r.Client.Timeout = 2 * time.Second
		_, err := r.Client.Get(r.Server.URL)
		var u *url.Error
		if !errors.As(err, &u) || !u.Timeout() || !errors.Is(err, context.DeadlineExceeded) || r.Now() != 2*time.Second {
			t.Errorf("Get = %v at %v, want a timeout at 2s", err, r.Now())
		}
	})
}

// A delay between attempts that cannot end in time is not begun.
func TestClientTimeoutReturnsResponseInHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t,
			&testserver.Vendor{Faults: []testserver.Fault{{Do: testserver.Answer, Status: 503}}},
			&weir.Transport{Retry: harness.After(5 * time.Second)})
		r.Client.Timeout = 5 * time.Second
		resp, err := r.Client.Get(r.Server.URL)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != 503 || r.Now() != 0 || len(r.Vendor.Arrivals()) != 1 {
			t.Errorf("Get = %d at %v after %d attempts, want 503 at once after 1", resp.StatusCode, r.Now(), len(r.Vendor.Arrivals()))
		}
	})
}

// The time of a request includes its first wait.
func TestMaxElapsedCountsFirstWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		retry := harness.After(time.Second)
		retry.MaxElapsed = 4 * time.Second
		r := harness.PipeRig(t,
			&testserver.Vendor{Faults: []testserver.Fault{{First: 2, Do: testserver.Answer, Status: 500}}},
			&weir.Transport{Limits: harness.Every(5 * time.Second), Retry: retry})
		r.Spend()
		r.Want("GET", r.Get(t.Context(), "late"), 500)
		harness.WantEqual(t, "arrivals", harness.Instants(r.Vendor.Arrivals()), []time.Duration{0, 5 * time.Second})
	})
}

func TestErrorElapsedCountsFirstWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t, &testserver.Vendor{}, &weir.Transport{Limits: harness.Every(5 * time.Second)})
		r.Spend()
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(2*time.Second, cancel)
		var ours *weir.Error
		if got := r.Get(ctx, "a"); !errors.As(got.Err, &ours) || ours.Elapsed != 2*time.Second {
			t.Errorf("error = %+v, want Elapsed of 2s", got.Err)
		}
	})
}

func TestErrorElapsedCountsWaitForScope(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t,
			&testserver.Vendor{Faults: []testserver.Fault{{Last: 1, Do: testserver.Answer, Header: harness.Hints("5")}}},
			&weir.Transport{Dialect: harness.ScopedBy(headers.ScopeRoute), Retry: backoff.None})
		r.Get(t.Context(), "refused")
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(2*time.Second, cancel)
		var ours *weir.Error
		if got := r.Get(ctx, "a"); !errors.As(got.Err, &ours) || ours.Elapsed != 2*time.Second {
			t.Errorf("error = %+v, want Elapsed of 2s", got.Err)
		}
	})
}

// The attempt's timeout ends when its response begins.
func TestAttemptTimeoutTriesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		retry := harness.After(50 * time.Millisecond)
		retry.AttemptTimeout = 100 * time.Millisecond
		r := harness.PipeRig(t,
			&testserver.Vendor{Faults: []testserver.Fault{
				{Last: 1, Do: testserver.Hang},
				{First: 2, Do: testserver.SlowBody, Size: 1_600, Delay: 100 * time.Millisecond},
			}},
			&weir.Transport{Retry: retry})
		got := r.Get(t.Context(), "a")
		r.Want("GET", got, 200)
		if len(got.Body) != 1_600 {
			t.Errorf("body = %d bytes, want 1600", len(got.Body))
		}
		harness.WantEqual(t, "arrivals", harness.Instants(r.Vendor.Arrivals()), []time.Duration{0, 150 * time.Millisecond})
	})
}

func TestAttemptTimeoutIsReturnedForPost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		retry := harness.After(0)
		retry.AttemptTimeout = 100 * time.Millisecond
		r := harness.PipeRig(t, &testserver.Vendor{Faults: []testserver.Fault{{Do: testserver.Hang}}}, &weir.Transport{Retry: retry})
		req := r.Request(t.Context(), "a")
		req.Method = http.MethodPost
		got := r.Do(req)
		var ours *weir.Error
		if !errors.As(got.Err, &ours) || !ours.Timeout() || ours.Attempts != 1 || got.At != 100*time.Millisecond {
			t.Errorf("POST = %v at %v, want a timeout at 100ms", got.Err, got.At)
		}
	})
}

// A response that arrives at the attempt's end is whole or not returned.
func TestAttemptTimeoutNeverReturnsBrokenResponse(t *testing.T) {
	retry := harness.After(0)
	retry.AttemptTimeout = time.Second
	retry.Attempts = 1
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t, &testserver.Vendor{}, &weir.Transport{Retry: retry})
		base, closed := r.Transport.Base, 0
		r.Transport.Base = harness.BaseFunc(func(req *http.Request) (*http.Response, error) {
			resp, err := base.RoundTrip(req)
			<-req.Context().Done() // the timer fires in this moment
			if err == nil {
				resp.Body = harness.ClosedBody{Reader: resp.Body, Closed: &closed}
			}
			return resp, err
		})
		got := r.Get(t.Context(), "a")
		if got.Status != 0 {
			t.Errorf("GET = %d, body %q, %v, want the attempt's timeout", got.Status, got.Body, got.Err)
		}
		var ours *weir.Error
		if !errors.As(got.Err, &ours) || !ours.Timeout() {
			t.Errorf("GET = %v, want a timeout", got.Err)
		}
		if closed != 1 {
			t.Errorf("the response's body was closed %d times, want once", closed)
		}
	})
}

// A failed attempt has ended before the next one begins, with all work of the base for it.
func TestFailedAttemptsContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var first context.Context
		transport := &weir.Transport{Retry: harness.After(time.Second), Base: harness.BaseFunc(func(req *http.Request) (*http.Response, error) {
			if first == nil {
				first = req.Context()
				time.AfterFunc(time.Millisecond, func() {
					if first.Err() == nil {
						t.Error("the context of a failed attempt lives on in the delay")
					}
				})
				return nil, io.ErrUnexpectedEOF
			}
			return harness.Stub{}.RoundTrip(req)
		})}
		defer transport.Close()
		resp, err := transport.RoundTrip(harness.GetOf("a.test"))
		if err != nil || first == nil {
			t.Fatalf("RoundTrip = %v, want the second attempt's answer", err)
		}
		resp.Body.Close()
	})
}
