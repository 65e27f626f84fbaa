package weir

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/weirgo/weir/backoff"
	"github.com/weirgo/weir/headers"
	"github.com/weirgo/weir/internal/lane"
	"github.com/weirgo/weir/internal/replay"
	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// A call is the state of one request on its way.
type call struct {
	t       *Transport
	req     *http.Request
	ctx     context.Context // the request's context
	options options
	policy  *backoff.Policy
	body    *replay.Body // nil: the request has none

	key      string
	lane     *lane.Lane // nil until it is entered
	observer *observer  // of the lane
	visits   []visit    // sub-lanes that it has entered
	turn     shaping.Turn
	seen     lane.Seen // state of the lane when the turn came

	longest time.Duration    // wait before one attempt, in all lines; zero: any
	began   throttle.Instant // of the last wait, if longest counts

	started    throttle.Instant // arrival in the first lane; zero: not yet
	sent       int              // attempts
	throttled  int              // attempts that were refused
	refusedAt  throttle.Instant // when the first of them was refused; zero: none was
	paused     bool             // the lane is paused because of the last answer
	refusedFor time.Duration    // the wait that the last answer asked for, if it refused
	bucket     string           // that the last answer named; "": none
	byRoute    bool             // it named none, and reports quotas of its route alone
	forbidden  bool             // a quota made an earlier 403 a refusal
	watched    *attempt         // the last attempt that was watched; nil: none was
	granted    bool             // its turn has come, and nothing is sent yet
	flying     bool             // an attempt is sent, and not answered yet
	inHand     *http.Response   // a response neither returned nor thrown away yet
	over       bool             // nothing more can be sent

	expected time.Duration  // for which this try of an outer client was expected; zero: it was not
	verdict  backoff.Reason // why the last attempt was, or was not, followed by another
	asked    time.Duration  // wait in the last answer, refused or not

	status int         // of the last response that was thrown away; zero: there was none
	header http.Header // of that response
}

// begin enters the request's lane. From here on the call closes the request's
// body.
func (c *call) begin(t *Transport, req *http.Request) error {
	c.t, c.req, c.ctx = t, req, outlived(req.Context())
	c.options = optionsOf(c.ctx)
	if c.policy = c.options.retry; c.policy == nil {
		c.policy = t.Retry
	}
	c.recognise()
	if req.Body != nil && req.Body != http.NoBody {
		c.body = new(replay.Body)
		c.body.Open(req, bufferBody(c.policy))
		c.turn.Bytes = req.ContentLength
	}
	if req.URL == nil {
		return c.fail(errors.New("request has no URL"))
	}
	key := t.Key
	if key == nil {
		key = ByHost
	}
	c.key = key(req)
	l, err := t.enter(c.key)
	if err != nil {
		return c.fail(err)
	}
	c.lane, c.observer = l, observerOf(l)
	c.turn.MaxWait = c.options.maxWait
	if t.Tenant != nil {
		c.turn.Tenant, c.turn.Weight = t.Tenant(req)
	}
	c.turn.ID = c.observer.calls.Add(1)
	return c.price()
}

// run sends the request until it has an answer to return.
func (c *call) run() (*http.Response, error) {
	var signal headers.Signal // of the last answer
	for {
		if err := c.wait(); err != nil {
			return c.instead(err)
		}
		resp, err := c.send()
		if c.over {
			return c.instead(c.fail(err))
		}
		c.observe(resp, err, &signal)
		decision := c.decide(resp, err, &signal)
		if !decision.Retry {
			return c.finish(resp, err)
		}
		if err := c.delay(decision); err != nil {
			return c.instead(err)
		}
	}
}

// end releases whatever the call still holds. It is deferred, so that it also
// runs if the base, or a function of the user, panics.
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
	for _, v := range c.visits {
		v.lane.Leave(&v.turn)
	}
	if c.lane != nil {
		c.lane.Leave(&c.turn)
	}
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

// fail returns the error for a call that got no response.
func (c *call) fail(err error) error {
	e := &Error{Lane: c.key, Attempts: c.sent, Status: c.status, Header: c.header, Err: bare(err)}
	var refused *shaping.Error
	if errors.As(err, &refused) {
		e.Wait, e.Forecast, e.Before = refused.Wait, refused.Forecast, refused.Before
		e.Reason, e.Err = refused.Reason, refused.Err
		if e.Limit = refused.Limit; c.lane != nil {
			e.Limit = c.lane.Label(refused.Limit)
		}
	}
	if c.started != 0 {
		e.Elapsed = c.lane.Now().Sub(c.started)
	}
	return e
}

// recognise gives the call a policy without retries if it is an outer client's
// next try.
func (c *call) recognise() {
	if never(c.policy) {
		return
	}
	switch try := tryOf(c.req.Header); try {
	case 0:
		if c.expected = c.t.outer.take(c.req); c.expected == 0 {
			return
		}
	case 1:
		return
	}
	var once backoff.Policy
	if c.policy != nil {
		once = *c.policy
	}
	once.Attempts, once.MaxThrottled = 1, -1
	c.policy = &once
}

// expectNext lets the call's next try be recognised, if the call failed. A first
// call that was sent once is not remembered, because it multiplies nothing.
func (c *call) expectNext() {
	switch c.verdict {
	case backoff.ReasonFinal:
		return
	case "":
		if c.sent > 0 {
			return // it succeeded
		}
	case backoff.ReasonCanceled:
		if !errors.Is(c.ctx.Err(), context.DeadlineExceeded) {
			return // nobody wants it any more
		}
	}
	if (c.sent > 1 || c.expected > 0) && tryOf(c.req.Header) == 0 {
		c.t.outer.expect(c.req, min(max(2*c.expected, outerWait), maxOuterWait), min(c.asked, c.t.maxPause()))
	}
}
