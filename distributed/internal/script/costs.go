package script

import "github.com/weirgo/weir/throttle"

// Costs appends the permits that a request asks of each limit to buf. What was learned is a
// limit of calls: a request takes one permit of it, whatever it costs.
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
	return buf
}

// BurstOf returns the most permits at once of a whole limit.
func BurstOf(l throttle.Limit) int {
	l = l.Enforced()
	switch l.Algorithm {
	case throttle.AlgorithmLeakyBucket:
		return 1
	case throttle.AlgorithmTokenBucket, throttle.AlgorithmGCRA:
		return max(l.Burst, 1)
	default:
		return l.Permits
	}
}
