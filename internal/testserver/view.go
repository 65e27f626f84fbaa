package testserver

import (
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"
)

// A View changes a decision before a style sees it: vendors mean different things by the same
// fields, and some report wrong numbers. It does not modify its argument.
type View func(Decision) Decision

// Seen returns the style of decisions that pass through the views in order.
func Seen(s Style, views ...View) Style {
	return func(h http.Header, d Decision) {
		for _, view := range views {
			d = view(d)
		}
		s(h, d)
	}
}

// UntilNext makes the reset the time until one permit more.
func UntilNext(d Decision) Decision {
	return d.with(func(s *Standing) { s.Reset = s.Next })
}

// UntilFree makes the reset the time until a call would be granted: zero while
// any is left (Contentful; Auth0, whose reset of a bucket is often in the past).
func UntilFree(d Decision) Decision {
	return d.with(func(s *Standing) {
		if s.Reset = s.Next; s.Remaining > 0 {
			s.Reset = 0
		}
	})
}

// Of returns the view of the limits that count a unit.
func Of(unit string) View {
	return func(d Decision) Decision {
		d.Standings = slices.DeleteFunc(slices.Clone(d.Standings), func(s Standing) bool { return s.Limit.Unit != unit })
		return d
	}
}

// NoReset leaves the reset out.
func NoReset(d Decision) Decision {
	return d.with(func(s *Standing) { s.Reset = -1 })
}

// RateAsLimit makes the limit of a token bucket its permits in each Per, and
// not its burst.
func RateAsLimit(d Decision) Decision {
	return d.with(func(s *Standing) {
		if s.Limit.kind == tokenBucket {
			s.Limit.Burst = s.Limit.Permits
		}
	})
}

// TwoNodes returns the view of a vendor that answers from two nodes, drawn for each answer. One
// reports what is left. The other has missed some calls, and reports up to a share of the quota
// more.
func TwoNodes(share float64) View {
	return func(d Decision) Decision {
		if rand.N(2) == 0 {
			return d
		}
		return d.with(func(s *Standing) {
			quota := s.Limit.Quota()
			s.Remaining = min(quota, s.Remaining+int(rand.Float64()*share*float64(quota)+0.5))
		})
	}
}

// Stale returns the view of a vendor that reports, with a probability, the standing of its limits
// some time ago.
func Stale(probability float64, age time.Duration) View {
	var mu sync.Mutex
	var past []Decision // by time, the first at most age old but for one
	return func(d Decision) Decision {
		mu.Lock()
		defer mu.Unlock()
		past = append(past, d)
		then := d.Now.Add(-age)
		for len(past) > 1 && !past[1].Now.After(then) {
			past = past[1:]
		}
		if rand.Float64() < probability {
			d.Standings = past[0].Standings
		}
		return d
	}
}

// with returns the decision with its standings changed.
func (d Decision) with(change func(*Standing)) Decision {
	d.Standings = slices.Clone(d.Standings)
	for i := range d.Standings {
		change(&d.Standings[i])
	}
	return d
}
