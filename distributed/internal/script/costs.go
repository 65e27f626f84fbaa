package script

import (
	"slices"

	"github.com/weirgo/weir/throttle"
)

// Costs appends the permits that a request asks of each limit to buf. The learned limit counts
// calls: a request takes one permit of it, whatever its cost. If limits reserve permits, the class
// of the request follows, so that permits in hand can be distinguished.
func (e *EncodedLimits) Costs(r *throttle.Request, buf []int64) []int64 {
	any := r.N > 0
	for _, n := range r.Each {
		any = any || n > 0
	}
	for i := range e.Limits {
		n := int64(r.Of(i))
		if e.Learned && i == len(e.Limits)-1 {
			if n = 0; any {
				n = 1
			}
		}
		buf = append(buf, n)
	}
	switch {
	case !e.Reserves:
	case r.Urgent:
		buf = append(buf, urgent)
	default:
		buf = append(buf, others)
	}
	return buf
}

// The classes that follow costs. An urgent request may spend a permit of any class. Its class is
// the lesser one, so that costs compare that way.
const (
	urgent = -2
	others = -1
)

// Permits returns costs without the class.
func (e *EncodedLimits) Permits(costs []int64) []int64 { return costs[:min(len(costs), len(e.Limits))] }

// Urgency returns 1 if costs are of an urgent request, and limits reserve permits for it.
func (e *EncodedLimits) Urgency(costs []int64) int {
	if e.Reserves && costs[len(costs)-1] == urgent {
		return 1
	}
	return 0
}

// Serves reports whether a permit fetched for costs serves this request: it was fetched for an
// equal one, or for one that differs only in not being urgent.
func Serves(costs, request []int64) bool {
	return slices.EqualFunc(costs, request, func(have, ask int64) bool { return have == ask || ask == urgent && have == others })
}
