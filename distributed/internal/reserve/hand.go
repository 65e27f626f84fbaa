package reserve

import (
	"cmp"
	"slices"
	"sort"

	"github.com/weirgo/weir/distributed/internal/call"
	"github.com/weirgo/weir/distributed/internal/script"
	"github.com/weirgo/weir/throttle"
)

// A permit is the right of so many requests, each of the same costs, to depart at one
// instant.
type permit struct {
	at    throttle.Instant // by the queue's clock
	there int64            // by that of Redis, in microseconds
	count int
	costs []int64 // of one, of each limit; shared, never written
	first int64   // the ordinal of the first of them; zero: the store does not count
	of    int64   // the generation of the state that counts it; zero: one that was lost
	ahead bool    // asked for before a caller was in line, or while another limiter held it
	free  bool    // for any caller, because no caller in line asks for as much
}

// A hand is the permits that were fetched and not spent, in order.
type hand []permit

// hold puts permits in hand.
func (h *hand) hold(p permit) {
	*h = slices.Insert(*h, h.from(p.at+1), p)
}

// from returns the place of the first permit dated at an instant or later.
func (h hand) from(at throttle.Instant) int {
	return sort.Search(len(h), func(i int) bool { return h[i].at >= at })
}

// find returns the place of the first permit that covers the costs; -1 if none does.
func (h hand) find(costs []int64) int {
	return slices.IndexFunc(h, func(p permit) bool { return within(costs, p.costs) })
}

// own returns the place of the first permit for a caller of the costs, or -1. Permits are
// anonymous, so it need not have been fetched for this caller. But a permit for other costs is
// for others: if a call of 1 takes a permit for 10, the other 9 are lost.
func (h hand) own(costs []int64) int {
	return slices.IndexFunc(h, func(p permit) bool {
		return script.Serves(p.costs, costs) || p.free && within(costs, p.costs)
	})
}

// next returns the instant of the first permit after an instant, or Never if no permit is later.
func (h hand) next(after throttle.Instant) throttle.Instant {
	if i := h.from(after + 1); i < len(h) {
		return h[i].at
	}
	return throttle.Never
}

// within reports whether no limit is asked for more than most.
func within(costs, most []int64) bool {
	for i, n := range costs {
		if n > most[i] {
			return false
		}
	}
	return true
}

// take spends one permit.
func (h *hand) take(i int) permit {
	p := (*h)[i]
	if p.count--; p.count > 0 {
		(*h)[i].count = p.count
		if p.first > 0 {
			(*h)[i].first++
		}
	} else {
		*h = slices.Delete(*h, i, i+1)
	}
	p.count = 1
	return p
}

// redate dates the permits in hand by the difference of the clocks in force, if that is earlier. They
// were dated later than the permits that come now, and both together would exceed the rate. Permits
// from before a step of Redis's clock keep their instants.
func (h hand) redate(c *call.Clock) {
	for i := range h {
		h[i].at = min(h[i].at, c.Here(h[i].there))
	}
	slices.SortStableFunc(h, func(a, b permit) int { return cmp.Compare(a.at, b.at) })
}

// all takes out every permit.
func (h *hand) all() []permit { return h.before(throttle.Never) }

// after reports whether the first permit is dated after an instant.
func (h hand) after(at throttle.Instant) bool { return len(h) > 0 && h[0].at > at }

// count returns how many permits are in hand.
func (h hand) count() int {
	n := 0
	for i := range h {
		n += h[i].count
	}
	return n
}

// before takes out the permits dated before an instant.
func (h *hand) before(at throttle.Instant) []permit {
	i := h.from(at)
	out := slices.Clone((*h)[:i])
	*h = slices.Delete(*h, 0, i)
	return out
}

// until takes out the permits up to an ordinal.
func (h *hand) until(ordinal int64) (out []permit) {
	*h = slices.DeleteFunc(*h, func(p permit) bool {
		past := p.first > 0 && p.first <= ordinal
		if past {
			out = append(out, p)
		}
		return past
	})
	return out
}
