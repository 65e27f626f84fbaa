package script

import (
	"slices"

	"github.com/weirgo/weir/throttle"
)

// Costs reads what a request asks of each limit. What was learned is a limit of
// calls: each takes one permit of it, whatever it costs.
type Costs struct {
	r       *throttle.Request
	limits  int
	learned bool // the last limit
}

// CostsOf returns the costs of a request in so many limits, of which the last may be learned.
func CostsOf(r *throttle.Request, limits int, learned bool) Costs {
	return Costs{r, limits, learned}
}

// Of returns the permits of one limit.
func (c Costs) Of(i int) int64 {
	if c.learned && i == c.limits-1 {
		if c.r.N > 0 || slices.ContainsFunc(c.r.Each, func(n int) bool { return n > 0 }) {
			return 1
		}
		return 0
	}
	return int64(c.r.Of(i))
}

// Nothing reports whether the request asks for no permit.
func (c Costs) Nothing() bool {
	for i := range c.limits {
		if c.Of(i) != 0 {
			return false
		}
	}
	return true
}

// Within reports whether no limit is asked for more than most.
func (c Costs) Within(most []int64) bool {
	for i := range c.limits {
		if c.Of(i) > most[i] {
			return false
		}
	}
	return true
}

// Equal reports whether the costs are those of a list.
func (c Costs) Equal(other []int64) bool {
	if len(other) != c.limits {
		return false
	}
	for i := range c.limits {
		if c.Of(i) != other[i] {
			return false
		}
	}
	return true
}

// Rest returns what most holds beyond the costs.
func (c Costs) Rest(most []int64) []int64 {
	out := make([]int64, c.limits)
	for i := range out {
		out[i] = most[i] - c.Of(i)
	}
	return out
}

// List returns the permits of each limit.
func (c Costs) List() []int64 {
	out := make([]int64, c.limits)
	for i := range out {
		out[i] = c.Of(i)
	}
	return out
}

// BurstOf returns the most permits at once of a whole limit.
func BurstOf(l throttle.Limit) int {
	switch l.Algorithm {
	case throttle.AlgorithmLeakyBucket:
		return 1
	case throttle.AlgorithmTokenBucket, throttle.AlgorithmGCRA:
		return max(l.Burst, 1)
	default:
		return l.Permits
	}
}
