package hostlocal

import (
	"fmt"
	"slices"
	"time"

	"github.com/weirgo/weir/throttle"
)

// A union is the limits in force: those of all processes that used the lane recently, and the
// learned pace as the last. So the strictest are enforced. If all processes have the same limits,
// it is just those.
type union struct {
	limits  []throttle.Limit
	back    []int // for each limit of this process, the index in limits
	plain   bool  // limits are those of this process, in their order
	differs bool  // another process has a limit that this one has not

	texts    []string // of the claims
	interval int64    // of the learned pace, the last of limits, in nanoseconds; zero: none
}

// learnedName is the name of the learned limit.
const learnedName = "learned"

// holds reports whether the union is that of a state.
func (u *union) holds(s *state) bool {
	return u.texts != nil && u.interval == s.learned.interval &&
		slices.EqualFunc(u.texts, s.claims, func(text string, c claim) bool { return text == c.limits })
}

// unionOf returns the union of a state, for a process with its own limits. All processes
// get the same limits in the same order.
func unionOf(s *state, own []throttle.Limit) union {
	u := union{interval: s.learned.interval, texts: []string{}}
	for i := range s.claims {
		u.texts = append(u.texts, s.claims[i].limits)
		claimed := s.claims[i].parse()
		for j, at := range u.places(claimed) {
			if l := claimed[j]; at < 0 {
				l.Name = u.free(l.Name)
				u.limits = append(u.limits, l)
			}
		}
	}
	u.back = u.places(own)
	for i := range u.limits {
		u.differs = u.differs || u.own(i) < 0
	}
	u.plain = slices.Equal(u.limits, own) && u.interval == 0
	if u.interval > 0 {
		u.limits = append(u.limits, throttle.TokenBucket(1, time.Duration(u.interval), 1).Named(u.free(learnedName)))
	}
	return u
}

// own returns the index of one of the limits among those of this process; -1: it has not that limit.
func (u *union) own(i int) int { return slices.Index(u.back, i) }

// places returns the indices of limits in the union, each its own; -1 if there is none.
func (u *union) places(limits []throttle.Limit) []int {
	taken := make([]bool, len(u.limits))
	places := make([]int, len(limits))
	for j, l := range limits {
		places[j] = -1
		for i, o := range u.limits {
			if l.Name = o.Name; !taken[i] && o == l { // equal except for the name
				places[j], taken[i] = i, true
				break
			}
		}
	}
	return places
}

// free returns a name that no limit has: the given one, if it is free.
func (u *union) free(name string) string {
	for i := 1; slices.ContainsFunc(u.limits, func(l throttle.Limit) bool { return l.Name == name }); i++ {
		name = fmt.Sprintf("other-%d", len(u.limits)+i)
	}
	return name
}

// request returns a request for the limits of a union. A limit that this process lacks is charged
// the cost of its unit here, but no more than it ever grants.
func (u *union) request(r throttle.Request, own []throttle.Limit) throttle.Request {
	if u.plain {
		return r
	}
	calls := r.ID != 0 || r.N > 0 || slices.ContainsFunc(r.Each, func(n int) bool { return n > 0 })
	costs := make([]int, len(u.limits))
	for i, l := range u.limits {
		switch {
		case u.own(i) >= 0:
			costs[i] = r.Of(u.own(i))
		case u.interval > 0 && i == len(costs)-1:
			costs[i] = int(asNumber(calls))
		default:
			costs[i] = foreign(l, r, own)
		}
	}
	r.Each = costs
	return r
}

// foreign returns what a request costs of a limit that only other processes have.
func foreign(l throttle.Limit, r throttle.Request, own []throttle.Limit) int {
	n := 0
	if len(own) == 0 {
		n = r.N
	}
	for i, o := range own {
		if o.Unit == l.Unit {
			n = max(n, r.Of(i))
		}
	}
	for _, n = range [...]int{n, l.Capacity(), l.Capacity() - l.Reserved()} {
		if l.CheckRequest(throttle.Request{N: n, Urgent: r.Urgent}, 0) == nil {
			break
		}
	}
	return n
}
