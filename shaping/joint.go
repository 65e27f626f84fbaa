package shaping

import (
	"errors"
	"slices"
	"time"

	"github.com/weirgo/weir/throttle"
)

// nowhere is where the first caller of a queue waits that needs to wait for nothing.
const nowhere = -1

// A joint is the limiter of a queue whose callers need several limiters. Its state is
// that of the queue's first caller, under the junction's lock.
type joint struct {
	junction *Junction
	queue    *Queue
	name     string // under which callers without a tenant share a roster with other queues
	rosters  []*Roster
	widest   int      // the last that is no part
	places   []int    // of the first limit of each roster among those of the queue
	seats    []waiter // of head; nil: nobody has ever waited

	head    *waiter          // the queue's first caller, who waits in a roster; nil: nobody does
	since   []float64        // virtual time of its class in each roster when it became the first
	owed    uint16           // rosters, as bits, in which it was owed the next departure when it left
	lost    uint16           // rosters, as bits, whose turn it has given up because another limiter held it
	keeps   uint16           // rosters whose turn it keeps although it waits in another
	kept    throttle.Instant // since when it does
	at      int              // the roster in which it waits
	behind  bool             // another one was before it there
	asking  bool             // its limiter waits for the reply of a store
	full    bool             // its limiter is full of calls in flight
	expects uint16           // rosters, as bits, that keep a place in flight for it meanwhile
	heldTo  throttle.Instant // until when its limiter holds it
	dates   uint16           // rosters, as bits, whose limiter is asked for permits of that instant
	opened  throttle.Instant // since when the limiters hold nobody
	count   int              // callers in the queue, as the roster counts them
	bytes   int64
	waiting []throttle.Request // of the first callers, for remote limiters
	shows   int                // how many of them the limiter sees for which the first one waits
}

// joint returns what decides on the queue's callers if there are rosters; nil: the limiter does.
func (q *Queue) joint() *joint {
	if r := q.remote.Load(); r != nil {
		j, _ := r.Remote.(*joint)
		return j
	}
	j, _ := q.limiter.(*joint)
	return j
}

// roster returns the roster in front of the queue's limiter; nil: callers of no other queue need it.
func (q *Queue) roster() *Roster {
	if j := q.joint(); j != nil && q.limiter != throttle.Limiter(j) {
		return j.rosters[0]
	}
	return nil
}

// part returns what a request asks of one roster's limiter. The only one is asked for all of it,
// also if its limits have become more.
func (j *joint) part(i int, r throttle.Request) throttle.Request {
	if r.Each != nil && len(j.rosters) > 1 {
		from, to := min(j.places[i], len(r.Each)), min(j.places[i+1], len(r.Each))
		r.Each = r.Each[from:to:to]
	}
	return r
}

// take spends permits of all limiters for w, the queue's first caller, or none. If it may
// not go now, it waits in the roster of one limiter.
func (j *joint) take(w *waiter, now throttle.Instant) (throttle.Grant, error) {
	j.junction.mu.Lock()
	defer j.done()
	if j.head != w {
		j.begin(w, now)
	}
	if i, until := j.blocked(w, now); i != nowhere {
		j.forgo()
		if _, _, err := j.longest(i, until, now, w.request()); err != nil { // it need not stand there
			j.stay(nowhere, now)
			return throttle.Grant{}, err
		}
		j.stay(i, now)
		j.behind, j.asking, j.full, j.heldTo = until == throttle.Never, false, false, 0
		if !j.behind {
			j.heldTo, j.rosters[i].asked = until, &j.seats[i]
		}
		return throttle.Grant{At: until}, nil
	}
	all := newGrants(len(j.rosters))
	g, held, err := j.spend(now, w.request(), all)
	switch {
	case err != nil:
		j.forgo()
		j.stay(nowhere, now)
		return throttle.Grant{}, err
	case held != nowhere:
		j.seat(held, w)
		r, until := j.rosters[held], g.At
		j.behind, j.asking, j.full, j.heldTo = false, false, false, until
		if until == throttle.Never {
			part := j.part(held, w.request())
			j.full = r.vetoes != nil && r.vetoes.Held(now, part) == throttle.Never
			reason := r.limiter.Forecast(now, part).Reason
			j.asking = reason == throttle.ReasonStore
			if reason == throttle.ReasonConcurrency { // it may end in the next moment
				r.full, until = true, now+1
			}
		}
		if kept := j.keep(held, until, now); kept > now {
			g.At = min(g.At, kept)
		}
		j.stay(held, now)
		r.asked = &j.seats[held]
		return g, nil
	}
	for i, r := range j.rosters {
		r.measure(now)
		j.leave(i, true, all.of(i, g).At)
	}
	w.out.all, j.head = all, nil
	return g, nil
}

// begin makes w the queue's first caller.
func (j *joint) begin(w *waiter, now throttle.Instant) {
	j.forgo()
	j.lost = 0
	j.stay(nowhere, now)
	if j.head, j.owed = w, 0; j.seats == nil {
		j.seats = make([]waiter, len(j.rosters))
	}
	for i, r := range j.rosters {
		j.since[i] = r.line.passed(w.tenant.class.priority)
	}
}

// keep decides in which rosters the first caller keeps its turn, although one limiter
// holds it until an instant. A turn that others would take is given up once. After that it
// is kept at a limiter that is no faster, for as long as the caller's own permits there
// take, at most: see [Junction]. It returns when that time is over; zero: no turn is kept.
func (j *joint) keep(held int, until, now throttle.Instant) (ends throttle.Instant) {
	keeps, kept := uint16(0), now
	if j.keeps != 0 {
		kept = j.kept
	}
	for i, r := range j.rosters {
		seat, bit := &j.seats[i], uint16(1)<<i
		if i == held || seat.index == 0 || r.limiter.Forecast(now, j.part(i, j.head.request())).At > now {
			continue
		}
		switch long := until.Sub(kept) > j.takes(i); {
		case j.lost&bit == 0:
			j.lost |= bit
		case !long && j.slower(i, held) && !r.fixed:
			if keeps |= bit; j.keeps&bit == 0 && r.sharers > 0 && j.full && j.before(held, i) {
				j.follow(i, held)
			}
			ends = max(ends, kept.Add(j.takes(i)))
			r.asked = seat
		case j.keeps&bit != 0: // it was kept, and the other limiter has moved its instant
			j.lost &^= bit
		}
	}
	j.keeps, j.kept = keeps, kept
	return ends
}

// forgo gives up the turns that are kept. The first caller in the roster where this one waits may have waited
// for that: see foretold.
func (j *joint) forgo() {
	if j.keeps != 0 && j.at != nowhere {
		j.rosters[j.at].asked = nil
	}
	j.keeps = 0
}

// follow makes callers in line at roster i wait at another one, which holds this caller: see foretold.
func (j *joint) follow(i, held int) {
	for _, o := range j.rosters[i].heads {
		if o != j && slices.Contains(o.rosters, j.rosters[held]) {
			j.junction.waking = append(j.junction.waking, o.queue)
		}
	}
}

// slower reports whether the permits of one roster take longer than those of another. Of
// equal ones always the same is the slower one, so that callers do not keep both.
func (j *joint) slower(a, b int) bool {
	if x, y := j.takes(a), j.takes(b); x != y {
		return x > y
	}
	return j.rosters[a].number < j.rosters[b].number
}

// takes returns how long the permits take that the first caller needs in a roster in which
// it is, or a place among the calls in flight. What was learned of a limit is no rate here.
func (j *joint) takes(i int) time.Duration {
	r := j.rosters[i]
	if len(r.rates) == 0 {
		return max(moment, r.pace)
	}
	return max(time.Duration(j.seats[i].cost*float64(time.Second)), r.pace)
}

// try is take for a caller who does not wait. It spends nothing if anybody waits for one
// of the limiters.
func (j *joint) try(now throttle.Instant, r throttle.Request) (g throttle.Grant, all *grants, err error) {
	j.junction.mu.Lock()
	defer j.junction.unlock()
	for _, r := range j.rosters {
		if r.line.count > 0 {
			return throttle.Grant{At: throttle.Never}, nil, nil
		}
	}
	all = newGrants(len(j.rosters))
	g, _, err = j.spend(now, r, all)
	return g, all, err
}

// blocked puts w in line in each roster that has one. It returns in which one w waits because
// another caller is before it in one, and until when w does not go; Never: that is not known.
// It is nowhere if w is the first in all.
func (j *joint) blocked(w *waiter, now throttle.Instant) (at int, until throttle.Instant) {
	for k := range j.rosters {
		i := j.nth(k)
		if r := j.rosters[i]; r.line.count > 0 {
			j.seat(i, w)
			if r.first() != &j.seats[i] {
				return j.foretold(i, w, now)
			}
		}
	}
	return nowhere, 0
}

// nth returns the roster that is asked k-th. The one in which the caller waits is first,
// because the others date its permits by that. Otherwise the widest is: its permits are
// the scarcest.
func (j *joint) nth(k int) int {
	first, n := j.at, len(j.rosters)
	if first == nowhere {
		first = j.widest
	}
	return (first - k + n) % n
}

// seat puts w in line in a roster, unless it is there.
func (j *joint) seat(i int, w *waiter) {
	seat, r := &j.seats[i], j.rosters[i]
	if seat.index > 0 {
		return
	}
	u := urgency{priority: w.tenant.class.priority, weight: int(w.tenant.weight)}
	if name := w.tenant.name; name != nil {
		u.tenant = *name
	}
	if u.tenant == "" {
		u.tenant, u.weight = j.name, 1
	}
	u.credit = max(0, r.line.passed(u.priority)-j.since[i])
	seat.place, seat.cost = w.place, j.burden(i, w)
	r.enter(seat, j, u)
	if j.owed>>i&1 != 0 && r.line.carry(seat, 1) {
		j.owed &^= 1 << i
	}
}

// burden returns what w counts in a roster, as [Queue.burden] does.
func (j *joint) burden(i int, w *waiter) float64 {
	r := j.rosters[i]
	if r.rates == nil {
		r.rates = ratesOf(r.limiter.State(j.queue.Now()))
	}
	return burdenOf(r.rates, j.part(i, w.request()))
}

// stay leaves all rosters but one, and those whose turn the first caller keeps.
func (j *joint) stay(at int, now throttle.Instant) {
	for i := range j.rosters {
		if i != at && j.keeps>>i&1 == 0 {
			j.leave(i, false, now)
		}
	}
	j.move(at)
}

// leave leaves the line of a roster, if the queue's first caller is in it.
func (j *joint) leave(i int, departs bool, charged throttle.Instant) {
	if j.head == nil || j.seats[i].index == 0 {
		return
	}
	if l := &j.rosters[i].line; !departs && l.overtakes(&j.seats[i]) {
		l.carry(&j.seats[i], -1)
		j.owed |= 1 << i
	}
	j.rosters[i].leave(&j.seats[i], departs, charged)
	if i == j.at {
		j.move(nowhere)
	}
}

// move makes a roster the one that counts the callers of the queue.
func (j *joint) move(at int) {
	if at == j.at {
		return
	}
	count, bytes := j.count, j.bytes
	j.counts(0, 0)
	j.show(0)
	j.at = at
	j.counts(count, bytes)
}

// waitsIn reports whether the first caller waits in a roster. It may only keep its turn there.
func (j *joint) waitsIn(r *Roster) bool { return j.at != nowhere && j.rosters[j.at] == r }

// counts says how many callers are in the queue.
func (j *joint) counts(count int, bytes int64) {
	if j.at != nowhere {
		r := j.rosters[j.at]
		r.waiting.Add(int64(count - j.count))
		r.bytes, r.changed = r.bytes+bytes-j.bytes, true
	}
	j.count, j.bytes = count, bytes
}

// spend takes permits of all limiters, or none. If one holds the request, held is the
// roster of the one that does so for longest, as far as is certain.
func (j *joint) spend(now throttle.Instant, r throttle.Request, all *grants) (g throttle.Grant, held int, err error) {
	r.Since = max(r.Since, j.free(now))
	if at, i := j.foreseen(now, r); i != nowhere {
		return j.longest(i, at, now, r)
	}
	for k := range j.rosters {
		i := j.nth(k)
		granted, err := j.rosters[i].take(now, j, j.part(i, r))
		if all != nil {
			*all.at(i) = granted
		}
		if err != nil || granted.At > now {
			for ; k > 0; k-- {
				o := j.nth(k - 1)
				j.rosters[o].limiter.Refund(now, *all.at(o), j.part(o, r))
			}
			if err != nil {
				return throttle.Grant{}, i, j.named(i, err)
			}
			return j.longest(i, granted.At, now, r)
		}
		// Each is charged no earlier than the others allowed it.
		r.Since = max(r.Since, granted.At)
		granted.At = max(g.At, granted.At)
		g = granted
	}
	j.opened = max(j.opened, j.free(now))
	j.behind, j.asking, j.heldTo = false, false, 0
	return g, nowhere, nil
}

// free returns since when nothing holds the queue's first caller: credit for a late timer is
// for the time in which nothing else held it.
func (j *joint) free(now throttle.Instant) throttle.Instant {
	switch {
	case j.behind && j.at != nowhere:
		return max(j.opened, min(j.rosters[j.at].moved, now))
	case j.heldTo > 0:
		return max(j.opened, min(j.heldTo, now))
	}
	return j.opened
}

// named returns the error of a roster's limiter with its name, unless it is the only one.
func (j *joint) named(i int, err error) error {
	if len(j.rosters) == 1 {
		return err
	}
	named := &Error{Err: err}
	if e, ok := errors.AsType[*Error](err); ok {
		*named = *e
	}
	named.Lane = j.rosters[i].name
	return named
}

// refund gives back what the limiters granted.
func (j *joint) refund(now throttle.Instant, out outcome, r throttle.Request) {
	j.junction.mu.Lock()
	defer j.done()
	for i, roster := range j.rosters {
		roster.limiter.Refund(now, out.all.of(i, out.grant), j.part(i, r))
		roster.asked = nil // its first one may go now
	}
}

// voided counts permits that were void. A queue with one limiter has no joint.
func (j *joint) voided() {
	if j == nil {
		return
	}
	j.junction.mu.Lock()
	defer j.junction.mu.Unlock()
	for _, r := range j.rosters {
		r.stale++
	}
}

// settle corrects what the limiters charged.
func (j *joint) settle(now throttle.Instant, d Departure, actual throttle.Request) {
	for i, roster := range j.rosters {
		roster.limiter.Settle(now, d.all.of(i, d.Grant), j.part(i, d.Request), j.part(i, actual))
		roster.wake()
	}
}

// done unlocks the rosters. In each the first one is woken, unless it knows of it.
func (j *joint) done() {
	for _, r := range j.rosters {
		r.call()
	}
	j.junction.unlock()
}

// unlocked says how many callers are in the queue, which is about to be unlocked.
func (j *joint) unlocked(count int, bytes int64) {
	j.junction.mu.Lock()
	defer j.done()
	j.counts(count, bytes)
	if count == 0 {
		j.forgo()
		j.stay(nowhere, j.queue.Now())
		j.head = nil
	}
}

// others returns how many callers of other queues wait for the limiter that holds this
// queue's, and how many bytes they hold.
func (j *joint) others() (count int, bytes int64) {
	j.junction.mu.Lock()
	defer j.junction.mu.Unlock()
	if j.at == nowhere {
		return 0, 0
	}
	r := j.rosters[j.at]
	return int(r.waiting.Load()) - j.count, r.bytes - j.bytes
}

// lane returns the name of the roster in which the queue's first caller waits; "": it is the
// only one.
func (j *joint) lane() string {
	j.junction.mu.Lock()
	defer j.junction.mu.Unlock()
	if j.at == nowhere || len(j.rosters) == 1 {
		return ""
	}
	return j.rosters[j.at].name
}

// Take implements [throttle.Limiter] for callers who never give permits back.
func (j *joint) Take(now throttle.Instant, r throttle.Request) (throttle.Grant, error) {
	g, _, err := j.try(now, r)
	return g, err
}

// Refund, Settle, Reconcile and Tune implement [throttle.Limiter]. The queue calls others
// with the grant of each limiter. Answers and limits go to a limiter, and then to its [Roster].
func (j *joint) Refund(throttle.Instant, throttle.Grant, throttle.Request)                   {}
func (j *joint) Settle(throttle.Instant, throttle.Grant, throttle.Request, throttle.Request) {}
func (j *joint) Reconcile(throttle.Instant, throttle.Fact)                                   {}
func (j *joint) Tune(throttle.Instant, ...throttle.Limit) error                              { return errors.ErrUnsupported }

// Tolerance implements [throttle.Limiter].
func (j *joint) Tolerance() time.Duration {
	tolerance := throttle.Tolerance()
	for _, r := range j.rosters {
		if t := r.limiter.Tolerance(); t > 0 {
			tolerance = min(tolerance, t)
		}
	}
	return tolerance
}

// State implements [throttle.Limiter].
func (j *joint) State(now throttle.Instant) (all throttle.State) {
	all.Whole = true
	for _, r := range j.rosters {
		s := r.limiter.State(now)
		all.Paused, all.Whole = max(all.Paused, s.Paused), all.Whole && s.Whole
		all.Limits = append(all.Limits, s.Limits...)
		if all.Store == nil {
			all.Store = s.Store
		}
	}
	return all
}
