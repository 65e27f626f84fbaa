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

// Counts are the counts of a lane since it was made. An idle lane is removed after a while, and
// begins at zero when it is made again. A turn is one attempt's wait for its permits, long or none.
// With Transport.Keys a turn is held in the lane for which its wait began, and rejected by one
// lane. The others admit it if it departs.
type Counts struct {
	Admitted uint64        // turns that departed at once; zero: none
	Held     uint64        // turns that waited in line, whatever their outcome; zero: none
	Rejected uint64        // turns that the lane rejected, at once or out of the line; zero: none
	Refused  uint64        // responses with which the server refused; zero: none
	Retried  uint64        // attempts that were followed by another; zero: none
	Waited   time.Duration // time in line of all turns together, when they have ended; zero: none
}

// counts are Counts as they grow.
type counts struct {
	admitted, held, rejected, refused, retried atomic.Uint64
	waited                                     atomic.Int64
}

// read returns the counts.
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

// countDeparture counts, also in the metrics, a turn that has ended with a departure. The lane that
// held it has counted it already.
func (c *call) countDeparture(l *lane.Lane, o *observer, held bool) {
	if !held {
		o.counts.admitted.Add(1)
	}
	o.meter.Turn(c.ctx, &c.turn, telemetry.StoreOf(l.Gate.Store()), nil)
}

// countFailure counts a turn that has ended with err, also in the metrics: in the lane that
// rejected the call, or that held it last. A caller that gives up at once counts only in the metrics.
func (c *call) countFailure(err error) {
	in := c.turn.HeldIn()
	if rejected, ok := errors.AsType[*shaping.Error](err); ok {
		in = rejected.Lane
	}
	l := c.laneThat(in)
	o := observerOf(l)
	if c.ctx.Err() == nil {
		o.counts.rejected.Add(1)
	}
	o.meter.Turn(c.ctx, &c.turn, telemetry.StoreOf(l.Gate.Store()), err)
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
