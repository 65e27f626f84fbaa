package weir

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/weirgo/weir/backoff"
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
	options *options
	policy  *backoff.Policy
	body    *replay.Body // nil: the request has none

	key     string
	lane    *lane.Lane          // the widest of its lanes; nil until it is entered
	entered [MaxKeys]*lane.Lane // its lanes, the narrowest first
	lanes   int                 // how many those are
	group   *lane.Group         // of lanes and sub-lanes; nil: there is one lane
	seen    [MaxKeys]lane.Seen  // state of each of its lanes when the turn came
	visits  []visit             // sub-lanes that it has entered
	turn    shaping.Turn

	longest time.Duration    // wait before one attempt, in all lines; zero: any
	began   throttle.Instant // of the last wait, if longest counts
	waited  *waited          // in line, in all waits; never changed; nil: it has not waited

	sent       int              // attempts
	throttled  int              // attempts that were refused
	refusedAt  throttle.Instant // when the first of them was refused; zero: none was
	paused     bool             // the lane is paused because of the last answer
	refusedFor time.Duration    // the wait that the last answer asked for, if it refused
	about      []*lane.Lane     // that the last answer named, the narrowest first; nil: none
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

// A visit is what a call knows of a sub-lane that it has entered.
type visit struct {
	lane   *lane.Lane
	seen   lane.Seen // state of the sub-lane when the turn came
	passed bool      // the call has departed, and neither landed nor was given back since
}

// fail returns the error for a call that got no response.
func (c *call) fail(err error) error {
	e := &Error{Lane: c.key, Attempts: c.sent, Status: c.status, Header: c.header, Err: bare(err)}
	var refused *shaping.Error
	if errors.As(err, &refused) {
		e.Wait, e.Forecast, e.Before = refused.Wait, refused.Forecast, refused.Before
		e.Reason, e.Err = refused.Reason, refused.Err
		c.held(e, refused)
	}
	if c.lane != nil {
		e.dialect = c.dialect()
	}
	if w := c.waited; w != nil {
		e.waited = *w
		e.waited.limit = w.lane.Label(w.limit)
	}
	if arrived := c.turn.Arrived(); arrived != 0 {
		e.Elapsed = c.lane.Now().Sub(arrived)
	}
	return e
}
