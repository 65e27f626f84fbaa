package weir

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"time"
)

// errAttemptTimeout ends an attempt whose response did not begin in time.
var errAttemptTimeout error = attemptTimeoutError{}

// An attemptTimeoutError is a net.Error, so that it is classified as a timeout.
type attemptTimeoutError struct{}

func (attemptTimeoutError) Error() string   { return "no response within the attempt's timeout" }
func (attemptTimeoutError) Timeout() bool   { return true }
func (attemptTimeoutError) Temporary() bool { return true }

// send sends one attempt. It never returns a response and an error together.
func (c *call) send() (*http.Response, error) {
	out, a, err := c.attempt()
	if err != nil {
		c.over = true
		c.giveBack()
		return nil, err
	}
	c.sent++
	c.granted, c.flying = false, true
	if a == nil { // then its calls in flight are not bounded
		return conform(c.t.base.RoundTrip(out))
	}
	a.fly()
	c.options.spend.sent(a) // from now on it may be settled
	if d := c.attemptTimeout(); d > 0 {
		timer := time.AfterFunc(d, func() { a.stop(errAttemptTimeout) })
		defer timer.Stop()
	}
	resp, err := conform(c.t.base.RoundTrip(out))
	if stopped := a.end(); stopped != nil {
		if resp != nil {
			resp.Body.Close()
		}
		resp, err = nil, stopped
	}
	if err != nil {
		a.finish()
		return nil, err
	}
	return a.answered(resp, c.t.InFlight.UntilHeaders), nil
}

// attemptTimeout returns the time within which an attempt's response must
// begin; zero means any.
func (c *call) attemptTimeout() time.Duration {
	if c.policy == nil {
		return 0
	}
	return c.policy.AttemptTimeout
}

// conform enforces the contract of http.RoundTripper on a base: a response or an error, and a body
// that is not nil.
func conform(resp *http.Response, err error) (*http.Response, error) {
	switch {
	case err != nil:
		if resp != nil && resp.Body != nil {
			resp.Body.Close()
		}
		return nil, err
	case resp == nil:
		return nil, errors.New("the base returned neither a response nor an error")
	}
	if resp.Body == nil {
		resp.Body = http.NoBody
	}
	return resp, nil
}

// attempt returns the request to send: the caller's own, or a copy if anything in it
// differs. If the attempt is not watched, a is nil.
func (c *call) attempt() (out *http.Request, a *attempt, err error) {
	var body io.ReadCloser
	if c.body != nil {
		if body, err = c.body.Next(c.ctx); err != nil {
			return nil, nil, err
		}
	}
	out = c.req
	switch {
	case !c.t.UnguardedResends || c.lane.Gate.Bounded() || c.attemptTimeout() > 0 || c.turn.Each != nil || c.options.cost > 0 || c.options.spend != nil: // Settle finds it
		a = newAttempt(c)
		c.watched = a
		// The copy that WithContext makes stays on the stack: one allocation
		// holds all of an attempt.
		a.out = *c.req.WithContext(a)
		out = &a.out
	case body != nil || c.t.Prepare != nil:
		out = c.req.WithContext(c.ctx)
	}
	if body != nil {
		out.Body = body
	}
	if c.t.Prepare == nil {
		return out, a, nil
	}
	if a != nil { // what Prepare sends, such as for a token, is no attempt
		a.written.Store(math.MinInt32)
	}
	if err := c.prepare(out); err != nil {
		return nil, nil, err
	}
	if a != nil {
		a.unheard.Store(0)
		a.written.Store(0)
	}
	return out, a, c.inTime(a)
}

// newAttempt returns an attempt that watches the next send.
func newAttempt(c *call) *attempt {
	a := &attempt{caller: c.ctx, charge: charge{lane: c.lane}, number: int32(c.sent + 1), secure: c.req.URL.Scheme == "https"}
	if a.departs(c); c.waited != nil {
		a.ask().waited = c.waited
	}
	return a
}

// prepare lets the user change the header and the URL of the request to be sent.
func (c *call) prepare(out *http.Request) error {
	if !c.t.PrepareRedirects && strayed(c.req) {
		return nil
	}
	u := *c.req.URL
	out.URL, out.Header = &u, c.req.Header.Clone()
	if out.Header == nil {
		out.Header = make(http.Header)
	}
	if err := c.t.Prepare(out); err != nil {
		return fmt.Errorf("prepare: %w", err)
	}
	return nil
}

// inTime makes sure that the permits still hold after Prepare, which may take
// long. If they do not, the call gives them back and waits once more. Prepare is
// not called again, because it might always take that long.
func (c *call) inTime(a *attempt) error {
	if !c.line().Late(&c.turn) {
		return nil
	}
	c.began = c.began.Add(c.lane.Now().Sub(c.turn.Departed())) // Prepare's time is no wait in line
	c.giveBack()
	if err := c.turnCome(); err != nil {
		return err
	}
	if a != nil {
		a.departs(c)
	}
	return nil
}

// strayed reports whether http.Client has followed a redirect to another host on its way to the
// request. A redirect that leads back counts too, because the other host chose the request.
func strayed(req *http.Request) bool {
	for hop := req; hop.Response != nil && hop.Response.Request != nil; {
		hop = hop.Response.Request
		if hostOf(hop.URL) != hostOf(req.URL) {
			return true
		}
	}
	return false
}
