package weir

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/weirgo/weir/headers"
	"github.com/weirgo/weir/internal/lane"
	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// MaxKeys is the most keys that Transport.Keys may return for a request.
const MaxKeys = 8

// keys returns the keys of the request's lanes, the narrowest first.
func (c *call) keys() (keys []string, err error) {
	keys = c.t.Keys(c.req)
	for i := len(keys) - 1; i >= 0; i-- {
		if keys[i] == "" || slices.Contains(keys[:i], keys[i]) {
			keys = slices.Concat(keys[:i], keys[i+1:]) // the list is the user's
		}
	}
	if len(keys) > MaxKeys {
		return nil, fmt.Errorf("request has %d keys, want %d at most", len(keys), MaxKeys)
	}
	if len(keys) == 0 {
		keys = []string{c.t.keyOf(c.req)}
	}
	return keys, nil
}

// enter enters the lanes of the request. The widest is the lane of the call.
func (c *call) enter() error {
	if c.t.Keys == nil {
		c.key = c.t.keyOf(c.req)
		l, err := c.t.enter(c.key)
		if err == nil {
			c.lane, c.entered[0], c.lanes = l, l, 1
			c.turn.ID = c.arrived(l)
		}
		return err
	}
	keys, err := c.keys()
	if err != nil {
		return err
	}
	c.turn.ID = c.t.calls.Add(1)
	for _, c.key = range keys {
		l, err := c.t.enter(c.key)
		if err != nil {
			return err
		}
		if c.add(l) {
			c.arrived(l)
		}
	}
	return c.join()
}

// add makes a lane, which the call has entered, its widest one. It returns false, and leaves
// the lane, if the call is in it already: that may be the one that keys beyond MaxLanes share.
func (c *call) add(l *lane.Lane) bool {
	c.lane = l
	if slices.Contains(c.all(), l) {
		l.Leave(nil)
		return false
	}
	c.entered[c.lanes] = l
	c.lanes++
	return true
}

// all returns the lanes of the call, the narrowest first.
func (c *call) all() []*lane.Lane { return c.entered[:c.lanes] }

// left leaves the lanes of the request.
func (c *call) left() {
	c.group.Leave()
	for _, l := range c.all() {
		l.Leave(&c.turn)
	}
}

// arrived counts the call in one of its lanes, and returns its number there.
func (c *call) arrived(l *lane.Lane) (number uint64) {
	if number = observerOf(l).calls.Add(1); number == 1 {
		c.made(l)
	}
	return number
}

// laneThat returns the lane of the call that has a key, as the queue names what held or
// rejected it; if none has it, the widest.
func (c *call) laneThat(key string) *lane.Lane {
	if c.lanes < 2 || key == "" {
		return c.lane
	}
	return c.group.Named(key)
}

// line returns the line in which the call waits.
func (c *call) line() *lane.Line {
	if c.group != nil {
		return &c.group.Line
	}
	return &c.lane.Line
}

// eachCost returns what the call costs of the limits of all its lanes, one lane after the
// other, and nil if that is N for all.
func (c *call) eachCost() (all []int, err error) {
	if c.group == nil {
		return c.costs(c.lane.Limits())
	}
	for i, l := range c.group.Lanes {
		costs, err := c.costs(l.Limits())
		if err != nil || costs == nil {
			return nil, err
		}
		for n := len(costs); n < c.group.Size(i); n++ { // a limit has gone meanwhile
			costs = append(costs, c.turn.N)
		}
		all = append(all, costs[:c.group.Size(i)]...)
	}
	return all, nil
}

// lanesNamed returns the lanes of the call that an answer names: by the policies that it says
// are violated, else by its bucket, else by the quota that is spent. A name is the key of a
// lane, or that of one of its limits. It is nil if the answer names none.
func (c *call) lanesNamed(signal *headers.Signal) (named []*lane.Lane) {
	for _, l := range c.all() {
		if slices.ContainsFunc(signal.Violated, func(name string) bool { return c.laneOf(name) == l }) {
			named = append(named, l)
		}
	}
	if named != nil {
		return named
	}
	if l := c.laneOf(signal.Bucket); l != nil {
		return []*lane.Lane{l}
	}
	for _, q := range signal.Quotas {
		if !signal.Throttled || q.HasRemaining && q.Remaining < 1 {
			if l := c.laneOf(q.Name); l != nil {
				return []*lane.Lane{l}
			}
		}
	}
	return nil
}

// own returns those quotas of an answer that are of a lane: of the one that they name, else of
// the widest that the answer names, else of the widest.
func (c *call) own(l *lane.Lane, quotas []headers.Quota) (own []headers.Quota) {
	if c.lanes < 2 || !slices.Contains(c.all(), l) { // it is the only one, or a sub-lane
		return quotas
	}
	about := c.lane
	if n := len(c.about); n > 0 {
		about = c.about[n-1]
	}
	for _, q := range quotas {
		if cmp.Or(c.laneOf(q.Name), about) == l {
			own = append(own, q)
		}
	}
	return own
}

// laneOf returns the narrowest lane of that key, or with a limit of that name.
func (c *call) laneOf(name string) *lane.Lane {
	if name == "" {
		return nil
	}
	for _, l := range c.all() {
		if l.Key == name || slices.ContainsFunc(l.Limits(), func(o throttle.Limit) bool { return o.Name == name }) {
			return l
		}
	}
	return nil
}

// held names in e the lane that held the call.
func (c *call) held(e *Error, refused *shaping.Error) {
	l := c.laneThat(refused.Lane)
	if c.lanes > 1 && refused.Lane != "" {
		e.Lane = l.Key
	}
	if e.Limit = refused.Limit; l != nil {
		e.Limit = l.Label(refused.Limit)
	}
	if inner := (*shaping.Error)(nil); errors.As(e.Err, &inner) {
		e.Err = inner.Err
	}
}
