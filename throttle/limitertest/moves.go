package limitertest

import (
	"slices"
	"time"

	"github.com/weirgo/weir/throttle"
)

// pick draws one departure of this era, mostly a late one.
func (h *history) pick() (int, bool) {
	n := int64(len(h.ledger.departures))
	if n == 0 {
		return 0, false
	}
	i := n - 1 - min(h.draw(n), h.draw(n))
	return int(i), h.ledger.departures[i].era == h.era && !h.ledger.departures[i].over
}

func (d departure) request() throttle.Request {
	r := throttle.Request{Each: make([]int, len(d.n)), Urgent: true} // it was granted
	for i, n := range d.n {
		r.Each[i] = int(n)
	}
	return r
}

// refund gives one departure back: it never left.
func (h *history) refund() {
	i, found := h.pick()
	if !found {
		return
	}
	h.plain = false
	d := h.ledger.departures[i]
	if h.verbose {
		h.note("Refund(%d, %v)", d.grant.At-h.start, d.n)
	}
	h.limiter.Refund(h.now, d.grant, d.request())
	h.ledger.returned = true
	h.ledger.departures[i].n = make([]int64, len(d.n))
	if age := h.now.Sub(d.grant.At); age >= 0 && age <= h.limiter.Tolerance() && d.grant.At >= h.paused {
		asked := slices.Clone(d.asked)
		for k, n := range d.n {
			if n > 0 {
				asked[k] = 0 // it began no window
			}
		}
		h.ledger.departures[i].asked = asked
	}
}

// settle reports that one cost less, or more, which counts from now on.
func (h *history) settle() {
	i, found := h.pick()
	if !found {
		return
	}
	h.plain = false
	d := h.ledger.departures[i]
	r, actual := d.request(), d.request()
	more := departure{at: h.now, grant: throttle.Grant{At: h.now}, n: make([]int64, len(d.n)), era: h.era, over: true}
	d.n = slices.Clone(d.n)
	for k, n := range d.n {
		if h.now == h.latest && h.draw.chance(30) {
			more.n[k] = h.draw(2*most(h.limits[k]) + 1)
		} else {
			d.n[k] = h.draw(n + 1)
		}
		actual.Each[k] = int(d.n[k] + more.n[k])
	}
	more.asked = more.n
	if h.verbose {
		h.note("Settle(%d, %v, %v)", d.grant.At-h.start, r.Each, actual.Each)
	}
	h.limiter.Settle(h.now, d.grant, r, actual)
	h.ledger.departures[i] = d
	h.ledger.departures = append(h.ledger.departures, more)
}

// pause pauses all callers, or ends the current pause.
func (h *history) pause() {
	h.plain = false
	if h.now < h.paused && h.draw.chance(50) {
		if h.verbose {
			h.note("resume")
		}
		h.limiter.Reconcile(h.now, throttle.Fact{Resumed: true})
		h.paused = h.now
		return
	}
	until := h.now.Add(h.upTo(2 * h.limits[0].Per))
	if h.verbose {
		h.note("pause until %d", until-h.start)
	}
	h.limiter.Reconcile(h.now, throttle.Fact{Until: until})
	h.paused = max(h.paused, until)
}

// tune replaces the limits by others of the same algorithms.
func (h *history) tune() {
	h.plain = false
	limits := slices.Clone(h.limits)
	for i := range limits {
		limits[i] = h.draw.limit(limits[i].Algorithm)
		if h.draw.chance(50) {
			limits[i].Per = h.limits[i].Per
			limits[i].Permits = int(min(int64(limits[i].Permits), int64(limits[i].Per/time.Microsecond)))
		}
	}
	limits = h.draw.reserving(limits)
	if h.verbose {
		h.note("Tune(%v)", limits)
	}
	hands := h.hands()
	if err := h.limiter.Tune(h.now, limits...); err != nil {
		h.fail("limits that validate may be tuned: %v", err)
		return
	}
	if h.failIf("a change grants nothing", h.ledger.broken(h.era, h.limits)); h.broken != "" {
		return
	}
	for i, hand := range h.hands() {
		if len(h.limits) == 1 && hand > max(hands[i], 1)+1e-6 {
			h.fail("a change grants nothing: %g permits of limit %d at hand before it, %g after", hands[i], i, hand)
		}
	}
	h.era++
	h.limits = limits
	h.ledger.tolerance = max(h.ledger.tolerance, h.limiter.Tolerance())
}

func (h *history) failIf(rule, what string) {
	if what != "" {
		h.fail("%s: %s", rule, what)
	}
}

// hands returns how many permits of each limit are at hand.
func (h *history) hands() []float64 {
	hands := make([]float64, len(h.limits))
	for i, s := range h.limiter.State(h.now).Limits {
		hands[i] = s.Headroom
	}
	return hands
}

// look reads the state and sends a probe, which spends nothing.
func (h *history) look() {
	before := h.limiter.State(h.now)
	granted, err := h.limiter.Take(h.now, throttle.Request{})
	if paused := h.now < h.paused; err != nil || paused != (granted.At > h.now) {
		h.fail("a probe passes unless paused: %d, %v, paused %v", granted.At-h.start, err, paused)
	}
	after := h.limiter.State(h.now)
	for i, s := range after.Limits {
		if b := before.Limits[i]; s.Headroom != b.Headroom || s.Next != b.Next {
			h.fail("a probe spends nothing: %+v became %+v", b, s)
		}
		if s.Utilization < 0 {
			h.fail("utilization is not negative: %+v", s)
		}
	}
}
