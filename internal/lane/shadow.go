package lane

import (
	"cmp"
	"slices"
	"sync"

	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// An Outcome is what limits do with a request.
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

// A Shadow decides beside a lane what shadow limits would do with its requests,
// and enforces nothing. It plays through the line that would form in front of
// those limits: a request that would wait departs, for the shadow, at its
// instant, and later requests come after it.
type Shadow struct {
	Limits []throttle.Limit // resolved
	most   int              // most requests in its line

	mu      sync.Mutex
	limiter throttle.Limiter
	last    throttle.Instant   // when the last request departed, for the shadow
	line    []throttle.Instant // departures to come, and some that are past
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
	// An aligned window would be looked for on the wall clock, which cannot be read for the
	// future instants at which a line is played through: windows begin with their first permit.
	unaligned := slices.Clone(resolved)
	for i := range unaligned {
		if unaligned[i].Algorithm == throttle.AlgorithmFixedWindow {
			unaligned[i].Align = throttle.AlignFirstUse
		}
	}
	limiter, err := throttle.Local{}.Limiter("", unaligned...)
	if err != nil {
		return nil, err
	}
	return &Shadow{Limits: resolved, most: cmp.Or(most, shaping.DefaultMaxWaiting), limiter: limiter}, nil
}

// Counts returns what the shadow has counted.
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

// candidate returns what the shadow limits do with a request that arrives now.
func (s *Shadow) candidate(now throttle.Instant, r throttle.Request) Outcome {
	if s.waiting(now) >= s.most {
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

// waiting returns how many requests wait in the shadow's line.
func (s *Shadow) waiting(now throttle.Instant) int {
	over, _ := slices.BinarySearch(s.line, now+1)
	waiting := len(s.line) - over
	if over > waiting {
		s.line = slices.Delete(s.line, 0, over)
	}
	return waiting
}
