package weir

import (
	"cmp"
	"context"
	"errors"
	"net/http"

	"github.com/weirgo/weir/headers"
	"github.com/weirgo/weir/internal/replay"
	"github.com/weirgo/weir/internal/telemetry"
)

// RoundTrip implements [http.RoundTripper]. Its error is an [*Error].
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	t.once.Do(t.init)
	var c call // on the stack: behind a pointer these would pass write barriers while memory is collected
	c.t, c.req, c.ctx = t, req, outlived(req.Context())
	c.options = optionsOf(c.ctx)
	c.policy = cmp.Or(c.options.retry, t.Retry)
	defer c.end()
	if err := c.begin(); err != nil {
		return nil, err
	}
	return c.run()
}

// errNoURL is the cause for a request that goes nowhere.
var errNoURL = errors.New("request has no URL")

// begin enters the request's lane. From here on the call closes the request's
// body.
func (c *call) begin() error {
	t, req := c.t, c.req
	if t.outer.until.Load() != 0 { // some try is expected
		c.recognise()
	}
	if req.Body != nil && req.Body != http.NoBody {
		c.sendOnce() // then nothing is kept of the body
		c.body = new(replay.Body)
		c.body.Open(req, bufferBody(c.policy))
		c.turn.Bytes = req.ContentLength
	}
	if req.URL == nil {
		return c.fail(errNoURL)
	}
	if t.ServerAddress {
		c.ctx = telemetry.WithServer(c.ctx, req.URL.Hostname())
	}
	if err := c.enter(); err != nil {
		return c.fail(err)
	}
	if c.lane.Gate.Store() != nil && c.lane.Course != nil {
		c.meet()
	}
	c.turn.MaxWait = c.options.maxWait
	if t.Tenant != nil {
		c.turn.Tenant, c.turn.Weight = t.Tenant(req)
	}
	return c.price()
}

// run sends the request until it has an answer to return.
func (c *call) run() (*http.Response, error) {
	for {
		if err := c.wait(); err != nil {
			return c.instead(err)
		}
		resp, err := c.send()
		if c.over {
			return c.instead(c.fail(err))
		}
		var signal headers.Signal // of the answer
		c.observe(resp, err, &signal)
		if c.plain(resp, err, &signal) {
			c.verdict = ""
			return c.finish(resp, nil)
		}
		decision := c.decide(resp, err, &signal)
		if !decision.Retry {
			return c.finish(resp, err)
		}
		if err := c.delay(decision); err != nil {
			return c.instead(err)
		}
	}
}

// end releases everything that the call still holds. It is deferred, so that it also runs if the
// base, or a function of the user, panics.
func (c *call) end() {
	c.expectNext()
	if c.flying {
		c.landed(false, nil)
	}
	c.giveBack()
	if c.inHand != nil {
		c.inHand.Body.Close()
	}
	if c.watched != nil && !c.watched.kept {
		c.watched.finish()
	}
	if c.body != nil {
		c.body.Close()
	}
	c.leaveSublanes()
	c.left()
}

// finish returns the answer to the caller.
func (c *call) finish(resp *http.Response, err error) (*http.Response, error) {
	if err != nil {
		return nil, c.fail(err)
	}
	if c.body != nil {
		c.body.Release()
	}
	c.inHand = nil
	return resp, nil
}

// instead returns the response in hand in place of the error that prevented the next attempt. A
// caller that has cancelled its context gets the error.
func (c *call) instead(err error) (*http.Response, error) {
	resp := c.inHand
	if resp == nil || errors.Is(c.ctx.Err(), context.Canceled) {
		return nil, err
	}
	c.inHand = nil
	return resp, nil
}
