package backoff

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/hashicorp/go-retryablehttp"
	"github.com/weirgo/weir/headers"
)

// longestHint is the longest time a server may ask a retryablehttp.Client to
// wait: longer than anybody will hold a connection's worth of work for.
const longestHint = 2 * time.Minute

// Retryable returns the policy for a retryablehttp.Client:
//
//	client.CheckRetry, client.Backoff = policy.Retryable()
//
// The client counts the retries by its RetryMax and has the bodies again, so of
// Attempts and MaxThrottled counts only whether they allow a retry at all, as
// [None] does not; MaxElapsed bounds each wait, not their sum; RetryWaitMin and
// RetryWaitMax bound nothing. Where NewBackOff answers Stop, Cap is waited for.
// A hint of more than two minutes, or beyond the deadline, ends the request.
// After an error the client shows the method but not the headers: an
// Idempotency-Key is not seen there. Both functions are safe for concurrent use.
func (p *Policy) Retryable() (retryablehttp.CheckRetry, retryablehttp.Backoff) {
	return p.checkRetry, p.backoff
}

func (p *Policy) checkRetry(ctx context.Context, resp *http.Response, err error) (bool, error) {
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	a := Attempt{
		Number:     1,
		Request:    requestOf(resp, err),
		Response:   resp,
		Err:        err,
		MaxPause:   longestHint,
		Replayable: true,
	}
	if deadline, ok := ctx.Deadline(); ok {
		a.Within = cmp.Or(time.Until(deadline), -1)
	}
	if err == nil {
		a.Signal = headers.Parse(resp, time.Now())
	}
	return p.Next(a).Retry, nil
}

// requestOf returns the request that the client would send again, or what is known
// of it.
func requestOf(resp *http.Response, err error) *http.Request {
	if resp != nil && resp.Request != nil {
		req := resp.Request
		for req.Response != nil { // a redirect led here
			req = req.Response.Request
		}
		return req
	}
	req := &http.Request{Method: http.MethodPost} // the careful guess
	if e, ok := errors.AsType[*url.Error](err); ok {
		req.Method = strings.ToUpper(e.Op)
	}
	return req
}

func (p *Policy) backoff(_, _ time.Duration, attemptNum int, resp *http.Response) time.Duration {
	if p == nil {
		p = &defaults
	}
	d, ok := p.delay(attemptNum+1, resp)
	if !ok {
		d = p.limit() // the client goes on: only CheckRetry could have stopped it
	}
	if resp != nil {
		s := headers.Parse(resp, time.Now())
		d = max(d, hint(&s))
	}
	return d
}
