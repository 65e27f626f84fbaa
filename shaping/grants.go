package shaping

import "github.com/weirgo/weir/throttle"

// grants are what the limiters of a joint granted together. Few callers need more than four.
type grants struct {
	few  [4]throttle.Grant
	more *[MaxRosters - 4]throttle.Grant // nil: there are no more
}

// newGrants returns room for n grants; nil for one, which needs none.
func newGrants(n int) *grants {
	if n == 1 {
		return nil
	}
	all := new(grants)
	if n > len(all.few) {
		all.more = new([MaxRosters - 4]throttle.Grant)
	}
	return all
}

// at returns where the grant of the i-th roster is.
func (g *grants) at(i int) *throttle.Grant {
	if i < len(g.few) {
		return &g.few[i]
	}
	return &g.more[i-len(g.few)]
}

// of returns the grant of the i-th roster, or that of the only one.
func (g *grants) of(i int, only throttle.Grant) throttle.Grant {
	if g == nil {
		return only
	}
	return *g.at(i)
}
