package backoff_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"syscall"
	"testing"
	"time"

	cenkalti "github.com/cenkalti/backoff/v4"
	"github.com/hashicorp/go-retryablehttp"
	"github.com/weirgo/weir/backoff"
	"github.com/weirgo/weir/headers"
	"pgregory.net/rapid"
)

// attempt returns a first attempt of method, which ended with code or err and
// whose body can be read again.
func attempt(method string, code int, err error) backoff.Attempt {
	a := backoff.Attempt{
		Number:     1,
		Request:    &http.Request{Method: method, Header: http.Header{}, URL: &url.URL{Scheme: "https", Host: "vendor.example"}},
		Err:        err,
		Replayable: true,
	}
	if err == nil {
		a.Response = &http.Response{StatusCode: code}
	}
	return a
}

func TestNextKeepsTheTable(t *testing.T) {
	refused := headers.Signal{Throttled: true, NotProcessed: true}
	unavailable := headers.Signal{Throttled: true}
	permanent := headers.Signal{Throttled: true, NotProcessed: true, Permanent: true}
	reset := &net.OpError{Op: "read", Err: syscall.ECONNRESET}

	const again, returned = true, false
	rows := []struct {
		name   string
		code   int
		err    error
		signal headers.Signal
		idem   bool // GET and its like
		other  bool // POST and its like
		reason backoff.Reason
	}{
		{"ok", 200, nil, headers.Signal{}, returned, returned, ""},
		{"switching protocols", 101, nil, headers.Signal{}, returned, returned, ""},
		{"redirect", 302, nil, headers.Signal{}, returned, returned, ""},
		{"not modified", 304, nil, headers.Signal{}, returned, returned, ""},
		{"throttled, not processed", 429, nil, refused, again, again, backoff.ReasonThrottled},
		{"throttled in a 200, not processed", 200, nil, refused, again, again, backoff.ReasonThrottled},
		{"throttled otherwise", 503, nil, unavailable, again, returned, backoff.ReasonThrottled},
		{"permanent", 429, nil, permanent, returned, returned, backoff.ReasonFinal},
		{"permanent 500", 500, nil, headers.Signal{Permanent: true}, returned, returned, backoff.ReasonFinal},
		{"refused connection", 0, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, headers.Signal{}, again, again, backoff.ReasonUnsent},
		{"no such host for now", 0, &net.DNSError{IsTemporary: true}, headers.Signal{}, again, again, backoff.ReasonUnsent},
		{"no such host", 0, &net.DNSError{IsNotFound: true}, headers.Signal{}, returned, returned, backoff.ReasonFinal},
		{"reset", 0, reset, headers.Signal{}, again, returned, backoff.ReasonFailed},
		{"end of file", 0, io.ErrUnexpectedEOF, headers.Signal{}, again, returned, backoff.ReasonFailed},
		{"timeout of the attempt", 0, context.DeadlineExceeded, headers.Signal{}, again, returned, backoff.ReasonFailed},
		{"cancelled", 0, context.Canceled, headers.Signal{}, returned, returned, backoff.ReasonCanceled},
	}
	for _, code := range []int{408, 500, 502, 503, 504, 520, 529, 599} {
		rows = append(rows, rows[0])
		r := &rows[len(rows)-1]
		r.name, r.code, r.idem, r.reason = fmt.Sprint(code), code, again, backoff.ReasonFailed
	}
	for _, code := range []int{400, 401, 403, 404, 405, 409, 410, 411, 421, 422, 425, 426, 451, 499, 501, 505} {
		rows = append(rows, rows[0])
		r := &rows[len(rows)-1]
		r.name, r.code, r.reason = fmt.Sprint(code), code, backoff.ReasonFinal
	}

	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			check := func(a backoff.Attempt, again, otherwise bool) {
				t.Helper()
				a.Signal = row.signal
				want := row.reason
				if !again && otherwise {
					want = backoff.ReasonMethod
				}
				d := new(backoff.Policy).Next(a)
				if d.Retry != again || d.Reason != want {
					t.Errorf("Next(%s %v) = %+v, want Retry %v, Reason %q", a.Request.Method, a.Request.Header, d, again, want)
				}
			}
			for _, method := range []string{"", "GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"} {
				check(attempt(method, row.code, row.err), row.idem, row.other)
			}
			for _, method := range []string{"POST", "PATCH", "CONNECT", "LOCK"} {
				a := attempt(method, row.code, row.err)
				check(a, row.other, row.idem)
				a.Request.Header = http.Header{"Idempotency-Key": {"3f1c"}}
				check(a, row.idem, row.other)
				a.Request.Header = http.Header{"Idempotency-Key": nil} // net/http: a key, but not on the wire
				check(a, row.idem, row.other)
				a.Request.Header = http.Header{"X-Idempotency-Key": {"3f1c"}}
				check(a, row.idem, row.other)
			}
		})
	}
}

func TestNextReturnsWhatEndedWithItsContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	for _, a := range []backoff.Attempt{attempt("GET", 503, nil), attempt("GET", 0, context.DeadlineExceeded), attempt("GET", 0, io.EOF)} {
		a.Request = a.Request.WithContext(ctx)
		if d := new(backoff.Policy).Next(a); d != (backoff.Decision{Reason: backoff.ReasonCanceled}) {
			t.Errorf("Next(%d, %v) = %+v, want canceled", a.Number, a.Err, d)
		}
	}
}

func TestNextNeedsTheBodyAgain(t *testing.T) {
	for _, a := range []backoff.Attempt{attempt("PUT", 503, nil), attempt("POST", 0, syscall.ECONNREFUSED), throttled(time.Second)} {
		a.Replayable = false
		if d := new(backoff.Policy).Next(a); d != (backoff.Decision{Reason: backoff.ReasonBody}) {
			t.Errorf("Next = %+v, want body", d)
		}
	}
}

func TestNextTakesTheCallersWordForIdempotent(t *testing.T) {
	p := &backoff.Policy{Idempotent: func(r *http.Request) bool { return r.URL.Path == "/search" }}
	a := attempt("POST", 503, nil)
	if d := p.Next(a); d.Reason != backoff.ReasonMethod {
		t.Errorf("Next = %+v, want method", d)
	}
	a.Request.URL.Path = "/search"
	if d := p.Next(a); !d.Retry {
		t.Errorf("Next = %+v, want a retry", d)
	}
}

// throttled returns a POST refused with 429 in a paused lane; asked is the wait in the response, zero if it has none.
func throttled(asked time.Duration) backoff.Attempt {
	a := attempt("POST", 429, nil)
	a.Signal = headers.Signal{Throttled: true, NotProcessed: true, RetryAfter: asked, HasRetryAfter: asked != 0}
	a.Paused = true
	return a
}

func TestThrottledWithATimeWaitsInLine(t *testing.T) {
	p := &backoff.Policy{Attempts: 1, Delay: func(int, *http.Response) (time.Duration, bool) { panic("no delay") }}
	a := throttled(2 * time.Second)
	want := backoff.Decision{Retry: true, Reason: backoff.ReasonThrottled, AfterPause: true}
	if d := p.Next(a); d != want {
		t.Errorf("Next = %+v, want %+v", d, want)
	}
	a.Signal.RetryAfter, a.Signal.HasRetryAfter = 0, false
	a.Signal.Quotas = []headers.Quota{{HasRemaining: true, HasReset: true, Reset: time.Second}}
	if d := p.Next(a); d != want {
		t.Errorf("Next after a spent quota = %+v, want %+v", d, want)
	}
}

func TestThrottledOutsideAPausedLaneIsDelayed(t *testing.T) {
	p := &backoff.Policy{Delay: func(retry int, _ *http.Response) (time.Duration, bool) {
		return time.Duration(retry) * time.Millisecond, true
	}}
	tests := []struct {
		name   string
		asked  time.Duration
		paused bool
		want   time.Duration
	}{
		{"no time", 0, true, 3 * time.Millisecond},
		{"no time, no pause", 0, false, 3 * time.Millisecond},
		{"a time for this request alone", time.Hour, false, time.Hour},
		{"a time below the delay", time.Millisecond, false, 3 * time.Millisecond},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := throttled(tt.asked)
			a.Number, a.Throttled, a.Paused = 7, 2, tt.paused
			want := backoff.Decision{Retry: true, Reason: backoff.ReasonThrottled, Delay: tt.want}
			if d := p.Next(a); d != want {
				t.Errorf("Next = %+v, want %+v", d, want)
			}
		})
	}
}

func TestQuotasOfAnErrorAreNoHint(t *testing.T) {
	p := &backoff.Policy{Delay: backoff.Constant(0)}
	a := attempt("GET", 500, nil)
	a.Signal.Quotas = []headers.Quota{{HasRemaining: true, HasReset: true, Reset: time.Hour}}
	if d := p.Next(a); d != (backoff.Decision{Retry: true, Reason: backoff.ReasonFailed}) {
		t.Errorf("Next = %+v, want a retry without delay", d)
	}
	a.Signal.RetryAfter, a.Signal.HasRetryAfter = time.Second, true
	if d := p.Next(a); d.Delay != time.Second {
		t.Errorf("Next after Retry-After = %+v, want 1s", d)
	}
}

// run plays the attempts of one request, whose outcomes are outcome's. It returns how many were
// sent, and why no more.
func run(p *backoff.Policy, outcome func(number int) backoff.Attempt) (sent int, why backoff.Reason) {
	throttled := 0
	for number := 1; ; number++ {
		a := outcome(number)
		a.Number, a.Throttled = number, throttled
		d := p.Next(a)
		if !d.Retry {
			return number, d.Reason
		}
		if d.Reason == backoff.ReasonThrottled {
			throttled++
		}
	}
}

func TestAttemptsAndThrottledAreCountedApart(t *testing.T) {
	failed := func(int) backoff.Attempt { return attempt("GET", 500, nil) }
	refused := func(int) backoff.Attempt { return throttled(time.Second) }
	timeless := func(int) backoff.Attempt { return throttled(0) }
	mixed := func(n int) backoff.Attempt {
		if n%2 == 1 {
			return throttled(time.Second)
		}
		return attempt("GET", 500, nil)
	}
	tests := []struct {
		name    string
		policy  *backoff.Policy
		outcome func(int) backoff.Attempt
		sent    int
		why     backoff.Reason
	}{
		{"nil", nil, failed, 4, backoff.ReasonAttempts},
		{"zero", &backoff.Policy{}, failed, 4, backoff.ReasonAttempts},
		{"zero, throttled", &backoff.Policy{}, refused, 11, backoff.ReasonMaxThrottled},
		{"zero, throttled without a time", &backoff.Policy{}, timeless, 8, backoff.ReasonMaxThrottled},
		{"as set, throttled without a time", &backoff.Policy{MaxThrottled: 10}, timeless, 11, backoff.ReasonMaxThrottled},
		{"zero, mixed", &backoff.Policy{}, mixed, 8, backoff.ReasonAttempts},
		{"fewer throttled, mixed", &backoff.Policy{MaxThrottled: 2}, mixed, 5, backoff.ReasonMaxThrottled},
		{"one attempt", &backoff.Policy{Attempts: 1}, failed, 1, backoff.ReasonAttempts},
		{"one attempt, throttled", &backoff.Policy{Attempts: 1}, refused, 11, backoff.ReasonMaxThrottled},
		{"none", backoff.None, failed, 1, backoff.ReasonAttempts},
		{"none, throttled", backoff.None, refused, 1, backoff.ReasonMaxThrottled},
		{"delays that stop", &backoff.Policy{Delay: backoff.FromBackOff(func() cenkalti.BackOff {
			return cenkalti.WithMaxRetries(&cenkalti.ZeroBackOff{}, 2)
		})}, failed, 3, backoff.ReasonAttempts},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if sent, why := run(tt.policy, tt.outcome); sent != tt.sent || why != tt.why {
				t.Errorf("%d sent, ended by %q, want %d, %q", sent, why, tt.sent, tt.why)
			}
		})
	}
}

func TestWaitBeyondTheBoundsReturnsTheResponse(t *testing.T) {
	const second = time.Second
	tests := []struct {
		name            string
		max, elapsed    time.Duration
		within          time.Duration
		asked           time.Duration
		paused, retried bool
	}{
		{"no bound", 0, 0, 0, math.MaxInt64, false, true},
		{"no bound, in line", 0, 0, 0, math.MaxInt64, true, true},
		{"to the last moment", 3 * second, second, 0, 2 * second, true, true},
		{"past the last moment", 3 * second, second, 0, 2*second + 1, true, false},
		{"total time used up", 3 * second, 3 * second, 0, 0, false, false},
		{"total time overrun", 3 * second, math.MaxInt64, 0, 0, false, false},
		{"292 years in total time", 3 * second, second, 0, math.MaxInt64, false, false},
		{"just within", 0, 0, second, second, false, true},
		{"just not within", 0, 0, second, second + 1, false, false},
		{"292 years within", 0, 0, second, math.MaxInt64, true, false},
		{"nothing left", 0, 0, -1, 0, false, false},
	}
	p := backoff.Policy{Delay: backoff.Constant(0)}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p.MaxElapsed = tt.max
			a := throttled(tt.asked)
			a.Elapsed, a.TimeLeft, a.Paused = tt.elapsed, tt.within, tt.paused
			d := p.Next(a)
			if d.Retry != tt.retried || !d.Retry && d != (backoff.Decision{Reason: backoff.ReasonDeadline}) {
				t.Errorf("Next = %+v, want Retry %v", d, tt.retried)
			}
		})
	}
}

// A server's requested wait is used up to a bound, whatever its answer; the policy's own delays are
// not bounded by it.
func TestHintBeyondMaxPauseReturnsTheResponse(t *testing.T) {
	const second = time.Second
	tests := []struct {
		name            string
		code            int
		signal          headers.Signal
		paused, retried bool
	}{
		{"500, just within", 500, headers.Signal{RetryAfter: second}, false, true},
		{"500", 500, headers.Signal{RetryAfter: second + 1}, false, false},
		{"502", 502, headers.Signal{RetryAfter: second + 1}, false, false},
		{"504", 504, headers.Signal{RetryAfter: 744 * time.Hour}, false, false},
		{"408", 408, headers.Signal{RetryAfter: math.MaxInt64}, false, false},
		{"429, just within", 429, headers.Signal{Throttled: true, RetryAfter: second}, true, true},
		{"429", 429, headers.Signal{Throttled: true, RetryAfter: second + 1}, false, false},
		{"429, in line", 429, headers.Signal{Throttled: true, RetryAfter: second + 1}, true, false},
		{"no hint, a long delay", 500, headers.Signal{}, false, true},
	}
	p := backoff.Policy{Delay: backoff.Constant(time.Minute)}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := attempt("GET", tt.code, nil)
			a.Signal, a.Paused, a.MaxPause = tt.signal, tt.paused, second
			d := p.Next(a)
			if d.Retry != tt.retried || !d.Retry && d != (backoff.Decision{Reason: backoff.ReasonDeadline}) {
				t.Errorf("Next = %+v, want Retry %v", d, tt.retried)
			}
			if a.MaxPause = 0; !p.Next(a).Retry {
				t.Error("Next without a bound does not retry")
			}
		})
	}
}

func TestNeverEarlierThanAsked(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		duration := rapid.OneOf(
			rapid.Int64(),
			rapid.Int64Range(0, int64(time.Minute)),
			rapid.SampledFrom([]int64{0, 1, math.MaxInt64, math.MinInt64}),
		)
		draw := func(label string) time.Duration { return time.Duration(duration.Draw(t, label)) }
		p := &backoff.Policy{Delay: backoff.FullJitter(draw("base"), draw("cap")), MaxElapsed: draw("max elapsed")}
		if rapid.Bool().Draw(t, "custom delay") {
			p.Delay = backoff.Constant(draw("delay"))
		}
		a := attempt("GET", rapid.SampledFrom([]int{429, 500, 503}).Draw(t, "status"), nil)
		a.Number = rapid.IntRange(-1, 14).Draw(t, "number")
		a.Throttled = rapid.IntRange(-1, 10).Draw(t, "throttled so far")
		a.Elapsed, a.TimeLeft = draw("elapsed"), draw("within")
		a.Paused = rapid.Bool().Draw(t, "paused")
		a.Signal = headers.Signal{
			Throttled:  rapid.Bool().Draw(t, "throttled"),
			RetryAfter: draw("retry after"),
		}
		d := p.Next(a)
		asked := max(a.Signal.RetryAfter, 0)
		switch {
		case !d.Retry:
			if d.Delay != 0 || d.AfterPause {
				t.Fatalf("Next = %+v, a delay without a retry", d)
			}
			return
		case d.AfterPause && (d.Delay != 0 || !a.Paused || asked == 0):
			t.Fatalf("Next = %+v, in line without a pause", d)
		case !d.AfterPause && d.Delay < asked:
			t.Fatalf("Next = %+v, earlier than %v", d, asked)
		}
		wait := max(d.Delay, asked)
		if a.TimeLeft != 0 && wait > a.TimeLeft {
			t.Fatalf("Next = %+v, not within %v", d, a.TimeLeft)
		}
		if p.MaxElapsed > 0 && a.Elapsed >= 0 && wait > p.MaxElapsed-a.Elapsed {
			t.Fatalf("Next = %+v after %v, not within %v", d, a.Elapsed, p.MaxElapsed)
		}
	})
}

func TestCheckRetryDecidesInPlaceOfTheTable(t *testing.T) {
	errBase := errors.New("base")
	yes := func(context.Context, *http.Response, error) (bool, error) { return true, errors.New("ignored") }
	no := func(context.Context, *http.Response, error) (bool, error) { return false, nil }
	permanent := attempt("GET", 429, nil)
	permanent.Signal = headers.Signal{Throttled: true, Permanent: true}
	spent := attempt("GET", 404, nil)
	spent.Number = 4
	tests := []struct {
		name   string
		check  retryablehttp.CheckRetry
		a      backoff.Attempt
		retry  bool
		reason backoff.Reason
	}{
		{"yes to a 200", yes, attempt("POST", 200, nil), true, backoff.ReasonFailed},
		{"yes to a 404", yes, attempt("POST", 404, nil), true, backoff.ReasonFailed},
		{"yes to an error", yes, attempt("POST", 0, errBase), true, backoff.ReasonFailed},
		{"yes to a refusal", yes, throttled(time.Second), true, backoff.ReasonThrottled},
		{"yes, but permanent", yes, permanent, false, backoff.ReasonFinal},
		{"yes, but no attempt left", yes, spent, false, backoff.ReasonAttempts},
		{"no to a 200", no, attempt("GET", 200, nil), false, ""},
		{"no to a 503", no, attempt("GET", 503, nil), false, backoff.ReasonFinal},
		{"no to a refusal", no, throttled(time.Second), false, backoff.ReasonFinal},
		{"theirs to a 500 of a POST", retryablehttp.DefaultRetryPolicy, attempt("POST", 500, nil), true, backoff.ReasonFailed},
		{"theirs to a 404", retryablehttp.DefaultRetryPolicy, attempt("GET", 404, nil), false, backoff.ReasonFinal},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := &backoff.Policy{CheckRetry: tt.check}
			if d := p.Next(tt.a); d.Retry != tt.retry || d.Reason != tt.reason {
				t.Errorf("Next = %+v, want Retry %v, Reason %q", d, tt.retry, tt.reason)
			}
		})
	}
}

func TestCheckRetrySeesAClientsErrorWithoutSecrets(t *testing.T) {
	errBase := errors.New("base")
	var got error
	p := &backoff.Policy{CheckRetry: func(_ context.Context, _ *http.Response, err error) (bool, error) {
		got = err
		return false, nil
	}}
	a := attempt("GET", 0, &url.Error{Op: "Get", URL: "https://user:canary@vendor.example/a?canary", Err: errBase})
	a.Request.URL, _ = url.Parse("https://user:canary@vendor.example/a?canary#canary")
	p.Next(a)
	want := &url.Error{Op: "Get", URL: "https://vendor.example/a", Err: errBase}
	if e, ok := errors.AsType[*url.Error](got); !ok || *e != *want {
		t.Errorf("CheckRetry saw %v, want %v", got, want)
	}
}

func BenchmarkNext(b *testing.B) {
	for _, bench := range []struct {
		name string
		a    backoff.Attempt
	}{
		{"ok", attempt("GET", 200, nil)},
		{"throttled", throttled(time.Second)},
		{"failed", attempt("GET", 503, nil)},
		{"reset", attempt("GET", 0, &net.OpError{Op: "read", Err: syscall.ECONNRESET})},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			p := new(backoff.Policy)
			for b.Loop() {
				p.Next(bench.a)
			}
		})
	}
}

func TestNextAllocatesNothingForAResponse(t *testing.T) {
	p := new(backoff.Policy)
	for _, a := range []backoff.Attempt{attempt("GET", 200, nil), attempt("GET", 503, nil), throttled(time.Second)} {
		if n := testing.AllocsPerRun(100, func() { p.Next(a) }); n != 0 {
			t.Errorf("Next(%d) allocates %v times, want 0", a.Response.StatusCode, n)
		}
	}
}
