package weir

import (
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/weirgo/weir/headers"
	"github.com/weirgo/weir/internal/lane"
	"github.com/weirgo/weir/internal/telemetry"
	"github.com/weirgo/weir/shaping"
)

// Counts are what happened in a lane since it was made. An idle lane is removed after a
// while, and begins at zero when it is made again. A turn is one attempt's wait for its
// permits, long or none. With Transport.Keys a turn is held in the lane for which its wait
// began, and rejected by one lane. The others admit it if it departs.
type Counts struct {
	Admitted uint64        // turns that departed at once; zero: none
	Held     uint64        // turns that stood in line, whatever became of them; zero: none
	Rejected uint64        // turns that the lane sent away, at once or out of the line; zero: none
	Refused  uint64        // responses with which the server refused; zero: none
	Retried  uint64        // attempts that were followed by another; zero: none
	Waited   time.Duration // time in line of all turns together, when they have ended; zero: none
}

// counts are Counts as they grow.
type counts struct {
	admitted, held, rejected, refused, retried atomic.Uint64
	waited                                     atomic.Int64
}

// read returns what was counted.
func (c *counts) read() Counts {
	return Counts{
		Admitted: c.admitted.Load(),
		Held:     c.held.Load(),
		Rejected: c.rejected.Load(),
		Refused:  c.refused.Load(),
		Retried:  c.retried.Load(),
		Waited:   time.Duration(c.waited.Load()),
	}
}

// countTurn counts a turn that has ended with err. If a lane held it, it stood in line for a
// time. A caller that gives up at once counts nowhere.
func (c *call) countTurn(held *lane.Lane, stood time.Duration, err error) {
	if held != nil {
		n := &observerOf(held).counts
		n.held.Add(1)
		n.waited.Add(int64(stood))
	}
	switch {
	case err == nil:
		c.inEach(func(l *lane.Lane) {
			if l != held {
				observerOf(l).counts.admitted.Add(1)
			}
		})
	case c.ctx.Err() == nil:
		observerOf(c.laneThat(c.heldIn(err))).counts.rejected.Add(1)
	}
}

// heldIn returns the key of the lane that rejected the call with err; if none did, of the one
// that held it last.
func (c *call) heldIn(err error) string {
	if rejected, ok := errors.AsType[*shaping.Error](err); ok {
		return rejected.Lane
	}
	return c.turn.HeldIn()
}

// meterTurn counts in the metrics a turn that has ended with err. All lanes count a departure,
// and otherwise the one that rejected or held the call.
func (c *call) meterTurn(err error) {
	count := func(l *lane.Lane) {
		observerOf(l).meter.Turn(c.ctx, &c.turn, telemetry.StoreOf(l.Store()), err)
	}
	if err == nil {
		c.inEach(count)
		return
	}
	count(c.laneThat(c.heldIn(err)))
}

// countRefusal counts a refusal in the lanes that it names, else in the widest.
func (c *call) countRefusal(resp *http.Response, signal *headers.Signal) {
	about := c.about
	if about == nil {
		about = []*lane.Lane{c.lane}
	}
	for _, l := range about {
		o := observerOf(l)
		o.counts.refused.Add(1)
		o.meter.Refusal(c.ctx, resp, signal)
	}
}
