package weir

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/weirgo/weir/throttle"
)

// Settle states, once for each unit, what the call behind a response really
// cost: tokens of a language model, points of a query. The limits of that unit
// in its lane are corrected from what Transport.Cost, or WithCost, estimated.
// Overspend is always charged; underspend is given back as far as the limits
// can still tell that nobody has gone beyond them. The error says that the
// response is of no Transport with a limit of that unit, that the cost is
// negative, or that the unit was settled before.
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
	return a.settle(unit, cost)
}

// attemptKey finds the attempt among the values of its context.
type attemptKey struct{}

func (a *attempt) settle(unit string, cost int) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if slices.Contains(a.settled, unit) {
		return fmt.Errorf("weir: %q was settled before", unit)
	}
	limits := *a.lane.limits.Load()
	actual := throttle.Request{N: a.request.N, Since: a.request.Since, Each: make([]int, len(limits))}
	found := false
	for i, limit := range limits {
		actual.Each[i] = a.request.N
		if i < len(a.request.Each) {
			actual.Each[i] = a.request.Each[i]
		}
		if limit.Unit == unit {
			actual.Each[i], found = cost, true
		}
	}
	if !found {
		return fmt.Errorf("weir: lane %q has no limit of %q", a.lane.key, unit)
	}
	a.lane.queue.Settle(a.charged, a.request, actual)
	a.request, a.settled = actual, append(a.settled, unit)
	return nil
}
