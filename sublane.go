package weir

import (
	"net/http"

	"github.com/weirgo/weir/headers"
	course "github.com/weirgo/weir/internal/lane"
	"github.com/weirgo/weir/shaping"
)

// A refusal may concern less than a lane: a route, a credential, or, in the
// overflow lane, one key. It then pauses a sub-lane, which requests of the same
// route, credential or key pass before their own lane.

// A visit is a call's turn in a sub-lane.
type visit struct {
	lane   *lane
	turn   shaping.Turn
	seen   course.Seen // the sub-lane, as the turn came
	passed bool        // it has departed, and nothing has landed or been given back since
}

// passSublanes waits for the call's turn in every sub-lane that concerns it.
func (c *call) passSublanes() error {
	c.enterSublanes()
	if len(c.visits) > 0 && c.started == 0 {
		c.started = c.lane.queue.Now()
	}
	for i := range c.visits {
		v := &c.visits[i]
		if err := v.lane.queue.WaitTurn(c.ctx, &v.turn); err != nil {
			return err
		}
		v.passed, v.seen = true, v.lane.gate.seen()
	}
	return nil
}

// enterSublanes enters the sub-lanes that there are by now.
func (c *call) enterSublanes() {
	if c.lane.sublanes.Load() == 0 {
		return
	}
	for _, part := range c.parts() {
		if part == "" {
			continue
		}
		if l := c.t.lanes.findSublane(c.lane, part); l != nil {
			c.enterSublane(l)
		}
	}
}

// enterSublane keeps a sub-lane in which the call is counted, once.
func (c *call) enterSublane(l *lane) {
	for _, v := range c.visits {
		if v.lane == l {
			l.users.Add(-1)
			return
		}
	}
	turn := c.turn // it stands there, too, where its first arrival puts it
	turn.N, turn.Each = 1, nil
	c.visits = append(c.visits, visit{lane: l, turn: turn})
}

// sublanePaused reports whether a sub-lane was paused since the call has passed
// it.
func (c *call) sublanePaused() bool {
	c.enterSublanes()
	for _, v := range c.visits {
		if s := v.lane.queue.State(); s.Paused > s.Now {
			return true
		}
	}
	return false
}

// concerned returns the lane that the last refusal concerns.
func (c *call) concerned(status int, signal *headers.Signal) *lane {
	part := c.part(signal.Scope)
	if c.doubtful(status, signal) {
		part = c.part(headers.ScopeRoute)
		if status == http.StatusForbidden {
			part = c.routeAndCredential()
		}
	}
	if part == "" {
		return c.lane
	}
	l := c.t.lanes.openSublane(c.lane, part)
	if l == nil {
		return c.lane
	}
	c.enterSublane(l)
	return l
}

// doubtful reports whether it is in doubt that a refusal concerns the whole
// lane: it closes the lane, does not say whom it concerns, and no other route of
// the key is closed so. One route may be in maintenance, or forbidden to one
// credential, while all others serve.
func (c *call) doubtful(status int, signal *headers.Signal) bool {
	if signal.Scope != headers.ScopeUnknown || c.told <= c.t.maxPause() ||
		status != http.StatusServiceUnavailable && status != http.StatusForbidden {
		return false
	}
	now := c.lane.queue.Now()
	return !c.lane.doubts.agreed(now, &doubt{key: c.key, route: routeOf(c.req), until: now.Add(min(c.told, longestPause))})
}

// parts returns the parts of the lane that the request belongs to.
func (c *call) parts() [4]string {
	return [...]string{c.part(headers.ScopeRoute), c.part(headers.ScopeCredential), c.routeAndCredential(), c.part(headers.ScopeLane)}
}

// part returns the part of the lane that a refusal of the request concerns; "" if
// it is the whole lane. In the overflow lane refusals concern one key.
func (c *call) part(of headers.Scope) string {
	key := ""
	if c.lane.shared {
		key = partOfKey(c.key)
	}
	switch of {
	case headers.ScopeRoute:
		return key + "route " + c.req.Method + " " + routeOf(c.req)
	case headers.ScopeCredential:
		return key + "credential " + credentialOf(c.req)
	default:
		return key
	}
}

// partOfKey is how the parts of a key begin in the overflow lane.
func partOfKey(key string) string { return "key " + key + "\x00" }

// routeAndCredential returns the part that a refusal of one route to one
// credential concerns.
func (c *call) routeAndCredential() string {
	return c.part(headers.ScopeRoute) + " credential " + credentialOf(c.req)
}
