package weir

import (
	"sync"

	"github.com/weirgo/weir/throttle"
)

// An Outcome is what limits do with a request.
type Outcome uint8

// The outcomes.
const (
	Admitted Outcome = iota // let it go at once
	Held                    // let it wait
	Refused                 // never let it go
)

// String returns the outcome's word: "admit", "wait" or "reject".
func (o Outcome) String() string { return [...]string{"admit", "wait", "reject"}[o] }

// A ShadowCount counts the requests on which the enforced limits and the
// shadow limits came to these outcomes. They agree where Live is Candidate.
type ShadowCount struct {
	Live, Candidate Outcome
	Requests        uint64
}

// A shadow decides beside a lane what Transport.Shadow would do with its
// requests, and enforces nothing. The line that would form in front of the
// shadow limits is played through: a request that would wait departs, for the
// shadow, at its instant, and later ones come after it.
type shadow struct {
	limits []throttle.Limit // resolved

	mu      sync.Mutex
	limiter throttle.Limiter
	last    throttle.Instant // departure of the last request, for the shadow
	seen    [3][3]uint64
}

// newShadow returns the shadow of the limits; nil where there are none.
func newShadow(limits []throttle.Limit) (*shadow, error) {
	if len(limits) == 0 {
		return nil, nil
	}
	resolved, err := throttle.Resolve(limits...)
	if err != nil {
		return nil, err
	}
	limiter, err := throttle.Local{}.Limiter("", resolved...)
	if err != nil {
		return nil, err
	}
	return &shadow{limits: resolved, limiter: limiter}, nil
}

// decide counts one request that arrived now.
func (s *shadow) decide(now throttle.Instant, r throttle.Request, live Outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen[live][s.candidate(now, r)]++
}

func (s *shadow) candidate(now throttle.Instant, r throttle.Request) Outcome {
	r.Since = now
	at := max(now, s.last)
	for {
		next, err := s.limiter.Take(at, r)
		if err != nil {
			return Refused
		}
		if next <= at {
			break
		}
		at = next
	}
	s.last = at
	if at > now {
		return Held
	}
	return Admitted
}

func (s *shadow) counts() (counts []ShadowCount) {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for live := range s.seen {
		for candidate, n := range s.seen[live] {
			if n > 0 {
				counts = append(counts, ShadowCount{Outcome(live), Outcome(candidate), n})
			}
		}
	}
	return counts
}
