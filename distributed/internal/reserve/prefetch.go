package reserve

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/weirgo/weir/distributed/internal/call"
	"github.com/weirgo/weir/distributed/internal/script"
	"github.com/weirgo/weir/throttle"
)

// A pace is how fast callers depart here. Its arithmetic takes the instant. The zero pace
// has seen no departure.
type pace struct {
	last  throttle.Instant // departure
	gap   time.Duration    // between two departures, smoothed
	count int              // of departures at the pace, up to paceSteady
	costs []int64          // of each of them
}

const (
	paceSteady = 16                     // so many callers in a row must ask for the same before more are expected; the gap is smoothed over as many
	paceQuiet  = 8                      // a silence of so many gaps ends a pace: if callers come at random, one gap in 3,000 is as long
	paceStall  = 10 * time.Millisecond  // no shorter silence ends it: processes and timers are late
	paceSlow   = 100 * time.Millisecond // each longer silence ends it
)

// saw applies a departure.
func (p *pace) saw(now throttle.Instant, costs []int64) {
	gap := max(now.Sub(p.last), 0)
	if p.count == 0 || !slices.Equal(costs, p.costs) || p.quiet(now) {
		*p = pace{last: now, count: 1, costs: costs}
		return
	}
	p.gap += (gap - p.gap) / time.Duration(p.count)
	p.last, p.count = max(p.last, now), min(p.count+1, paceSteady)
}

// quiet reports whether the last departure is so long ago that no caller is expected.
func (p *pace) quiet(now throttle.Instant) bool {
	longest := paceSlow
	if p.count > 1 {
		longest = min(longest, max(paceQuiet*p.gap, paceStall))
	}
	return now.Sub(p.last) > longest
}

const (
	aheadShare    = 4  // a run ahead of callers takes at most a fourth of a burst from other replicas
	aheadLeast    = 4  // so many callers must be expected in the time of a run
	aheadInstants = 32 // a run has at most so many instants: each costs the script a microsecond
)

// foresight returns for how long permits are asked for ahead of callers; zero: they are
// not.
func (l *Limiter) foresight(now throttle.Instant) time.Duration {
	p, set := &l.demand.pace, &l.Hub.Set
	if set.Prefetch == 0 || !l.encoded.Usual || len(p.costs) != len(l.limits) || p.count < paceSteady || p.gap <= 0 || p.quiet(now) {
		return 0
	}
	ahead := min(set.Prefetch, set.Horizon, atHand*p.gap)
	for i, limit := range l.limits {
		spare := float64(limit.Capacity()-int(p.costs[i])) / l.rates[i] / aheadShare
		ahead = min(ahead, time.Duration(spare*float64(time.Second)))
	}
	if ahead < aheadLeast*p.gap || l.tolerance < p.gap {
		return 0
	}
	return ahead
}

// prefetch calls for permits ahead of callers, if the demand here is steady and the permits
// in hand end within a round trip and two callers.
func (l *Limiter) prefetch(now throttle.Instant) {
	if l.demand.waiting || l.Underway || l.Lost || l.Closed || now < max(l.paused, l.demand.spent) {
		return
	}
	ahead := l.foresight(now)
	if ahead == 0 {
		return
	}
	from, gap := now, l.demand.pace.gap
	if n := len(l.hand); n > 0 {
		from = max(now, l.hand[n-1].at)
	}
	if from.Sub(now) > l.Trip.Usual()+2*gap || l.scarce(now) {
		return
	}
	if groups := l.expected(now, from, ahead); len(groups) > 0 {
		l.demand.spent = now.Add(ahead / aheadLeast)
		l.start(groups)
	}
}

// scarce reports whether a limit had no permit at hand at the last reply.
func (l *Limiter) scarce(now throttle.Instant) bool {
	return slices.ContainsFunc(l.known.next, func(next throttle.Instant) bool { return next > now })
}

// expected returns the callers that are expected in a time after the instant from, each at its
// instant. They may be early or late, so some permits are in stock: as many as are used in
// three quarters of the tolerance. At 700/s, 20 ms ahead, if 2 of those in hand are left then:
//
//	3 at once, and one after 1.4 ms, 2.9 ms, ... 20 ms
func (l *Limiter) expected(now, from throttle.Instant, ahead time.Duration) []script.Group {
	gap, costs := l.demand.pace.gap, l.demand.pace.costs
	stock, run := int(min(l.tolerance*3/4, ahead)/gap), int(ahead/gap) // the rest of the tolerance is for what comes late
	left := max(l.hand.count()-int(from.Sub(now)/gap), 0)
	lack := max(stock-left, 0)
	more := run - max(left-stock, 0)
	if more < run/2 {
		return nil
	}
	req := &l.flight.request
	req.Groups, l.flight.dated = req.Groups[:0], false
	req.Latest, req.Most = from.Sub(now)+ahead+gap, lack+more
	age := min(now.Sub(from), -time.Microsecond)
	if lack > 0 {
		req.Groups = append(req.Groups, script.Group{Count: lack, Age: age, Costs: costs})
	}
	instants := min(more, aheadInstants)
	for i := range instants {
		n := (i+1)*more/instants - i*more/instants
		wait := ahead * time.Duration(i+1) / time.Duration(instants)
		req.Groups = append(req.Groups, script.Group{Count: n, Age: age - wait, Costs: costs})
	}
	return req.Groups
}

// keep keeps the permits in hand while callers are expected. If no caller is, or if this
// limiter is closed, it gives all back; if patient, not before other replicas need them.
func (l *Limiter) keep(now throttle.Instant, patient bool) {
	if len(l.hand) == 0 {
		return
	}
	ahead, spare := l.foresight(now), l.spare(now)
	switch {
	case !l.Closed && ahead > 0 && !l.hand.after(now.Add(ahead)):
		p := &l.demand.pace // callers are expected for so long although none comes
		l.demand.quiet.Set(max(p.last.Add(max(paceQuiet*p.gap, paceStall)).Sub(now), 0) + time.Millisecond)
	case !l.Closed && patient && spare > 0:
		l.demand.quiet.Set(spare)
	default:
		l.yield(now)
		l.surrender()
	}
}

// yield notes that the permits in hand go back. What urgent callers may need is hardly promised ahead,
// so if callers need two limiters, each of two replicas may get the permit that the other one needs, again
// and again. As long as nobody departs, each asks later by chance, and twice as late each time.
func (l *Limiter) yield(now throttle.Instant) {
	if !l.demand.joint || !l.encoded.Reserves || l.known.alive < 2 { // perhaps the callers gave up
		return
	}
	if l.demand.vain++; l.demand.vain > 1 {
		l.demand.shy = now.Add(rand.N(1 + min(l.Trip.Lead()<<min(l.demand.vain, mostDoubled), l.turns(l.hand[0].costs), longestShy)))
	}
}

const (
	longestShy  = 5 * time.Second
	mostDoubled = 20 // times: a second becomes twelve days
)

// shyFor returns before when no call is made for a request of the costs because of that.
func (l *Limiter) shyFor(c []int64) throttle.Instant {
	if l.known.alive < 2 || l.encoded.Urgency(c) > 0 {
		return 0
	}
	return l.demand.shy
}

// spare returns for how long other replicas do not need the permits in hand. If the limits have
// more at hand, or if there is no other replica, that is until these are nearly void. If not, it is
// lingerFor, for a caller who needs other limits, too. But they go back a lead before they are due:
// two replicas with permits of two lanes, each in need of the other's, could exchange them for ever.
func (l *Limiter) spare(now throttle.Instant) time.Duration {
	first := l.hand[0].at
	if !l.scarce(now) || l.known.alive < 2 {
		return first.Add(l.tolerance * 7 / 8).Sub(now)
	}
	return min(first.Sub(now)-l.Trip.Lead(), lingerFor)
}

// relax gives back the permits in hand if no caller is expected any more.
func (l *Limiter) relax() {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	if l.demand.waiting || l.Closed || len(l.hand) == 0 {
		return
	}
	l.expire(l.clock.Now())
	l.keep(l.clock.Now(), false)
}

// far reports whether a permit in hand was asked for ahead and is farther off than a call
// takes, while the store has some at hand. A timer waits for such a permit.
func (l *Limiter) far(now throttle.Instant, p permit) bool {
	return p.ahead && p.at > now.Add(max(l.Trip.Mean-call.TimerSlack, 0)) && !l.scarce(now)
}

// short reports whether more callers are in line than were expected, so that a call brings
// permits sooner than those in hand are due.
func (l *Limiter) short(now throttle.Instant, n int) bool {
	near := 0
	for _, p := range l.survey.hand {
		if l.far(now, p) {
			return near < n
		}
		near += p.count
	}
	return false
}
