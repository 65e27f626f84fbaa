package distributed

import (
	"slices"

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
	ahead bool    // asked for before anybody was in line
	free  bool    // nobody in line asks for as much as it is for: anybody may have it
}

// A hand is the permits that were fetched and not spent, in order.
type hand []permit

// hold puts permits in hand.
func (h *hand) hold(p permit) {
	i := len(*h)
	for i > 0 && (*h)[i-1].at > p.at {
		i--
	}
	*h = slices.Insert(*h, i, p)
}

// find returns the place of the first permit that covers the costs; -1 if none does.
func (h hand) find(costs script.Costs) int {
	return slices.IndexFunc(h, func(p permit) bool { return costs.Within(p.costs) })
}

// own returns the place of the first permit for a caller of the costs; -1 if there is
// none. Permits are anonymous, so it need not have been fetched for this caller. But one
// for other costs is for others, unless the caller is alone: if a call of 1 takes a permit
// for 10, the other 9 are lost.
func (h hand) own(costs script.Costs, alone bool) int {
	return slices.IndexFunc(h, func(p permit) bool {
		return costs.Equal(p.costs) || (alone || p.free) && costs.Within(p.costs)
	})
}

// next returns the instant of the first permit after an instant, or Never if no permit is later.
func (h hand) next(after throttle.Instant) throttle.Instant {
	for i := range h {
		if h[i].at > after {
			return h[i].at
		}
	}
	return throttle.Never
}

// within reports whether a permit in hand costs no more than most.
func (h hand) within(most []int64) bool {
	return slices.ContainsFunc(h, func(p permit) bool {
		for i, n := range p.costs {
			if n > most[i] {
				return false
			}
		}
		return true
	})
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

// redate dates what is in hand by the difference of the clocks in force. It was
// dated later than what comes now: both together would depart at more than the rate.
func (h hand) redate(c *call.Clock) {
	for i := range h {
		h[i].at = c.Here(h[i].there)
	}
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
	i := 0
	for i < len(*h) && (*h)[i].at < at {
		i++
	}
	if i == 0 {
		return nil
	}
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
