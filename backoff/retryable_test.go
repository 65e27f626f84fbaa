package backoff

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	cenkalti "github.com/cenkalti/backoff/v4"
	"github.com/hashicorp/go-retryablehttp"
)

// newClient returns a retryablehttp.Client under p, without connections left
// after the test.
func newClient(t *testing.T, p *Policy) *retryablehttp.Client {
	t.Helper()
	client := retryablehttp.NewClient()
	client.Logger = nil
	client.ErrorHandler = retryablehttp.PassthroughErrorHandler
	client.CheckRetry, client.Backoff = p.RetryableHTTP()
	t.Cleanup(client.HTTPClient.CloseIdleConnections)
	return client
}

// drain reads and closes a response's body, as the client does before it sends
// the request again.
func drain(t *testing.T, resp *http.Response) {
	t.Helper()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Error(err)
	}
	if err := resp.Body.Close(); err != nil {
		t.Error(err)
	}
}

func TestRetryableHTTPServesARetryableClient(t *testing.T) {
	const text = "a body of some bytes"
	tests := []struct {
		name   string
		policy *Policy
		method string
		key    string
		status int
		hint   string
		sent   int32
	}{
		{"GET", &Policy{Delay: Constant(1)}, "GET", "", 503, "", 3},
		{"POST", &Policy{Delay: Constant(1)}, "POST", "", 503, "", 1},
		{"POST with a key", &Policy{Delay: Constant(1)}, "POST", "3f1c", 503, "", 3},
		{"POST refused", &Policy{Delay: Constant(1)}, "POST", "", 429, "", 3},
		{"refused for longer than anybody waits", &Policy{Delay: Constant(1)}, "GET", "", 429, "9223372036854775807", 1},
		{"final", &Policy{Delay: Constant(1)}, "GET", "", 404, "", 1},
		{"none", None, "GET", "", 503, "", 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var sent atomic.Int32
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if got, _ := io.ReadAll(r.Body); string(got) != text {
					t.Errorf("body %q, want %q", got, text)
				}
				if tt.hint != "" {
					w.Header().Set("Retry-After", tt.hint)
				}
				if sent.Add(1) < 3 {
					w.WriteHeader(tt.status)
				}
			}))
			defer server.Close()
			req, err := retryablehttp.NewRequestWithContext(t.Context(), tt.method, server.URL, []byte(text))
			if err != nil {
				t.Fatal(err)
			}
			if tt.key != "" {
				req.Header.Set("Idempotency-Key", tt.key)
			}
			resp, err := newClient(t, tt.policy).Do(req)
			if err != nil {
				t.Fatal(err)
			}
			drain(t, resp)
			want := tt.status
			if tt.sent == 3 {
				want = http.StatusOK
			}
			if sent.Load() != tt.sent || resp.StatusCode != want {
				t.Errorf("%d sent, status %d, want %d, %d", sent.Load(), resp.StatusCode, tt.sent, want)
			}
		})
	}
}

// A POST that was redirected by 303 ends as a GET, but the client would send the
// POST again.
func TestRetryableHTTPLooksAtWhatWouldBeSentAgain(t *testing.T) {
	var posts atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			posts.Add(1)
			http.Redirect(w, r, "/other", http.StatusSeeOther)
			return
		}
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer server.Close()
	req, err := retryablehttp.NewRequestWithContext(t.Context(), "POST", server.URL, bytes.NewReader(nil))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := newClient(t, &Policy{Delay: Constant(1)}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	drain(t, resp)
	if posts.Load() != 1 {
		t.Errorf("POST sent %d times, want once", posts.Load())
	}
}

func TestRetryableHTTPKnowsTheMethodOfAnError(t *testing.T) {
	check, _ := new(Policy).RetryableHTTP()
	tests := []struct {
		err  error
		want bool
	}{
		{&url.Error{Op: "Get", Err: io.EOF}, true},
		{&url.Error{Op: "Post", Err: io.EOF}, false},
		{io.EOF, false},
	}
	for _, tt := range tests {
		if got, err := check(t.Context(), nil, tt.err); got != tt.want || err != nil {
			t.Errorf("CheckRetry(%v) = %v, %v, want %v", tt.err, got, err, tt.want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got, err := check(ctx, nil, io.EOF); got || !errors.Is(err, context.Canceled) {
		t.Errorf("CheckRetry once cancelled = %v, %v", got, err)
	}
}

// The error's URL may be that of a redirect, and is not what would be sent again.
func TestRetryableHTTPAsksIdempotentWithoutAURL(t *testing.T) {
	p := &Policy{Idempotent: func(req *http.Request) bool { return strings.HasSuffix(req.URL.Path, "/search") }}
	check, _ := p.RetryableHTTP()
	if again, err := check(t.Context(), nil, &url.Error{Op: "Post", URL: "http://vendor.example/search", Err: io.EOF}); again || err != nil {
		t.Errorf("CheckRetry = %v, %v, want false", again, err)
	}
}

func TestRetryableHTTPIsNeverEarly(t *testing.T) {
	_, delay := (*Policy)(nil).RetryableHTTP()
	resp := &http.Response{StatusCode: 429, Header: http.Header{"Retry-After": {"61"}}}
	for n := range 5 {
		if d := delay(0, time.Second, n, resp); d < 61*time.Second {
			t.Errorf("Backoff(%d) = %v, want at least 61s", n, d)
		}
		if d := delay(0, time.Second, n, nil); d < 0 || d > DefaultBase<<n {
			t.Errorf("Backoff(%d) after an error = %v, want at most %v", n, d, DefaultBase<<n)
		}
	}
}

// The client drains the response before it reads the delay.
func TestRetryableHTTPKnowsAHintInADrainedBody(t *testing.T) {
	check, delay := (*Policy)(nil).RetryableHTTP()
	resp := &http.Response{
		StatusCode:    429,
		Header:        http.Header{"Content-Type": {"application/json"}},
		Body:          io.NopCloser(strings.NewReader(`{"ok":false,"parameters":{"retry_after":61}}`)),
		ContentLength: -1,
		Request:       httptest.NewRequest("POST", "https://api.telegram.org/bot/sendMessage", http.NoBody),
	}
	if again, _ := check(t.Context(), resp, nil); !again {
		t.Fatal("CheckRetry = false")
	}
	drain(t, resp)
	if d := delay(0, time.Second, 0, resp); d < 61*time.Second {
		t.Errorf("Backoff = %v, want at least 61s", d)
	}
}

// The client cannot be stopped there, and must not hurry.
func TestRetryableHTTPAfterTheLastOfTheDelays(t *testing.T) {
	p := &Policy{Delay: FromBackOff(func() cenkalti.BackOff { return &cenkalti.StopBackOff{} })}
	_, delay := p.RetryableHTTP()
	if d := delay(0, time.Second, 3, nil); d != DefaultCap {
		t.Errorf("Backoff = %v, want DefaultCap, %v", d, DefaultCap)
	}
}

func TestRetryableHTTPBoundsEachWait(t *testing.T) {
	const most = 3 * time.Second
	p := &Policy{MaxElapsed: most, Delay: func(retry int, _ *http.Response) (time.Duration, bool) {
		return time.Duration(retry) * time.Second, retry < 5
	}}
	_, delay := p.RetryableHTTP()
	for n := range 6 {
		if d, want := delay(0, time.Second, n, nil), min(time.Duration(n+1)*time.Second, most); d != want {
			t.Errorf("Backoff(%d) = %v, want %v", n, d, want)
		}
	}
}

func TestRetryableHTTPRefusesAHintBeyondTheDeadline(t *testing.T) {
	check, _ := new(Policy).RetryableHTTP()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	resp := &http.Response{StatusCode: 429, Header: http.Header{"Retry-After": {"31"}}}
	if again, _ := check(ctx, resp, nil); again {
		t.Error("CheckRetry with 30s left of a hint of 31s = true")
	}
	resp.Header.Set("Retry-After", "20")
	if again, _ := check(ctx, resp, nil); !again {
		t.Error("CheckRetry with 30s left of a hint of 20s = false")
	}
}

func TestTheirsPlugIn(t *testing.T) {
	p := &Policy{CheckRetry: retryablehttp.ErrorPropagatedRetryPolicy, Delay: FromRetryable(retryablehttp.LinearJitterBackoff, time.Millisecond, 2*time.Millisecond)}
	a := Attempt{Number: 2, Request: httptest.NewRequest("POST", "http://vendor.example", http.NoBody), Response: &http.Response{StatusCode: 500}, Replayable: true}
	d := p.Next(a)
	if !d.Retry || d.Delay < 2*time.Millisecond || d.Delay > 4*time.Millisecond {
		t.Errorf("Next = %+v, want a retry after 2 to 4 ms", d)
	}
}
