package shaping

import (
	"cmp"
	"math"
	"slices"

	"github.com/weirgo/weir/throttle"
)

// foreseen returns which limiter holds a request now, and until when; nowhere: perhaps none.
// Permits spent and given back may be lost, so all limiters after the first are examined before
// anything is spent. Two learned limits could otherwise hold a caller forever: permits returned to
// one would delay it there until the other holds it again. If calls in flight fill several, it waits
// for the first of those by name, and stays there.
func (j *joint) foreseen(now throttle.Instant, r throttle.Request) (throttle.Instant, int) {
	full := nowhere
	for k := 1; k <= len(j.rosters); k++ {
		i := j.nth(k)
		roster, part := j.rosters[i], j.part(i, r)
		others := k < len(j.rosters) // the first is asked later
		if f := roster.limiter.Forecast(now, part); others && f.At > now && f.At != throttle.Never {
			return f.At, i
		}
		if roster.vetoes == nil {
			continue
		}
		switch until := roster.vetoes.Held(now, part); {
		case until == throttle.Never:
			if full == nowhere || j.before(i, full) {
				full = i
			}
		case until > now:
			return until, i
		}
	}
	if full != nowhere {
		return throttle.Never, full
	}
	return now, nowhere
}

// before reports whether callers take a place in flight of one roster before that of another. Names are
// the same in all processes, so no two of them keep what the other one needs.
func (j *joint) before(a, b int) bool {
	return cmp.Or(cmp.Compare(j.rosters[a].name, j.rosters[b].name), a-b) < 0
}

// foretold returns in which roster w waits, and until when, if others are before it at limiter i.
// If a limiter that processes share is certain to hold it for longer than permits of i hold, it
// waits there: permits of i that are fetched for it would be void by then.
//
// The first caller at i may only keep its turn there, and wait for a place in flight of an earlier roster. Then w
// waits in that one, too: a place of i that is fetched for w would be idle meanwhile. If w is the first there, the
// other caller is woken, gives up its turn, and wakes w.
func (j *joint) foretold(i int, w *waiter, now throttle.Instant) (at int, until throttle.Instant) {
	at, until = i, now.Add(moment)
	for o, r := range j.rosters {
		if r.sharers == 0 {
			continue
		}
		if f := r.limiter.Forecast(now, j.part(o, w.request())); f.At > until && f.At != throttle.Never {
			at, until = o, f.At
		}
	}
	r := j.rosters[i]
	if o := r.heads[r.first()]; at == i && r.sharers > 0 && o.full && o.at != nowhere {
		if full := slices.Index(j.rosters, o.rosters[o.at]); full >= 0 && j.before(full, i) {
			j.seat(full, w)
			if j.rosters[full].first() == &j.seats[full] {
				j.junction.waking = append(j.junction.waking, o.queue)
			}
			return full, throttle.Never
		}
	}
	j.seat(at, w)
	if at == i || j.rosters[at].first() != &j.seats[at] {
		return at, throttle.Never
	}
	return at, until
}

// longest returns which limiter holds a request longest, if limiter i does so until an instant. The
// error is that of a limiter whose pause rejects the request.
func (j *joint) longest(i int, until, now throttle.Instant, r throttle.Request) (throttle.Grant, int, error) {
	held := i
	for o, roster := range j.rosters {
		f := roster.limiter.Forecast(now, j.part(o, r))
		if f.Reason == throttle.ReasonPause && f.At > now { // then Take spends nothing
			if _, err := roster.limiter.Take(now, j.part(o, r)); err != nil {
				return throttle.Grant{}, o, j.named(o, err)
			}
		}
		if o != i && until != throttle.Never && f.At > until && f.At != throttle.Never { // Never: unknown
			until, held = f.At, o
		}
	}
	return throttle.Grant{At: until}, held, nil
}

// ahead returns how many callers of other queues will depart before w, the n-th caller of this one.
// It also returns how many seconds all before it take at the slowest limiter. It assumes equal
// costs in a queue, and equal weights of queues.
func (j *joint) ahead(w *waiter, n int) (others int, cost float64) {
	j.junction.mu.Lock()
	defer j.junction.mu.Unlock()
	for i, r := range j.rosters {
		own := j.burden(i, w)
		before, theirs := r.ahead(j, w.tenant.class.priority, own*float64(n))
		switch total := theirs + own*float64(n-1); {
		case len(r.rates) == 0: // perhaps a limit was learned
			if cost == 0 {
				others = max(others, before)
			}
		case total > cost:
			others, cost = before, total
		}
	}
	return others, cost
}

// ahead returns how many callers of other queues will depart before one of a queue, and
// their cost. Those before it in its own queue, and it, cost own. Queues that count as one with
// its own come first, because the others take turns with all of them.
func (r *Roster) ahead(of *joint, class Priority, own float64) (n int, cost float64) {
	for _, ours := range [...]bool{true, false} {
		own += cost
		for _, c := range r.line.classes {
			for _, t := range c.tenants {
				first := t.waiting.first()
				if c.priority < class || ours != (r.heads[first].name == of.name) {
					continue
				}
				theirs := 0.0
				for _, seat := range t.waiting.list() {
					if o := r.heads[seat]; o != of {
						theirs += float64(max(o.count, 1))
					}
				}
				if !ours && c.priority == class {
					theirs = min(theirs, math.Ceil(own/first.cost))
				}
				n, cost = n+int(theirs), cost+theirs*first.cost
			}
		}
	}
	return n, cost
}

// impossible returns the error of the limiter that never grants a request.
func (j *joint) impossible(now throttle.Instant, r throttle.Request) error {
	for i, roster := range j.rosters {
		if part := j.part(i, r); roster.limiter.Forecast(now, part).At == throttle.Never {
			g, err := roster.limiter.Take(now, part)
			if err != nil {
				return j.named(i, err)
			}
			if g.At <= now { // its forecast was wrong
				roster.limiter.Refund(now, g, part)
			}
		}
	}
	return nil
}

// Forecast implements [throttle.Limiter].
func (j *joint) Forecast(now throttle.Instant, r throttle.Request) (longest throttle.Forecast) {
	for i, roster := range j.rosters {
		f := roster.limiter.Forecast(now, j.part(i, r))
		if f.At > longest.At || longest.Reason == "" && f.Reason != "" && longest.At <= now {
			if longest = f; len(j.rosters) > 1 {
				longest.Lane = roster.name
			}
		}
	}
	if longest.Reason == "" {
		longest.Lane = j.lane()
	}
	return longest
}
