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
type resolved struct{ given, limits []throttle.Limit }

// A resolver resolves lists of limits. The zero value is ready to use. It is
// safe for concurrent use.
type resolver struct {
	mu    sync.Mutex
	known []*resolved // the newest is last
}

// resolve returns the resolved limits. Lanes with the same limits share one
// list, because there may be a million such lanes.
func (r *resolver) resolve(given []throttle.Limit) (*[]throttle.Limit, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, k := range r.known {
		if slices.Equal(k.given, given) {
			return &k.limits, nil
		}
	}
	limits, err := throttle.Resolve(given...)
	if err != nil {
		return nil, err
	}
	if len(r.known) == maxKnown {
		r.known = slices.Delete(r.known, 0, 1)
	}
	k := &resolved{slices.Clone(given), limits}
	r.known = append(r.known, k)
	return &k.limits, nil
}

// unitOf returns the unit of a limit; the zero unit is "requests".
func unitOf(l throttle.Limit) string { return cmp.Or(l.Unit, "requests") }
