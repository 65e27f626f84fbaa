package weir

import (
	"cmp"
	"math"
	"net/http"

	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// A Forecast says how long a request would wait if it came now: at least (Wait), and as
// far as can be guessed (Expected). A router compares Expected. A job that snoozes comes
// back after it.
type Forecast = shaping.Forecast

// uncalled is the ID of a turn that is only forecast. No call has it.
const uncalled = math.MaxUint64

// Forecast returns how long the request would wait if it came now, and for what. It covers
// the limits, pauses, what was learned of the server's limit, the line before it, and
// sub-lanes. What a shared Store has not sent to this process yet is not known. It spends
// and sends nothing, takes no place in line, and makes no lane. The body is neither read
// nor closed. It calls Key or Keys, Cost, Tenant and, if the request's lane would be a new one,
// LimitsFor.
//
// The error is the [*Error] with which RoundTrip would reject the request at once, as far
// as that is certain: for ErrPaused, ErrDeadline, ErrQueueFull, ErrExceedsBurst or
// ErrClosed. The forecast holds with an error, too: it then says when to come back, except
// for the last two. Forecast is safe for concurrent use, and takes the locks that a
// call in line takes.
//
// With Keys the forecast is for all lanes of the request together. Lane and Limit are of the
// one that would hold it longest.
func (t *Transport) Forecast(req *http.Request) (f Forecast, err error) {
	t.once.Do(t.init)
	if req.URL == nil {
		return f, (&call{}).fail(errNoURL)
	}
	c := call{t: t, req: req, ctx: outlived(req.Context())}
	c.options = optionsOf(c.ctx)
	c.turn.MaxWait, c.turn.ID = c.options.maxWait, uncalled
	if req.Body != nil && req.Body != http.NoBody {
		c.turn.Bytes = req.ContentLength
	}
	if t.Tenant != nil {
		c.turn.Tenant, c.turn.Weight = t.Tenant(req)
	}
	keys := []string{""}
	if t.Keys == nil {
		keys[0] = t.keyOf(req)
	} else if keys, err = c.keys(); err != nil {
		return f, c.fail(err)
	}
	defer c.left()
	wrong := c.find(keys)
	if c.lane == nil {
		return f, wrong
	}
	f, err = c.forecast()
	return f, cmp.Or(wrong, err)
}

// find enters those lanes of the keys that there are. The error is that of the first one
// which would reject the call without a wait.
func (c *call) find(keys []string) (wrong error) {
	widest := ""
	for _, c.key = range keys {
		l, err := c.t.lanes.Find(c.key)
		switch {
		case err != nil:
			wrong = cmp.Or(wrong, c.fail(err))
		case l == nil:
			wrong = cmp.Or(wrong, c.afresh())
		default:
			c.add(l)
			widest = c.key
		}
	}
	c.key = cmp.Or(widest, c.key)
	return wrong
}

// forecast returns the forecast of the call for its lanes.
func (c *call) forecast() (f Forecast, err error) {
	c.enterSublanes(false)
	defer c.leaveSublanes()
	if err = c.join(); err != nil {
		return f, c.fail(err)
	}
	if err := c.price(); err != nil {
		return f, err
	}
	f, err = c.line().Forecast(c.ctx, &c.turn)
	switch {
	case c.t.Keys == nil:
		f.Lane = ""
	case f.Reason != "" && f.Lane == "":
		f.Lane = c.lane.Key
	}
	if err != nil {
		err = c.fail(err)
	}
	return f, err
}

// afresh returns the error that the first request of a new lane would get.
func (c *call) afresh() error {
	limits, err := throttle.Resolve(c.t.limitsFor(c.key)...)
	if err != nil {
		return c.fail(err)
	}
	c.turn.N = max(c.options.cost, 1)
	r := throttle.Request{N: c.turn.N}
	if r.Each, err = c.costs(limits); err != nil {
		return c.fail(err)
	}
	limiter, err := throttle.Local{}.Limiter(c.key, limits...)
	if err == nil {
		_, err = limiter.Take(1, r)
	}
	if err != nil {
		return c.fail(err)
	}
	return nil
}
