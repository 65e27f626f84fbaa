package weir

import (
	"sync/atomic"
	"time"
)

// Counts are what happened in a lane since it was made. An idle lane is removed after a
// while, and begins at zero when it is made again. A turn is one attempt's wait for its
// permits, long or none.
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

// countTurn counts a turn that has ended with err. It stood in line for a time if it was
// held. A caller that gives up at once counts nowhere.
func (c *call) countTurn(held bool, stood time.Duration, err error) {
	n := &c.observer.counts
	if held {
		n.held.Add(1)
		n.waited.Add(int64(stood))
	}
	switch {
	case err == nil && !held:
		n.admitted.Add(1)
	case err != nil && c.ctx.Err() == nil:
		n.rejected.Add(1)
	}
}
