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

// decide says whether the request is sent again: whether the policy wants it,
// the budget has it, and the lane could let it go in time. It is asked before
// anything is thrown away.
func (c *call) decide(resp *http.Response, err error, signal headers.Signal) backoff.Decision {
	plain := err == nil && resp.StatusCode < http.StatusBadRequest && !signal.Throttled
	if c.over || plain && (c.policy == nil || c.policy.CheckRetry == nil) {
		c.verdict = ""
		return backoff.Decision{}
	}
	now := c.lane.queue.Now()
	d := c.policy.Next(backoff.Attempt{
		Number:     c.earlier.sent + c.sent,
		Throttled:  c.earlier.throttled + c.throttled,
		Elapsed:    now.Sub(c.started),
		TimeLeft:   c.timeLeft(),
		MaxPause:   c.t.maxPause(),
		Request:    c.req,
		Response:   resp,
		Err:        err,
		Signal:     signal,
		Replayable: c.body == nil || c.body.Replayable(),
		Paused:     c.paused,
	})
	var lost error
	if d.Retry {
		switch {
		case !c.couldGo(d.Delay):
			d = backoff.Decision{Reason: backoff.ReasonDeadline}
		case !c.renewBody(&lost):
			d = backoff.Decision{Reason: backoff.ReasonBody}
		case d.Reason == backoff.ReasonThrottled:
			c.throttled++
		case !c.lane.budget.Withdraw(time.Duration(now)):
			d = backoff.Decision{Reason: backoff.ReasonBudget}
		}
	}
	if d.Reason == backoff.ReasonBody {
		c.tellBodyLost(telemetry.FailureOf(resp, err), lost)
	}
	c.verdict, c.refusedLast, c.asked = d.Reason, signal.Throttled && !d.Retry, max(c.told, signal.RetryAfter)
	c.lane.meter.Retry(c.ctx, d, resp, err)
	return d
}

// bufferBody returns how many bytes are kept of a body that can be had again in
// no other way: none if no attempt may follow the first.
func bufferBody(p *backoff.Policy) int64 {
	switch {
	case p == nil:
		return backoff.DefaultBufferBody
	case never(p):
		return 0
	}
	return cmp.Or(p.BufferBody, backoff.DefaultBufferBody)
}

// never reports whether the policy sends no request again, as [backoff.None].
func never(p *backoff.Policy) bool {
	return (p.Attempts < 0 || p.Attempts == 1) && p.MaxThrottled < 0
}

// renewBody has the body of the next attempt, or says why not.
func (c *call) renewBody(lost *error) bool {
	if c.body != nil {
		*lost = c.body.Renew(c.ctx)
	}
	return *lost == nil
}

// tellBodyLost tells, in the caller's span and in a line of debug log, that the
// call would have been tried again if its body could be had again.
func (c *call) tellBodyLost(failure string, cause error) {
	telemetry.NotRetried(c.ctx, c.key, failure, c.sent)
	attrs := []slog.Attr{slog.String("lane", c.key), slog.String("failure", failure), slog.Int("attempts", c.sent)}
	if cause != nil {
		attrs = append(attrs, slog.String("cause", bare(cause).Error()))
	}
	c.t.logger().LogAttrs(c.ctx, slog.LevelDebug, "weir: not tried again: the body cannot be had again (set GetBody, or Retry.BufferBody to its length)", attrs...)
}

// timeLeft returns the time until the context's deadline, and zero if there is none.
func (c *call) timeLeft() time.Duration {
	deadline, ok := c.ctx.Deadline()
	if !ok {
		return 0
	}
	return max(time.Until(deadline), 1)
}

// couldGo reports whether, after a delay, no lane is certain to hold the
// request for too long.
func (c *call) couldGo(delay time.Duration) bool {
	could := c.lane.couldTake(c.ctx, &c.turn, delay)
	for _, v := range c.visits {
		could = could && v.lane.couldTake(c.ctx, &c.turn, delay)
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
	replay.Drain(resp)
	c.inHand = nil
}

// drainTime bounds the draining of a discarded response: a new connection costs
// less.
const drainTime = time.Second

// delay waits out the delay before the next attempt, outside the line.
func (c *call) delay(d backoff.Decision) error {
	if d.AfterPause || d.Delay <= 0 {
		return nil
	}
	ended := c.t.tracer.Delay(c.ctx, c.lane.key, c.sent, d)
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
