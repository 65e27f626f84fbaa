package weir

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"

	"github.com/weirgo/weir/throttle"
)

// Settle states, once for each unit, what the call behind a response really
// cost: tokens of a language model, points of a query. The limits of that unit
// in its lane are corrected from what Transport.Cost, or WithCost, estimated.
// Overspend is always charged; underspend is given back as far as the limits
// can still tell that nobody has gone beyond them. The zero unit is "requests".
// The error says that the response is of no Transport with a limit of that
// unit, that the cost is negative, or that the unit was settled before.
//
// The response may have gone through an [http.Client]; its body need not be
// open. Settle is safe for concurrent use.
func Settle(resp *http.Response, unit string, cost int) error {
	if cost < 0 {
		return fmt.Errorf("weir: settled cost %d of %q is negative", cost, unit)
	}
	var a *attempt
	if resp != nil && resp.Request != nil {
		a, _ = resp.Request.Context().Value(attemptKey{}).(*attempt)
	}
	if a == nil {
		return fmt.Errorf("weir: settling %q: the response was not obtained through a Transport that can settle it", unit)
	}
	return a.settle(cmp.Or(unit, "requests"), cost)
}

func (a *attempt) settle(unit string, cost int) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if slices.Contains(a.settled, unit) {
		return fmt.Errorf("weir: %q was settled before", unit)
	}
	l, err := a.lane.again()
	if err != nil {
		return fmt.Errorf("weir: settling %q: %w", unit, err)
	}
	defer l.users.Add(-1)
	actual, ok := a.actual(*l.limits.Load(), unit, cost)
	if !ok {
		return fmt.Errorf("weir: lane %q has no limit of %q", l.key, unit)
	}
	charged := actual
	if l != a.lane {
		// It was whole when it went: all that it was charged was earned back,
		// and only what comes on top still counts.
		charged.Each = slices.Clone(actual.Each)
		for i, n := range charged.Each {
			charged.Each[i] = max(n, estimate(a.departure.Request, i))
		}
	}
	l.queue.Settle(a.departure, charged)
	a.departure.Request, a.settled = actual, append(a.settled, unit)
	return nil
}

// actual returns what the attempt cost of each limit where it cost so much of
// the unit; ok is false where there is no limit of that.
func (a *attempt) actual(limits []throttle.Limit, unit string, cost int) (actual throttle.Request, ok bool) {
	charged := a.departure.Request
	actual = throttle.Request{N: charged.N, Since: charged.Since, Each: make([]int, len(limits))}
	for i, limit := range limits {
		actual.Each[i] = estimate(charged, i)
		if limit.Unit == unit {
			actual.Each[i], ok = cost, true
		}
	}
	return actual, ok
}

// estimate returns what a request was taken to cost of limit i.
func estimate(r throttle.Request, i int) int {
	if i < len(r.Each) {
		return r.Each[i]
	}
	return r.N
}

// again counts a request in whose call is over: in its lane or, where that has
// gone meanwhile, in the one that its key has now.
func (l *lane) again() (*lane, error) {
	if l.enter() {
		return l, nil
	}
	return l.home.enter(l.key)
}
