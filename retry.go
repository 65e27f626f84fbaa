package weir

import (
	"cmp"
	"log/slog"
	"net/http"
	"time"

	"github.com/weirgo/weir/backoff"
	"github.com/weirgo/weir/headers"
	"github.com/weirgo/weir/internal/replay"
	"github.com/weirgo/weir/internal/telemetry"
	"github.com/weirgo/weir/shaping"
)

// plain reports whether an outcome is a success, about which no policy is asked.
func (c *call) plain(resp *http.Response, err error, signal *headers.Signal) bool {
	return err == nil && resp.StatusCode < http.StatusBadRequest && !signal.Throttled && (c.policy == nil || c.policy.CheckRetry == nil)
}

// decide says whether the request is sent again. The policy must want it, the budget must allow it,
// and the lane must be able to let it go in time. All of that is checked before the response is
// discarded.
func (c *call) decide(resp *http.Response, err error, signal *headers.Signal) backoff.Decision {
	c.sendOnce()
	now := c.lane.Now()
	d := c.policy.Next(backoff.Attempt{
		Number:     c.sent,
		Throttled:  c.throttled,
		Elapsed:    now.Sub(c.turn.Arrived()),
		TimeLeft:   c.timeLeft(),
		MaxPause:   c.t.maxPause(),
		Request:    c.req,
		Response:   resp,
		Err:        err,
		Signal:     *signal,
		Replayable: c.body == nil || c.body.Replayable(),
		Paused:     c.paused,
	})
	var lost error
	if d.Retry {
		switch {
		case !c.couldGo(d.Delay):
			d = backoff.Decision{Reason: backoff.ReasonDeadline}
		case d.Reason != backoff.ReasonThrottled && !c.lane.Budget.Withdraw(time.Duration(now)):
			d = backoff.Decision{Reason: backoff.ReasonBudget}
		case !c.renewBody(resp, &lost):
			d = backoff.Decision{Reason: backoff.ReasonBody}
		case d.Reason == backoff.ReasonThrottled:
			c.throttled++
		}
	}
	if d.Reason == backoff.ReasonBody {
		c.logBodyLost(telemetry.FailureOf(resp, err), lost)
	}
	c.verdict, c.asked = d.Reason, max(c.refusedFor, signal.RetryAfter)
	for _, l := range c.all() {
		o := observerOf(l)
		if o.meter.Retry(c.ctx, d, resp, err); d.Retry {
			o.counts.retried.Add(1)
		}
	}
	return d
}

// bufferBody returns how many bytes of a body are kept if there is no other way
// to read it again. It returns none if no attempt may follow the first.
func bufferBody(p *backoff.Policy) int64 {
	switch {
	case never(p):
		return 0
	case p == nil:
		return backoff.DefaultBufferBody
	}
	return cmp.Or(p.BufferBody, backoff.DefaultBufferBody)
}

// never reports whether the policy never sends a request again, as
// [backoff.None].
func never(p *backoff.Policy) bool {
	return p != nil && (p.Attempts < 0 || p.Attempts == 1) && p.MaxThrottled < 0
}

// renewBody gets the body of the next attempt. If it cannot, it returns the reason. The response
// comes into memory first: a connection whose request is not sent whole breaks with the body of
// that request.
func (c *call) renewBody(resp *http.Response, lost *error) bool {
	if resp != nil {
		c.status, c.header = resp.StatusCode, resp.Header
		replay.Drain(resp)
	}
	if c.body != nil {
		*lost = c.body.Renew(c.ctx)
	}
	return *lost == nil
}

// logBodyLost reports that the call was not retried because its body cannot be read again: in the
// caller's span and in a line of debug log.
func (c *call) logBodyLost(failure string, cause error) {
	telemetry.NotRetried(c.ctx, c.key, failure, c.sent)
	attrs := []slog.Attr{slog.String("lane", c.key), slog.String("failure", failure), slog.Int("attempts", c.sent)}
	if cause != nil {
		attrs = append(attrs, slog.String("cause", bare(cause).Error()))
	}
	c.t.logger().LogAttrs(c.ctx, slog.LevelDebug, "weir: not tried again: the body cannot be read again (set GetBody, or Retry.BufferBody to its length)", attrs...)
}

// timeLeft returns the time until the context's deadline, and zero if there is none.
func (c *call) timeLeft() time.Duration {
	deadline, ok := c.ctx.Deadline()
	if !ok {
		return 0
	}
	return max(time.Until(deadline), 1)
}

// couldGo reports whether the request could go again after a delay. It could
// not if some lane is certain to hold it for too long.
func (c *call) couldGo(delay time.Duration) bool {
	could := c.line().CouldTake(c.ctx, &c.turn, delay)
	for _, v := range c.visits {
		could = could && v.lane.Line.CouldTake(c.ctx, &c.turn, delay)
	}
	return could
}

// delay waits for the time before the next attempt. The call is not in line
// meanwhile.
func (c *call) delay(d backoff.Decision) error {
	if d.AfterPause || d.Delay <= 0 {
		return nil
	}
	ended := c.t.tracer.Delay(c.ctx, c.lane.Key, c.sent, d)
	timer := time.NewTimer(d.Delay)
	defer timer.Stop()
	var err error
	select {
	case <-timer.C:
	case <-c.ctx.Done():
		err = c.ctx.Err()
	case <-c.t.lanes.Done():
		err = shaping.ErrClosed
	}
	ended(err)
	if err != nil {
		return c.fail(err)
	}
	return nil
}
