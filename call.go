package weir

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/weirgo/weir/backoff"
	"github.com/weirgo/weir/headers"
	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// A call is the state of one request on its way.
type call struct {
	t       *Transport
	req     *http.Request
	ctx     context.Context // the request's
	options options
	policy  *backoff.Policy
	body    *backoff.Body // nil: the request has none

	key    string
	lane   *lane   // nil until it is entered
	narrow []visit // scoped lanes entered
	turn   shaping.Turn

	started   throttle.Instant // arrival; zero: not yet
	sent      int              // attempts
	throttled int              // attempts that were refused
	refusedAt throttle.Instant // when the first of them was
	paused    bool             // the lane is paused for the last answer
	told      time.Duration    // by the last answer
	watched   *attempt         // the last one; nil: none was watched
	flying    bool             // it is unanswered
	over      bool             // nothing more can be sent

	status int // of the last response that was thrown away
	header http.Header
}

// begin enters the request's lane. Its body is the call's from here on.
func (c *call) begin(t *Transport, req *http.Request) error {
	c.t, c.req, c.ctx = t, req, req.Context()
	c.options = optionsOf(c.ctx)
	if c.policy = c.options.retry; c.policy == nil {
		c.policy = t.Retry
	}
	if req.Body != nil && req.Body != http.NoBody {
		c.body = new(backoff.Body)
		c.body.Open(req, c.policy)
	}
	if req.URL == nil {
		return c.fail(errors.New("request has no URL"))
	}
	if t.setup != nil {
		return c.fail(t.setup)
	}
	key := t.Key
	if key == nil {
		key = ByHost
	}
	c.key = key(req)
	lane, err := t.lanes.enter(c.key)
	if err != nil {
		return c.fail(err)
	}
	c.lane = lane
	c.turn.MaxWait = c.options.maxWait
	return c.price()
}

// price sets the cost of the call.
func (c *call) price() (err error) {
	c.turn.N = max(c.options.cost, 1)
	if c.turn.Each, err = c.costs(*c.lane.limits.Load()); err != nil {
		return c.fail(err)
	}
	return nil
}

// costs returns what the call costs of each limit; nil where that is N.
func (c *call) costs(limits []throttle.Limit) ([]int, error) {
	if c.t.Cost == nil || c.options.cost > 0 {
		return nil, nil
	}
	costs := make([]int, len(limits))
	for i, limit := range limits {
		if costs[i] = c.t.Cost(c.req, limit); costs[i] < 0 {
			return nil, fmt.Errorf("cost %d of limit %q is negative", costs[i], limit.Name)
		}
	}
	return costs, nil
}

// end leaves everything as if the call had not been: it is deferred, and runs
// also where the base, or a function of the user, panics.
func (c *call) end() {
	if c.flying {
		c.landed(false)
	}
	if c.watched != nil && !c.watched.kept {
		c.watched.cancel(nil)
	}
	if c.body != nil {
		c.body.Close()
	}
	for _, v := range c.narrow {
		v.lane.leave(&v.turn)
	}
	if c.lane != nil {
		c.lane.leave(&c.turn)
	}
}

// wait waits for the call's turn.
func (c *call) wait() error {
	err := c.turnCome()
	if c.started == 0 {
		if c.started = c.turn.Arrived(); c.started != 0 {
			c.lane.budget.Deposit(time.Duration(c.started))
		}
		if c.lane.shadow != nil {
			c.cast(err)
		}
	}
	if err != nil {
		return c.fail(err)
	}
	return nil
}

// turnCome waits in the scoped lanes that concern the call, and then in its
// own. A scope that was paused while the call stood in the lane's line holds it
// after all.
func (c *call) turnCome() error {
	for {
		if err := c.passScopes(); err != nil {
			return err
		}
		if err := c.lane.queue.WaitTurn(c.ctx, &c.turn); err != nil {
			c.giveBack(false)
			return err
		}
		if !c.scopePaused() {
			return nil
		}
		c.giveBack(true)
	}
}

// cast lets the lane's shadow decide on the call too, which the lane's own
// limits have just done.
func (c *call) cast(err error) {
	live, arrived := Admitted, c.turn.Arrived()
	switch {
	case err != nil && arrived == 0:
		live, arrived = Refused, c.lane.queue.Now()
	case err != nil:
		live = Refused
	case c.turn.Departed() > arrived:
		live = Held
	}
	r := throttle.Request{N: c.turn.N}
	if r.Each, err = c.costs(c.lane.shadow.limits); err == nil {
		c.lane.shadow.decide(arrived, r, live)
	}
}

// hear reads what the answer says and lets the lane believe it.
func (c *call) hear(resp *http.Response, err error) headers.Signal {
	c.paused, c.told = false, 0
	if err != nil {
		if c.flying {
			c.landed(false)
		}
		return headers.Signal{}
	}
	if protocol := int32(resp.ProtoMajor); c.lane.protocol.Load() != protocol {
		c.lane.protocol.Store(protocol)
	}
	signal := c.read(resp)
	c.landed(!signal.Throttled && resp.StatusCode < http.StatusInternalServerError)
	if signal.Throttled && !signal.Permanent {
		c.refused(&signal)
	}
	return signal
}

// read reads what an answer says of quotas, where it may be a refusal.
func (c *call) read(resp *http.Response) headers.Signal {
	dialect := c.t.Dialect
	if dialect == nil {
		dialect = c.lane.dialect(c.req)
	}
	if !dialect.CanRefuse(resp.StatusCode) {
		return headers.Signal{}
	}
	if dialect != nil && len(dialect.Body) > 0 {
		// A body that stands still must not hold the lane up.
		body := resp.Body
		still := time.AfterFunc(hintTime, func() { body.Close() })
		defer still.Stop()
	}
	return dialect.Parse(resp, time.Now())
}

// hintTime bounds the wait for a hint in the body of a refusal. Where it runs
// out the caller finds the body closed.
const hintTime = 5 * time.Second

// refused acts on a refusal of the call, in whose scope it concerns.
func (c *call) refused(signal *headers.Signal) {
	c.told, _ = signal.Wait()
	alone := signal.Scope == headers.ScopeRequest || c.throttled > 0 && c.lane.alone(c.refusedAt)
	if c.throttled == 0 {
		c.refusedAt = c.lane.queue.Now()
	}
	if !alone {
		c.paused = c.concerned(signal.Scope).refused(c.t, c.turn.Departed(), c.told)
	}
}

// landed says that the attempt is no longer in flight.
func (c *call) landed(good bool) {
	c.flying = false
	c.lane.landed(c.turn.Departed(), good)
	for i := range c.narrow {
		if v := &c.narrow[i]; v.passed {
			v.passed = false
			v.lane.landed(v.turn.Departed(), good)
		}
	}
}

// decide says whether the request is sent again: whether the policy wants it,
// the budget has it, and the lane could let it go in time. It is asked before
// anything is thrown away.
func (c *call) decide(resp *http.Response, err error, signal headers.Signal) backoff.Decision {
	plain := err == nil && resp.StatusCode < http.StatusBadRequest && !signal.Throttled
	if c.over || plain && (c.policy == nil || c.policy.CheckRetry == nil) {
		return backoff.Decision{}
	}
	now := c.lane.queue.Now()
	d := c.policy.Next(backoff.Attempt{
		Number:     c.sent,
		Throttled:  c.throttled,
		Elapsed:    now.Sub(c.started),
		Within:     c.within(),
		Request:    c.req,
		Response:   resp,
		Err:        err,
		Signal:     signal,
		Replayable: c.body == nil || c.body.Replayable(),
		Paused:     c.paused,
	})
	if !d.Retry {
		return d
	}
	switch throttled := d.Reason == backoff.ReasonThrottled; {
	case !c.couldGo(d.Delay):
		d.Retry, d.Reason = false, backoff.ReasonDeadline
	case throttled:
		c.throttled++
	case !c.lane.budget.Withdraw(time.Duration(now)):
		d.Retry, d.Reason = false, backoff.ReasonBudget
	}
	return d
}

// within returns the longest wait worth beginning; zero: any.
func (c *call) within() (within time.Duration) {
	if c.told > 0 {
		within = c.t.maxPause()
	}
	if deadline, ok := c.ctx.Deadline(); ok {
		left := max(time.Until(deadline), 1)
		if within == 0 || left < within {
			within = left
		}
	}
	return within
}

// couldGo reports whether, after a delay, no lane is certain to hold the
// request for too long.
func (c *call) couldGo(delay time.Duration) bool {
	could := c.lane.couldTake(c, delay)
	for _, v := range c.narrow {
		could = could && v.lane.couldTake(c, delay)
	}
	return could
}

// discard throws a response away, so that its connection is used again.
func (c *call) discard(resp *http.Response) {
	if resp == nil {
		return
	}
	c.status, c.header = resp.StatusCode, resp.Header
	// A body that stands still must not hold the next attempt up.
	still := time.AfterFunc(drainTime, func() { resp.Body.Close() })
	defer still.Stop()
	backoff.Drain(resp)
}

// drainTime bounds the draining of a discarded response: a new connection costs
// less.
const drainTime = time.Second

// delay waits out the delay before the next attempt, outside the line.
func (c *call) delay(d backoff.Decision) error {
	if d.Lane || d.Delay <= 0 {
		return nil
	}
	ended := c.t.delaySpan(c.ctx, c.lane.key, c.sent, d)
	timer := time.NewTimer(d.Delay)
	defer timer.Stop()
	var err error
	select {
	case <-timer.C:
	case <-c.ctx.Done():
		err = c.ctx.Err()
	case <-c.t.lanes.done:
		err = shaping.ErrClosed
	}
	ended(err)
	if err != nil {
		return c.fail(err)
	}
	return nil
}

// finish returns the answer to the caller.
func (c *call) finish(resp *http.Response, err error) (*http.Response, error) {
	if err != nil {
		return nil, c.fail(err)
	}
	if c.body != nil {
		c.body.Release()
	}
	return resp, nil
}

// fail returns the error of a call that got no response.
func (c *call) fail(err error) error {
	e := &Error{Lane: c.key, Attempts: c.sent, Status: c.status, Header: c.header, Err: bare(err)}
	var refused *shaping.Error
	if errors.As(err, &refused) {
		e.Wait, e.Limit, e.Err = refused.Wait, refused.Limit, refused.Err
	}
	if c.started != 0 {
		e.Elapsed = c.lane.queue.Now().Sub(c.started)
	}
	return e
}
