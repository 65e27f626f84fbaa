package lane

import (
	"cmp"
	"slices"
	"sync"

	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// An Outcome is the decision of limits on a request.
type Outcome uint8

// The outcomes.
const (
	Admitted Outcome = iota // it departed at once
	Held                    // it had to wait
	Rejected                // it never departed: the line was full, the wait too long or the cost too great
)

// Counts are numbers of requests, by the outcome of the enforced limits and by
// that of the shadow limits.
type Counts [3][3]uint64

// A Shadow computes what shadow limits would do with a lane's requests, and enforces nothing. It
// simulates the line in front of those limits: a request that would wait departs, in the shadow, at
// its instant, and later requests follow it.
type Shadow struct {
	Limits []throttle.Limit // resolved
	most   int              // most requests in its line

	mu      sync.Mutex
	limiter throttle.Limiter
	last    throttle.Instant   // when the last request departed, in the shadow
	line    []throttle.Instant // future departures
	seen    Counts
}

// newShadow returns the shadow of the limits, with at most that many requests
// in its line. If there are no limits, it returns nil.
func newShadow(limits []throttle.Limit, most int) (*Shadow, error) {
	if len(limits) == 0 {
		return nil, nil
	}
	resolved, err := throttle.Resolve(limits...)
	if err != nil {
		return nil, err
	}
	// An aligned window would be looked up on the wall clock, which cannot be read for future
	// instants of the simulated line: windows begin with their first permit.
	unaligned := slices.Clone(resolved)
	for i := range unaligned {
		if unaligned[i].Algorithm == throttle.AlgorithmFixedWindow {
			unaligned[i].Align = throttle.AlignFirstUse
		}
	}
	limiter, err := throttle.Local{}.Limiter("", unaligned...)
	return &Shadow{Limits: resolved, most: cmp.Or(max(most, 0), shaping.DefaultMaxWaiting), limiter: limiter}, err
}

// Counts returns the shadow's counts.
func (s *Shadow) Counts() Counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen
}

// Decide counts one request that arrived at an instant. The lane's own limits have decided
// live. It returns what the shadow limits decide.
func (s *Shadow) Decide(now throttle.Instant, r throttle.Request, live Outcome) (candidate Outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	candidate = s.candidate(now, r)
	s.seen[live][candidate]++
	return candidate
}

// candidate returns the shadow limits' decision on a request that arrives now.
func (s *Shadow) candidate(now throttle.Instant, r throttle.Request) Outcome {
	over, _ := slices.BinarySearch(s.line, now+1)
	if s.line = s.line[over:]; len(s.line) >= s.most {
		return Rejected
	}
	r.Since = now
	at := max(now, s.last)
	for {
		next, err := s.limiter.Take(at, r)
		if err != nil || next.At == throttle.Never {
			return Rejected
		}
		if next.At <= at {
			break
		}
		at = next.At
	}
	s.last = at
	if at <= now {
		return Admitted
	}
	s.line = append(s.line, at)
	return Held
}
