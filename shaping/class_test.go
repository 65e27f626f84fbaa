package shaping

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/weirgo/weir/throttle"
)

// stood returns a waiter of a cost that has joined the line.
func stood(l *line, u urgency, arrived throttle.Instant, cost float64) *waiter {
	w := &waiter{place: place{arrived, 1}, cost: cost, deadline: throttle.Never}
	w.n = int(cost)
	l.enter(w, u)
	return w
}

// departures lets all callers depart and returns their tenants in that order.
func departures(l *line, names map[*waiter]string) string {
	var order []string
	for w := l.first(); w != nil; w = l.first() {
		l.depart(w)
		order = append(order, names[w])
	}
	return strings.Join(order, " ")
}

func TestTenantsDepartByTheirStarts(t *testing.T) {
	l := &line{share: DefaultLowPriorityShare}
	names := make(map[*waiter]string)
	for i, name := range strings.Fields("a a a a b b") {
		u := urgency{tenant: name, weight: map[string]int{"a": 1, "b": 2}[name]}
		names[stood(l, u, throttle.Instant(i), 1)] = name
	}
	if got, want := departures(l, names), "a b b a a a"; got != want {
		t.Errorf("departed as %s, want %s", got, want)
	}
}

// Of tenants that wait all the time, each has had its share of cost at any time. The error is at
// most the largest cost of one departure of each of two.
func TestTenantsShareByWeight(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := &line{}
		tenants := make(map[string]int)
		for i := range rapid.IntRange(2, 6).Draw(t, "tenants") {
			tenants[fmt.Sprint(i)] = rapid.IntRange(1, 10).Draw(t, "weight")
		}
		largest := rapid.IntRange(1, 20).Draw(t, "largest")
		cost := rapid.IntRange(1, largest)
		names, had, arrived := make(map[*waiter]string), make(map[string]float64), throttle.Instant(0)
		come := func(name string) {
			arrived++
			names[stood(l, urgency{tenant: name, weight: tenants[name]}, arrived, float64(cost.Draw(t, "cost")))] = name
		}
		for name := range tenants {
			for range 2 {
				come(name)
			}
		}
		for range 300 {
			w := l.first()
			l.depart(w)
			had[names[w]] += w.cost / float64(tenants[names[w]])
			come(names[w])
			for one := range tenants {
				for other := range tenants {
					bound := float64(largest)/float64(tenants[one]) + float64(largest)/float64(tenants[other])
					if math.Abs(had[one]-had[other]) > bound+1e-9 {
						t.Fatalf("tenants %s and %s had %g and %g of cost by weight, more than %g apart", one, other, had[one], had[other], bound)
					}
				}
			}
		}
	})
}

func TestFloodDelaysAnotherTenantByOneTurn(t *testing.T) {
	l := &line{}
	for i := range 100_000 {
		stood(l, urgency{tenant: "flood"}, throttle.Instant(i), 1)
	}
	for range 1000 {
		l.depart(l.first())
	}
	other := stood(l, urgency{tenant: "other"}, 200_000, 1)
	for turns := 0; l.first() != other; turns++ {
		if turns == 1 {
			t.Fatal("another tenant's caller waits for more than one turn of the flood")
		}
		l.depart(l.first())
	}
}

// While all classes wait, the less urgent ones have their share of every span of departures, within
// one departure. Among them the earliest caller gets it.
func TestLessUrgentClassesKeepTheirShare(t *testing.T) {
	for _, share := range []float64{0.01, 0.05, 0.3} {
		l := &line{share: share}
		arrived := throttle.Instant(0)
		come := func(p Priority) { arrived++; stood(l, urgency{priority: p}, arrived, 1) }
		for range 50 {
			come(PriorityLow)
			come(PriorityNormal)
		}
		come(PriorityHigh)
		less, longest := 0, throttle.Instant(0)
		for n := 1; n <= 1000; n++ {
			w := l.first()
			p := w.tenant.class.priority
			if p != PriorityHigh {
				if less++; w.arrived < longest {
					t.Fatalf("share %g: departure %d went to a later caller than another", share, n)
				}
				longest = w.arrived
			}
			come(p)
			l.depart(w)
			if want := share * float64(n); math.Abs(float64(less)-want) > 1 {
				t.Fatalf("share %g: %d of %d departures were of less urgent classes, want %g", share, less, n, want)
			}
		}
	}
}

// While any of the less urgent wait, they have their share of every span of departures, within one
// of the largest cost. That holds however the others come and go.
func TestLessUrgentClassesKeepTheirShareThroughGaps(t *testing.T) {
	const largest = 3
	rapid.Check(t, func(t *rapid.T) {
		l := &line{share: rapid.SampledFrom([]float64{0.02, 0.05, 0.3, 0.5}).Draw(t, "share")}
		arrived := throttle.Instant(0)
		cost := rapid.IntRange(1, largest)
		come := func(p Priority) *waiter {
			arrived++
			tenant := rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "tenant")
			return stood(l, urgency{priority: p, tenant: tenant}, arrived, float64(cost.Draw(t, "cost")))
		}
		come(PriorityLow)
		owed, least := 0.0, 0.0 // missing cost of the less urgent since the start
		for range 300 {
			switch rapid.IntRange(0, 3).Draw(t, "who comes") {
			case 0:
				come(PriorityNormal)
			case 1, 2:
				come(PriorityHigh)
			}
			come(PriorityLow) // some always wait
			w := l.first()
			if w.tenant.class.priority == PriorityHigh {
				owed += w.cost * l.share
			} else {
				owed -= w.cost * (1 - l.share)
			}
			l.depart(w)
			if least = min(least, owed); owed-least > largest {
				t.Fatalf("the less urgent are owed %g of cost, want %d at most", owed-least, largest)
			}
		}
	})
}

// No valid share deprives the less urgent of their turn by mistake.
func TestLowPriorityShareIsWithinBounds(t *testing.T) {
	for set, want := range map[float64]float64{
		0: DefaultLowPriorityShare, 0.3: 0.3, 0.7: 0.5, 2: 0.5, math.Inf(1): 0.5,
		-1: 0, math.Inf(-1): 0, math.NaN(): DefaultLowPriorityShare,
	} {
		q := Queue{Line: Line{LowPriorityShare: set}}
		if got := q.lowPriorityShare(); got != want {
			t.Errorf("LowPriorityShare %g is taken for %g, want %g", set, got, want)
		}
	}
}

func TestNothingIsOwedForATimeInWhichNobodyWaited(t *testing.T) {
	l := &line{share: 0.05}
	for i := range 100 {
		stood(l, urgency{priority: PriorityHigh}, throttle.Instant(i), 1)
	}
	for range 50 {
		l.depart(l.first())
	}
	low := stood(l, urgency{priority: PriorityLow}, 1000, 1)
	for n := range 19 {
		if l.first() == low {
			t.Fatalf("the less urgent caller departed after %d departures of the urgent, want 19", n)
		}
		l.depart(l.first())
	}
	if l.first() != low {
		t.Error("the less urgent caller did not go after 19 departures of the urgent")
	}
}

// A line yields its callers in the order of departure, and is not changed.
func TestLineReportsItsOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := &line{share: rapid.SampledFrom([]float64{0, 0.05, 0.5}).Draw(t, "share")}
		var all []*waiter
		for i := range rapid.IntRange(1, 40).Draw(t, "callers") {
			u := urgency{
				priority: Priority(rapid.IntRange(-1, 1).Draw(t, "class")),
				tenant:   rapid.SampledFrom([]string{"", "a", "b", "c"}).Draw(t, "tenant"),
			}
			// The tenant's weight must not change meanwhile.
			u.weight = map[string]int{"": 1, "a": 1, "b": 2, "c": 5}[u.tenant]
			all = append(all, stood(l, u, throttle.Instant(i), float64(rapid.IntRange(1, 5).Draw(t, "cost"))))
			switch rapid.IntRange(0, 4).Draw(t, "then") {
			case 0:
				l.depart(l.first())
			case 1:
				for range min(l.count-1, 5) {
					l.depart(l.first())
				}
			case 2:
				if w := rapid.SampledFrom(all).Draw(t, "who leaves"); w.index > 0 {
					l.leave(w)
				}
			}
		}
		var yielded []int
		for r := range l.requests() {
			yielded = append(yielded, r.N)
		}
		var departed []int
		for l.count > 0 {
			w := l.first()
			departed = append(departed, w.n)
			l.depart(w)
		}
		if !slices.Equal(yielded, departed) {
			t.Fatalf("yielded %v, departed %v", yielded, departed)
		}
	})
}

// A weight of any size leaves with its tenant: the others share as before.
func TestAnyWeightLeavesTheOthersTheirShares(t *testing.T) {
	l, names := &line{}, make(map[*waiter]string)
	come := func(tenant string, weight, n int) {
		for i := range n {
			names[stood(l, urgency{tenant: tenant, weight: weight}, throttle.Instant(i+1), 1)] = tenant
		}
	}
	come("most", math.MaxInt, 1)
	come("a", 1, 4)
	l.depart(l.first()) // most
	l.depart(l.first())
	come("b", 2, 4)
	if got, want := departures(l, names), "a b b a b b a"; got != want {
		t.Errorf("departed %s, want %s", got, want)
	}
	if l.normal.weights != 0 {
		t.Errorf("the line is empty, with weights of %v", l.normal.weights)
	}
}

// Names come and go beside as many kept ones. All of those are checked once in that many names, not
// for each.
func TestTenantsAreForgottenManyAtATime(t *testing.T) {
	l, looks := &line{}, 0
	for i := range idleTenants - 1 {
		stood(l, urgency{tenant: fmt.Sprint("stays ", i)}, 0, 1)
	}
	for i := range 2 * idleTenants {
		before := len(l.normal.named)
		l.leave(stood(l, urgency{tenant: fmt.Sprint("goes ", i)}, throttle.Instant(i+1), 1))
		if len(l.normal.named) <= before {
			looks++
		}
	}
	if looks > 3 {
		t.Errorf("%d names were looked at %d times for as many others, want 3 times at most", idleTenants, looks)
	}
}

func TestTenantsAreForgotten(t *testing.T) {
	l := &line{}
	stays := stood(l, urgency{tenant: "stays"}, 0, 1) // so the line is never empty
	for i := range 10 * idleTenants {
		w := stood(l, urgency{tenant: fmt.Sprint("t", i)}, throttle.Instant(i+1), 1)
		l.depart(w)
	}
	if n := len(l.normal.named); n > 2*idleTenants {
		t.Errorf("%d tenants are remembered, want at most %d", n, 2*idleTenants)
	}
	l.depart(stays)
	if l.normal.named != nil || l.normal.now != 0 || len(l.classes) != 0 {
		t.Error("an empty line remembers")
	}
}
