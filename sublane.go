package weir

import (
	"net/http"

	"github.com/weirgo/weir/headers"
	"github.com/weirgo/weir/internal/lane"
	"github.com/weirgo/weir/shaping"
)

// A refusal may concern less than a lane: a route, a credential, or, in the
// overflow lane, one key. It then pauses a sub-lane, which requests of the same
// route, credential or key pass before their own lane.

// A visit is a call's turn in a sub-lane.
type visit struct {
	lane   *lane.Lane
	turn   shaping.Turn
	seen   lane.Seen // state of the sub-lane when the turn came
	passed bool      // it has departed, and neither landed nor was given back since
}

// divided reports whether the call may have to pass sub-lanes. Most lanes have none.
func (c *call) divided() bool {
	return len(c.visits) > 0 || c.lane.NamesBuckets() || c.lane.HasSublanes()
}

// enterSublanes enters the sub-lanes that concern the call and exist by now.
func (c *call) enterSublanes() {
	c.enterBuckets()
	if !c.lane.HasSublanes() {
		return
	}
	for _, part := range c.parts() {
		if part == "" {
			continue
		}
		if l := c.t.lanes.FindSublane(c.lane, part); l != nil {
			c.enterSublane(l)
		}
	}
}

// enterSublane adds a sub-lane to the visits, once. The caller has entered it
// already.
func (c *call) enterSublane(l *lane.Lane) {
	for _, v := range c.visits {
		if v.lane == l {
			l.Leave(nil)
			return
		}
	}
	turn := c.turn // with its first arrival, which gives it its place there too
	turn.N, turn.Each = 1, nil
	c.visits = append(c.visits, visit{lane: l, turn: turn})
}

// sublanePaused reports whether a sub-lane is paused that the call had passed,
// or that was made since, or its route's bucket was named since.
func (c *call) sublanePaused() bool {
	c.enterSublanes()
	for _, v := range c.visits {
		if v.lane.State().Paused > 0 || v.lane.OfBucket() && !v.passed {
			return true
		}
	}
	return false
}

// concerned returns the lane or sub-lane that the last refusal concerns.
func (c *call) concerned(status int, signal *headers.Signal) *lane.Lane {
	if l := c.concernedBucket(signal); l != nil {
		return l
	}
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
	if l := c.openSublane(part, lane.Paused); l != nil {
		return l
	}
	return c.lane
}

// doubtful reports whether it is unclear that a refusal concerns the whole
// lane. That is so if it closes the lane, does not say whom it concerns, and no
// other route of the key is closed in the same way. One route may be in
// maintenance, or forbidden to one credential, while all others are served.
func (c *call) doubtful(status int, signal *headers.Signal) bool {
	if signal.Scope != headers.ScopeUnknown || c.refusedFor <= c.t.maxPause() ||
		status != http.StatusServiceUnavailable && status != http.StatusForbidden {
		return false
	}
	return c.lane.Doubtful(c.key, routeOf(c.req), c.refusedFor)
}

// parts returns the names of all sub-lanes that the request may pass.
func (c *call) parts() [4]string {
	return [...]string{c.part(headers.ScopeRoute), c.part(headers.ScopeCredential), c.routeAndCredential(), c.part(headers.ScopeLane)}
}

// part returns the name of the sub-lane that a refusal of the request concerns,
// and "" if it concerns the whole lane. In the lane that many keys share, a
// refusal concerns one key.
func (c *call) part(of headers.Scope) string {
	key := ""
	if c.lane.Shared() {
		key = lane.PartOfKey(c.key)
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

// routeAndCredential returns the name of the sub-lane for one route with one
// credential.
func (c *call) routeAndCredential() string {
	return c.part(headers.ScopeRoute) + " credential " + credentialOf(c.req)
}
