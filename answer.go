package weir

import (
	"net/http"
	"time"

	"github.com/weirgo/weir/headers"
)

// hear reads what the answer says and lets the lane believe it.
func (c *call) hear(resp *http.Response, err error) headers.Signal {
	c.paused, c.told, c.inHand = false, 0, resp
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
	if signal.Throttled {
		c.lane.meter.refusal(c.ctx, resp, &signal)
	}
	// First the refusal: what lands lets the next one go. Where waiting does
	// not help this request, a time that was told still is the lane's.
	if _, told := signal.Wait(); signal.Throttled && (told || !signal.Permanent) {
		c.refused(resp.StatusCode, &signal)
	}
	c.landed(!signal.Throttled && resp.StatusCode < http.StatusInternalServerError)
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
func (c *call) refused(status int, signal *headers.Signal) {
	c.told, _ = signal.Wait()
	alone := signal.Scope == headers.ScopeRequest || c.throttled > 0 && c.lane.alone(c.refusedAt)
	if c.throttled == 0 {
		c.refusedAt = c.lane.queue.Now()
	}
	if !alone {
		c.paused = c.concerned(status, signal).refused(c.t, c.turn.Departed(), c.told)
	}
}

// landed says that the attempt is no longer in flight.
func (c *call) landed(good bool) {
	c.flying = false
	c.lane.landed(&c.turn, good)
	for i := range c.narrow {
		if v := &c.narrow[i]; v.passed {
			v.passed = false
			v.lane.landed(&v.turn, good)
		}
	}
}
