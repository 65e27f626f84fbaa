package weir

import (
	"log/slog"
	"net/http"

	"github.com/weirgo/weir/backoff"
)

// A client around a Transport may try again what the Transport has tried
// already: an SDK, a retrying client, a loop. Each of its tries is a call here,
// so that 11 attempts of ours under 3 of theirs would be 33 requests. A
// Transport recognises such calls by their identity and counts on: one call of
// their caller becomes no more requests than the greater of the two numbers.
//
// Say ours is 4 and theirs 5. The first call fails after 4 requests. The second,
// third and fourth are tries that were made already: they get the answer of the
// first again, and nothing is sent. The fifth is sent once.

// countOn finds out whether the call is the next try of a call that failed,
// made by an outer client. If that try was made already, it returns the answer
// again.
func (c *call) countOn() (resp *http.Response, err error, answered bool) {
	failures := &c.t.failures
	if !failures.some() {
		return nil, nil, false
	}
	id, try := identityOf(c.req)
	failed, ok := failures.find(id, try)
	if !ok {
		return nil, nil, false
	}
	c.earlier = failed
	c.earlier.calls = max(failed.calls, try-1)
	if !failed.spent || c.earlier.calls >= failed.sent {
		return nil, nil, false
	}
	if resp, ok = failed.resp.again(c.req); !ok && failed.err == nil {
		return nil, nil, false
	}
	failed.calls = c.earlier.calls + 1
	failures.add(id, failed, 0)
	c.t.logger().LogAttrs(c.ctx, slog.LevelDebug, "weir: not sent: an outer client tries again what this Transport has tried already",
		slog.String("lane", c.key), slog.Int("calls", failed.calls), slog.Int("attempts", failed.sent))
	return resp, failed.err, true
}

// noteFailure remembers a call that failed. If the call did not fail, it
// forgets the failures before it.
func (c *call) noteFailure() {
	switch c.verdict {
	case "", backoff.ReasonFinal, backoff.ReasonCanceled:
		if c.earlier.calls > 0 && c.sent > 0 {
			id, _ := identityOf(c.req)
			c.t.failures.remove(id)
		}
		return
	}
	failed := failure{
		calls:     c.earlier.calls + 1,
		sent:      c.earlier.sent + c.sent,
		throttled: c.earlier.throttled + c.throttled,
		spent:     c.spent(),
		resp:      c.kept,
		err:       c.failed,
	}
	if c.refusedLast {
		failed.throttled++
	}
	if failed.sent > 1 || !failed.spent { // a call that is sent once multiplies nothing
		id, _ := identityOf(c.req)
		c.t.failures.add(id, failed, c.asked)
	}
}

// spent reports whether the call failed as often as its policy allows.
func (c *call) spent() bool {
	return c.verdict == backoff.ReasonAttempts || c.verdict == backoff.ReasonMaxThrottled
}

// keep keeps the answer of a call that has used up its attempts, for the outer
// client's tries that those attempts stand for.
func (c *call) keep(resp *http.Response, err error) {
	switch {
	case !c.spent() || c.earlier.sent+c.sent == 1:
	case err != nil:
		c.failed = err
	default:
		c.kept = keepResponse(resp)
	}
}
