package weir

import (
	"net/http"
	"time"

	"github.com/weirgo/weir/backoff"
	"github.com/weirgo/weir/headers"
	"github.com/weirgo/weir/shaping"
)

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
		MaxPause:   c.t.maxPause(),
		Request:    c.req,
		Response:   resp,
		Err:        err,
		Signal:     signal,
		Replayable: c.body == nil || c.body.Replayable(),
		Paused:     c.paused,
	})
	if d.Retry {
		switch throttled := d.Reason == backoff.ReasonThrottled; {
		case !c.couldGo(d.Delay):
			d.Retry, d.Reason = false, backoff.ReasonDeadline
		case throttled:
			c.throttled++
		case !c.lane.budget.Withdraw(time.Duration(now)):
			d.Retry, d.Reason = false, backoff.ReasonBudget
		}
	}
	c.lane.meter.retry(c.ctx, d, resp, err)
	return d
}

// within returns the longest wait worth beginning; zero: any.
func (c *call) within() time.Duration {
	deadline, ok := c.ctx.Deadline()
	if !ok {
		return 0
	}
	return max(time.Until(deadline), 1)
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
	c.inHand = nil
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
