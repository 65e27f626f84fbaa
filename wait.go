package weir

import (
	"fmt"
	"time"

	"github.com/weirgo/weir/internal/lane"
	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// wait waits for the call's turn.
func (c *call) wait() error {
	first := c.turn.Arrived() == 0
	var began throttle.Instant // zero: when the turn arrives, which needs no clock
	if !first {
		began = c.lane.Now()
	}
	if c.longest = c.options.maxWait; c.longest == 0 {
		c.longest = c.t.Line.MaxWait
	}
	if c.longest > 0 {
		c.began = c.lane.Now()
	}
	err := c.turnCome()
	held := c.hasWaited(began, err)
	if err != nil {
		c.countFailure(err)
	}
	c.turn.MaxWait = c.options.maxWait // of the next wait, which is asked about before it begins
	if arrived := c.turn.Arrived(); first && arrived != 0 {
		c.lane.Budget.Deposit(time.Duration(arrived))
	}
	for _, l := range c.all() {
		o := observerOf(l)
		if err == nil {
			c.countDeparture(l, o, l == held)
		}
		o.watch.look(c, l, err)
		if first && l.Shadow != nil {
			c.countShadow(l, err)
		}
	}
	if err != nil {
		return c.fail(err)
	}
	return nil
}

// turnCome waits for the call's lanes and for the sub-lanes that concern it, together. If a
// sub-lane was paused or made while the call stood in line, the call gives its permits back and
// waits for that one, too.
func (c *call) turnCome() error {
	for {
		if c.divided() {
			if err := c.joinSublanes(); err != nil {
				return err
			}
		}
		if err := c.waitInAll(); err != nil {
			return err
		}
		c.granted = true
		if !c.divided() || !c.sublaneHolds() {
			return nil
		}
		c.giveBack()
	}
}

// joinSublanes makes the sub-lanes that concern the call now a part of its group, and no others.
func (c *call) joinSublanes() error {
	c.leaveSublanes()
	c.visits = c.visits[:0]
	c.enterSublanes(true)
	last := c.group
	if err := c.join(); err != nil { // the lanes are closed, and what held the call is asked of its group
		return err
	}
	last.Leave()
	if c.turn.Each != nil && !c.group.Fits(last) { // a lane's limits have changed
		var err error
		c.turn.Each, err = c.eachCost()
		return err
	}
	return nil
}

// join joins the group of the call's lanes and sub-lanes.
func (c *call) join() error {
	var room [shaping.MaxRosters]*lane.Lane
	lanes := append(room[:0], c.all()...)
	for i := range c.visits {
		lanes = append(lanes, c.visits[i].lane)
	}
	group, err := c.t.lanes.Join(lanes...)
	if err == nil {
		c.group = group
	}
	return err
}

// waitInAll waits until all lanes of the call let it depart, no longer than the waits before
// have left of the longest one.
func (c *call) waitInAll() error {
	if c.longest > 0 {
		c.turn.MaxWait = max(c.longest-c.lane.Now().Sub(c.began), 1)
	}
	if err := c.line().Queue.WaitTurn(c.ctx, &c.turn); err != nil {
		return err
	}
	for i, l := range c.all() {
		c.seen[i] = l.Course.Look()
	}
	for i := range c.visits {
		v := &c.visits[i]
		v.passed, v.seen = true, v.lane.Course.Look()
	}
	return nil
}

// giveBack returns the permits of a departure that does not take place.
func (c *call) giveBack() {
	if !c.granted {
		return
	}
	c.granted = false
	for i := range c.visits {
		c.visits[i].passed = false
	}
	c.line().Return(&c.turn)
}

// countShadow lets a lane's shadow decide on the call too. The lane's own
// limits have just decided. A call that stood in line was held, whatever became
// of it.
func (c *call) countShadow(l *lane.Lane, err error) {
	live, arrived := lane.Admitted, c.turn.Arrived()
	switch {
	case arrived == 0 && c.ctx.Err() != nil:
		return // it gave up before anything was decided
	case arrived == 0:
		live, arrived = lane.Rejected, l.Now()
	case err != nil, c.turn.Departed() > arrived:
		live = lane.Held
	}
	r := throttle.Request{N: c.turn.N}
	if r.Each, err = c.costs(l.Shadow.Limits); err == nil {
		candidate := l.Shadow.Decide(arrived, r, live)
		observerOf(l).meter.Shadow(c.ctx, Outcome(live).String(), Outcome(candidate).String())
	}
}

// price sets what the call costs.
func (c *call) price() (err error) {
	c.turn.N = max(c.options.cost, 1)
	if c.group == nil && c.t.Cost == nil && c.options == &noOptions { // nothing is stated
		if c.t.units.Load() {
			c.warnOfUnits(c.lane.Limits(), nil)
		}
		return nil
	}
	if c.turn.Each, err = c.eachCost(); err != nil {
		return c.fail(err)
	}
	return nil
}

// costs returns what the call costs of each limit, and nil if that is N for
// all.
func (c *call) costs(limits []throttle.Limit) ([]int, error) {
	byUnit := c.costsOf()
	c.warnOfUnits(limits, byUnit)
	if byUnit == nil && (c.t.Cost == nil || c.options.cost > 0) {
		return nil, nil
	}
	costs := make([]int, len(limits))
	for i, limit := range limits {
		n, ok := byUnit[limit.Unit]
		switch {
		case ok:
			costs[i] = n
		case c.t.Cost == nil || c.options.cost > 0:
			costs[i] = c.turn.N
		default:
			costs[i] = c.t.Cost(c.req, limit)
		}
		if costs[i] < 0 {
			return nil, fmt.Errorf("cost %d of limit %q is negative", costs[i], limit.Label())
		}
	}
	return costs, nil
}
