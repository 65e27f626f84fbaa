package lane

import (
	"cmp"
	"slices"
	"sync"

	"github.com/weirgo/weir/throttle"
)

// maxKnown is how many lists of limits a resolver remembers. There are rarely
// more tiers.
const maxKnown = 16

// A resolved is a list of limits as it was given, with the same list resolved.
type resolved struct {
	given  []throttle.Limit
	limits *[]throttle.Limit // nil: the place is free
}

// A resolver resolves lists of limits. The zero value is ready to use. It is
// safe for concurrent use.
type resolver struct {
	mu    sync.Mutex
	known [maxKnown]resolved
	next  int // index in known of the entry that is replaced next
}

// resolve returns the resolved limits. Lanes with the same limits share one
// list, because there may be a million such lanes.
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

// labelOf returns the label, for users, of the limit with that name. It returns
// the name itself if the limits have changed meanwhile, or if it is empty.
func labelOf(limits []throttle.Limit, name string) string {
	for _, limit := range limits {
		if limit.Name == name {
			return limit.Label()
		}
	}
	return name // the limits have changed meanwhile, or there is none
}
