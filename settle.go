package weir

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"

	"github.com/weirgo/weir/throttle"
)

// Settle states the actual cost of the call behind a response in a unit, such as the tokens of a
// language model. It corrects, in the call's lane, the limits of that unit from the estimate of
// Transport.Cost or WithCost. If the call cost more than estimated, the difference is always
// charged. If it cost less, the difference is given back, as far as the limits were certainly kept.
// An empty unit means "requests". Each unit can be settled once.
//
// The error means that the response came from no Transport with a limit of that unit, that the cost
// is negative, or that the unit was already settled.
//
// The response may have gone through an [http.Client], and its body may be
// closed. Settle is safe for concurrent use.
func Settle(resp *http.Response, unit string, cost int) error {
	a := attemptOf(resp)
	if a == nil {
		return fmt.Errorf("weir: settling %q: the response was not obtained through a Transport that can settle it", unit)
	}
	return a.settle(cmp.Or(unit, "requests"), cost)
}

// attemptOf returns the attempt that brought a response; nil: it was not watched, or not
// ours. A context below that of its request may be that of another call.
func attemptOf(resp *http.Response) *attempt {
	if resp == nil || resp.Request == nil {
		return nil
	}
	shown, _ := resp.Request.Context().(*shownContext)
	return (*attempt)(shown)
}

// settle corrects what the attempt was charged in a unit.
func (a *attempt) settle(unit string, cost int) error {
	if cost < 0 {
		return fmt.Errorf("weir: settled cost %d of %q is negative", cost, unit)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if slices.Contains(a.ask().settled, unit) {
		return fmt.Errorf("weir: %q was settled before", unit)
	}
	var err error
	var settled bool
	a.each(func(c *charge) {
		ok, failed := c.settle(observerOf(a.lane).t, unit, cost)
		settled, err = settled || ok, cmp.Or(err, failed)
	})
	switch {
	case err != nil:
		return fmt.Errorf("weir: settling %q: %w", unit, err)
	case !settled:
		return fmt.Errorf("weir: lane %q has no limit of %q", a.lane.Key, unit)
	}
	a.asked.settled = append(a.asked.settled, unit)
	return nil
}

// settle corrects what one lane charged. It returns false if the lane has no limit of
// that unit.
func (a *charge) settle(t *Transport, unit string, cost int) (ok bool, err error) {
	l, err := t.lanes.Again(a.lane)
	if err != nil {
		return false, err
	}
	defer l.Leave(nil)
	d := a.departure()
	actual, ok := costing(d.Request, l.Limits(), unit, cost)
	if !ok {
		return false, nil
	}
	charged := actual
	if l != a.lane {
		// It was whole at the departure: the charge was earned back, and only the excess still
		// counts.
		charged.Each = slices.Clone(actual.Each)
		for i, n := range charged.Each {
			charged.Each[i] = max(n, d.Request.Of(i))
		}
	}
	l.Settle(d, unit, charged)
	d.Request = actual
	a.whole = &d
	return true, nil
}

// costing returns a request with its cost for each limit, given its cost in a unit. Ok is false if no
// limit has that unit.
func costing(charged throttle.Request, limits []throttle.Limit, unit string, cost int) (actual throttle.Request, ok bool) {
	actual = throttle.Request{N: charged.N, Since: charged.Since, Each: make([]int, len(limits))}
	for i, limit := range limits {
		actual.Each[i] = charged.Of(i)
		if limit.Unit == unit {
			actual.Each[i], ok = cost, true
		}
	}
	return actual, ok
}
