package weir

import (
	"cmp"
	"slices"
	"sync"

	"github.com/weirgo/weir/throttle"
)

// maxKnown is how many lists of limits are known at a time: as many as there
// are tiers, usually.
const maxKnown = 16

// A resolved is a list of limits as it was given, and resolved.
type resolved struct {
	given  []throttle.Limit
	limits *[]throttle.Limit // nil: nothing is known
}

// A resolver resolves lists of limits. The zero value knows none. It is safe for
// concurrent use.
type resolver struct {
	mu    sync.Mutex
	known [maxKnown]resolved
	next  int // of known: the next to be replaced
}

// resolve returns the limits resolved. Lanes of the same limits share one list:
// a million lanes need not have a million.
func (r *resolver) resolve(given []throttle.Limit) (*[]throttle.Limit, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, k := range r.known {
		if k.limits != nil && slices.Equal(k.given, given) {
			return k.limits, nil
		}
	}
	limits, err := throttle.Resolve(given...)
	if err != nil {
		return nil, err
	}
	r.known[r.next] = resolved{slices.Clone(given), &limits}
	r.next = (r.next + 1) % maxKnown
	return &limits, nil
}

// unitOf returns the unit of a limit; the zero unit is "requests".
func unitOf(l throttle.Limit) string { return cmp.Or(l.Unit, "requests") }

// labelOf returns what a user calls the limit that has the name.
func labelOf(limits []throttle.Limit, name string) string {
	for _, limit := range limits {
		if limit.Name == name {
			return limit.Label()
		}
	}
	return name // the limits have changed meanwhile, or there is none
}
