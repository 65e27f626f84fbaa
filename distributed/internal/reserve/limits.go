package reserve

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/weirgo/weir/distributed/internal/script"
	"github.com/weirgo/weir/throttle"
)

// mostLimits bounds the limits of a lane: every call sends all of them.
const mostLimits = 100

// A limitSet is the limits of a lane and what follows from them.
type limitSet struct {
	limits    []throttle.Limit
	encoded   *script.EncodedLimits // never written: a call holds it
	keys      []any                 // as words of a command
	rates     []float64             // permits per second of each limit
	windows   bool                  // at least one limit counts in windows
	slow      bool                  // at least one is a slow bucket
	tolerance time.Duration
	asked     []int64 // the memory of costs
}

// newLimitSet resolves the limits of the lane of a key.
func newLimitSet(key string, limits []throttle.Limit) (limitSet, error) {
	if len(limits) > mostLimits {
		return limitSet{}, fmt.Errorf("%d limits are more than %d", len(limits), mostLimits)
	}
	resolved, err := throttle.Resolve(limits...)
	if err != nil {
		return limitSet{}, err
	}
	encoded, err := script.EncodeLimits(promising(resolved))
	if err != nil {
		return limitSet{}, err
	}
	s := limitSet{limits: resolved, encoded: encoded, keys: boxed(encoded.Keys(key)), tolerance: throttle.Tolerance(resolved...)}
	for i, limit := range resolved {
		s.rates = append(s.rates, limit.PerSecond())
		s.windows = s.windows || encoded.Limits[i].Windows()
		s.slow = s.slow || encoded.Limits[i].Slow()
	}
	return s, nil
}

// promisedFor is the time for which a bucket beside limits that reserve permits leaves permits.
const promisedFor = 100 * time.Millisecond

// promising returns limits with what other than urgent requests leave, if one reserves permits.
func promising(limits []throttle.Limit) []throttle.Limit {
	out := slices.Clone(limits)
	if slices.ContainsFunc(limits, func(l throttle.Limit) bool { return l.Reserved() > 0 }) {
		for i, l := range limits {
			out[i].Reserve = throttle.Part(strconv.Itoa(leaves(l)))
		}
	}
	return out
}

// leaves returns how many permits other than urgent requests leave. A bucket that reserves none
// leaves half of its burst, or what it earns in promisedFor: permits may be promised for so long
// ahead, and urgent requests can still go at once. At 200/s burst 20 it is 10, for 45 ms.
func leaves(l throttle.Limit) int {
	if e := l.Enforced(); l.Reserved() == 0 && (e.Algorithm == throttle.AlgorithmTokenBucket || e.Algorithm == throttle.AlgorithmGCRA) {
		return min(e.Burst/2, 2+int(e.PerSecond()*promisedFor.Seconds()))
	}
	return l.Reserved()
}

// costs returns what a request asks of each limit, until it is called again.
func (s *limitSet) costs(r *throttle.Request) []int64 {
	s.asked = s.encoded.Costs(r, s.asked[:0])
	return s.asked
}

// check returns an error for a request that can never be granted, or that the
// script cannot count.
func (s *limitSet) check(r *throttle.Request) error {
	if r.N < 0 {
		return fmt.Errorf("distributed: %d permits are negative", r.N)
	}
	c := s.costs(r)
	for i := range s.limits {
		if err := s.limits[i].CheckRequest(throttle.Request{N: int(c[i]), Urgent: r.Urgent}, 0); err != nil {
			return err
		}
	}
	return s.encoded.Check(c)
}

// slowest returns the name of the limit that such a request takes longest to earn.
func (s *limitSet) slowest(c []int64) string {
	name, longest := "", 0.0
	for i, rate := range s.rates {
		if t := float64(c[i]) / rate; t > longest {
			name, longest = s.limits[i].Name, t
		}
	}
	return name
}

// boxed returns keys as words of a command.
func boxed(keys []string) []any {
	words := make([]any, len(keys))
	for i, key := range keys {
		words[i] = key
	}
	return words
}

// configured returns the limits without the one that was learned.
func (s *limitSet) configured() []throttle.Limit {
	if n := len(s.limits); s.encoded != nil && s.encoded.Learned {
		return slices.Clone(s.limits[:n-1])
	}
	return s.limits
}

// learn makes the limit of an interval the last one, in place of the learned one before.
func (s *limitSet) learn(interval time.Duration) {
	limits, limit := s.configured(), script.LearnedLimit(interval)
	s.limits, s.rates = append(slices.Clip(limits), limit), append(s.rates[:len(limits)], limit.PerSecond())
	if !s.encoded.Learned {
		s.encoded = s.encoded.Learning()
	}
	if s.tolerance = throttle.Tolerance(s.limits...); interval <= time.Microsecond { // it lets everything go
		s.tolerance = throttle.Tolerance(limits...)
	}
}
