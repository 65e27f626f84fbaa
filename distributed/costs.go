package distributed

import (
	"slices"

	"github.com/weirgo/weir/throttle"
)

// costs reads what a request asks of each limit. What was learned is a limit of
// calls: each takes one permit of it, whatever it costs.
type costs struct {
	r       *throttle.Request
	limits  int
	learned bool // the last limit
}

func (c costs) of(i int) int64 {
	if c.learned && i == c.limits-1 {
		if c.r.N > 0 || slices.ContainsFunc(c.r.Each, func(n int) bool { return n > 0 }) {
			return 1
		}
		return 0
	}
	return int64(c.r.Of(i))
}

func (c costs) nothing() bool {
	for i := range c.limits {
		if c.of(i) != 0 {
			return false
		}
	}
	return true
}

func (c costs) within(most []int64) bool {
	for i := range c.limits {
		if c.of(i) > most[i] {
			return false
		}
	}
	return true
}

func (c costs) equal(other []int64) bool {
	for i := range c.limits {
		if c.of(i) != other[i] {
			return false
		}
	}
	return true
}

// rest returns what most holds beyond the costs.
func (c costs) rest(most []int64) []int64 {
	out := make([]int64, c.limits)
	for i := range out {
		out[i] = most[i] - c.of(i)
	}
	return out
}

func (c costs) list() []int64 {
	out := make([]int64, c.limits)
	for i := range out {
		out[i] = c.of(i)
	}
	return out
}

// burstOf returns the most permits at once of a whole limit.
func burstOf(l throttle.Limit) int {
	switch l.Algorithm {
	case throttle.AlgorithmLeakyBucket:
		return 1
	case throttle.AlgorithmTokenBucket, throttle.AlgorithmGCRA:
		return max(l.Burst, 1)
	default:
		return l.Permits
	}
}
