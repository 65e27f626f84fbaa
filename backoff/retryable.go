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

// longestHint is the longest wait that a retryablehttp.Client grants a server
// that asks for one. It is weir's default MaxPause: few callers hold on to
// their work for longer.
const longestHint = 2 * time.Minute

// RetryableHTTP returns the policy for a retryablehttp.Client:
//
//	client.CheckRetry, client.Backoff = policy.RetryableHTTP()
//
// Not all of a policy reaches such a client:
//   - Its RetryMax counts the retries. Attempts and MaxThrottled only say
//     whether there are any, and for [None] there are none.
//   - MaxElapsed bounds each wait, not their sum.
//   - RetryWaitMin and RetryWaitMax have no effect.
//   - A Delay cannot end the request. If it wants to, DefaultCap is waited.
//   - A server that asks for more than two minutes, or for more time than the
//     context has left, ends the request.
//   - After an error the client shows the method alone: Idempotent gets a
//     request with an empty URL, and an Idempotency-Key is not seen.
//
// The client's context ends a wait. Both functions are safe for concurrent use.
func (p *Policy) RetryableHTTP() (retryablehttp.CheckRetry, retryablehttp.Backoff) {
	return p.checkRetry, p.backoff
}

// checkRetry is the CheckRetry of RetryableHTTP.
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
		a.TimeLeft = cmp.Or(time.Until(deadline), -1)
	}
	if err == nil {
		a.Signal = headers.Parse(resp, time.Now())
	}
	return p.Next(a).Retry, nil
}

// requestOf returns the request that the client would send again. After an
// error only its method is known.
func requestOf(resp *http.Response, err error) *http.Request {
	if resp != nil && resp.Request != nil {
		req := resp.Request
		for req.Response != nil { // a redirect led here
			req = req.Response.Request
		}
		return req
	}
	req := &http.Request{Method: http.MethodPost, URL: new(url.URL)} // a guess that repeats nothing
	if e, ok := errors.AsType[*url.Error](err); ok {
		req.Method = strings.ToUpper(e.Op)
	}
	return req
}

// backoff is the Backoff of RetryableHTTP. It never returns less than the
// server asks for, which checkRetry has compared with MaxElapsed.
func (p *Policy) backoff(_, _ time.Duration, attemptNum int, resp *http.Response) time.Duration {
	if p == nil {
		p = &defaults
	}
	d, ok := p.delay(attemptNum+1, resp)
	if !ok {
		d = DefaultCap // the client continues: only CheckRetry could have stopped it
	}
	if p.MaxElapsed > 0 {
		d = min(d, p.MaxElapsed)
	}
	if resp != nil {
		s := headers.Parse(resp, time.Now())
		d = max(d, hint(&s))
	}
	return d
}
