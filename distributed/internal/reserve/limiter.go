package reserve

import (
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/weirgo/weir/distributed/internal/call"
	"github.com/weirgo/weir/distributed/internal/conn"
	"github.com/weirgo/weir/distributed/internal/script"
	"github.com/weirgo/weir/internal/store"
	"github.com/weirgo/weir/throttle"
)

// A Limiter is the limits of one lane at this replica. It spends only permits that it holds:
// dated ones of a run that was fetched for the line. Take never blocks. If no permit is at
// hand it returns when to ask again, or Never if a reply will wake the queue.
//
// Locks: those of [call.Caller], whose Mu guards all but the name. It is not held while a
// learner is asked or a line logged. The methods of [throttle.Limiter],
// [store.Limiter] and [conn.Caller] lock Mu, as do Inspect and those that
// a goroutine or a timer begins with: prepare, take, release, finish, propose, apply,
// flush, relax and Deliver. All other methods, of the limiter and of its parts,
// want it locked.
type Limiter struct {
	name string // of the lane, as it was given
	call.Caller
	limitSet

	clock    call.Clock
	hand     hand
	demand   demand
	known    known
	paused   throttle.Instant // nothing departs before it
	voided   int              // grows whenever the permits of the call in progress become void
	reports  reports
	learning *learning // nil: the lane learns nothing
	outage   outage
	flight   flight
	survey   survey
	borrow   func()                      // runs the call that was lent, on the goroutine of the caller it is for
	look     func(throttle.Request) bool // looked

	linger conn.Timer // of reports that no run takes along
	stats  throttle.StoreState
	late   overdue
}

var (
	_ throttle.Limiter = (*Limiter)(nil)
	_ store.Limiter    = (*Limiter)(nil)
)

// New returns the limiter of a lane, by its name. The error is for limits that make no sense, or
// that the script cannot count.
func New(h *call.Hub, name string, limits []throttle.Limit) (*Limiter, error) {
	l := &Limiter{name: name, Caller: call.Caller{Hub: h, Lane: script.Escape(name), Key: script.KeyOf(h.Layout, h.Namespace, name)}}
	l.borrow, l.look = func() { l.Node.Run(l) }, l.looked
	l.demand.ahead.Ring, l.demand.quiet.Ring, l.linger.Ring = l.WakeQueue, l.relax, l.flush
	if err := l.install(limits); err != nil {
		return nil, fmt.Errorf("distributed: limiter of %q: %w", name, err)
	}
	return l, nil
}

// install puts limits in force here. The permits in hand, and the costs to report, are of the old
// ones, and void. If the error is not nil nothing has changed.
func (l *Limiter) install(limits []throttle.Limit) error {
	set, err := newLimitSet(l.Key, limits)
	if err != nil {
		return err
	}
	if l.learning != nil && l.learning.counted {
		set.learn(l.learning.pace.Interval)
	}
	l.limitSet = set
	l.known.next, l.known.kept, l.known.states = make([]throttle.Instant, len(set.limits)), 0, nil
	l.demand.vain, l.demand.shy = 0, 0
	l.outage.spent = make([]int64, len(set.limits))
	l.flight.spent = nil // the call in progress reports it for the old limits
	l.discard(l.hand.all())
	l.reports = l.reports.timed()
	if l.outage.local != nil {
		l.enforce()
	}
	return nil
}

// Take implements [throttle.Limiter].
func (l *Limiter) Take(now throttle.Instant, r throttle.Request) (throttle.Grant, error) {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	if err := l.check(&r); err != nil {
		return throttle.Grant{}, err
	}
	if now < l.paused {
		return throttle.Grant{At: l.paused}, nil
	}
	c := l.costs(&r)
	if l.untaught() {
		return throttle.Grant{At: throttle.Never}, nil
	}
	if free(c) {
		if len(l.limits) == 0 && l.learning == nil && !l.Lost && now.Sub(l.known.at) >= askOfPauses {
			l.start(nil) // no permit is asked for with which a pause would become known
		}
		return throttle.Grant{At: now}, nil
	}
	l.expire(now)
	if i := l.hand.own(c); i >= 0 && l.hand[i].at <= now {
		return l.spend(now, i, c), nil
	}
	next := l.hand.next(now) // then its caller may go, if this one may not
	if l.Lost && (!l.Hub.Set.FailClosed || l.hand.find(c) < 0) {
		at, err := l.takeLocal(now, r)
		return throttle.Grant{At: min(at, next)}, err
	}
	return throttle.Grant{At: next}, nil
}

// mostLooked is how many callers are looked at for one whose permit is due. Any other caller
// has been overtaken by as many, or has given up.
const mostLooked = 1024

// Holder returns the place in line, from zero on, of the first caller for whose costs a
// permit in hand is due. If there are such permits and no such caller, it is the first caller
// that asks for less, and may then take one. If no caller can go, it is -1. The queue asks
// if its head has no permit of its own that is due: urgent callers may have come since
// permits for the others were fetched.
func (l *Limiter) Holder(now throttle.Instant, line iter.Seq[throttle.Request]) (place int) {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	due := l.hand[:l.hand.from(now+1)]
	if len(due) == 0 || now < l.paused {
		return -1
	}
	asksLess, at, covers := -1, 0, -1
	for r := range line {
		c := l.costs(&r)
		if due.own(c) >= 0 {
			return at
		}
		if asksLess < 0 {
			if i := due.find(c); i >= 0 {
				asksLess, covers = at, i
			}
		}
		if at++; at == mostLooked {
			break
		}
	}
	if covers >= 0 {
		due[covers].free = true
	}
	return asksLess
}

// spend takes a permit in hand for costs of c. The remainder replaces a later, smaller
// permit, whose caller can then go now, or goes back to Redis.
func (l *Limiter) spend(now throttle.Instant, i int, c []int64) throttle.Grant {
	p := l.hand.take(i)
	l.demand.before, l.demand.vain = l.demand.vain, 0
	if l.Hub.Set.Prefetch > 0 {
		l.demand.pace.saw(now, p.costs)
		l.prefetch(now)
	}
	granted := throttle.Grant{At: p.at, Ref: throttle.Ref{Instant: p.there, Ordinal: p.first}}
	if script.Serves(p.costs, c) {
		return granted
	}
	rest := permit{at: p.at, there: p.there, count: 1, costs: slices.Clone(p.costs), of: p.of}
	for k, n := range l.encoded.Permits(c) {
		rest.costs[k] -= n
	}
	if slices.ContainsFunc(l.hand, func(p permit) bool { return within(p.costs, rest.costs) }) {
		l.hand.hold(rest)
	} else {
		l.credit(rest)
	}
	return granted
}

// free reports whether a request of the costs asks for no permit.
func free(costs []int64) bool {
	return !slices.ContainsFunc(costs, func(n int64) bool { return n > 0 })
}

// check returns an error for a request that is refused for good.
func (l *Limiter) check(r *throttle.Request) error {
	if l.Closed {
		return fmt.Errorf("distributed: lane %q: %w", l.name, call.ErrClosed)
	}
	return l.limitSet.check(r)
}

// expire discards the permits that were not taken within the tolerance.
func (l *Limiter) expire(now throttle.Instant) {
	late := l.hand.before(now.Add(-l.tolerance))
	l.late.void += awaited(late)
	l.discard(late)
}

// discard counts permits as void, and gives them back as far as the store can still
// take them.
func (l *Limiter) discard(permits []permit) {
	for _, p := range permits {
		l.stats.Void += uint64(p.count)
		l.learning.lapse(p)
		l.credit(p)
	}
	if l.hurries() && !l.Lost && !l.Closed {
		l.start(nil)
	}
}

// Forecast implements [throttle.Limiter]. It trusts replies for askAgain. Without one nothing
// is certain: the caller is then not refused, and Redis is asked.
func (l *Limiter) Forecast(now throttle.Instant, r throttle.Request) throttle.Forecast {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	if l.check(&r) != nil {
		return throttle.Forecast{At: throttle.Never}
	}
	if now < l.paused {
		if !l.Lost && now.Sub(l.known.at) >= askOfPauses {
			l.start(nil) // callers without time for the pause are not in line, and ask for nothing
		}
		return throttle.Forecast{At: l.paused, Reason: throttle.ReasonPause}
	}
	c := l.costs(&r)
	i := l.hand.find(c)
	if free(c) || i >= 0 && l.hand[i].at <= now {
		return throttle.Forecast{At: now}
	}
	if l.encoded.Urgency(c) > 0 {
		i = l.awaits(l.hand, now, c)
	}
	if l.Lost {
		f := throttle.Forecast{At: now}                                               // without an instant to come: the store may be back before
		if local := l.outage.local; local != nil && local.Forecast(now, r).At > now { // perhaps Never: for a cost that only the spaced limits let go
			f.Reason = throttle.ReasonStore
		}
		return f
	}
	f := throttle.Forecast{At: now, Reason: throttle.ReasonStore}
	for k, next := range l.known.next {
		if next > now && c[k] > 1 && !l.encoded.Limits[k].Windows() { // it is that of one permit
			next = next.Add(time.Duration(float64(c[k]-1) / l.rates[k] * float64(time.Second)))
		}
		if now.Sub(l.known.at) < askAgain && c[k] > 0 && next > f.At {
			f = throttle.Forecast{At: next, Reason: throttle.ReasonRate, Limit: l.limits[k].Name}
		}
	}
	if l.known.kept > f.At && slices.Equal(c, l.known.keptFor) {
		f = throttle.Forecast{At: l.known.kept, Reason: throttle.ReasonRate, Limit: l.slowest(c)}
	}
	if i >= 0 && l.hand[i].at < f.At || i >= 0 && f.At <= now && !l.hand[i].ahead {
		f = throttle.Forecast{At: l.hand[i].at, Reason: throttle.ReasonRate, Limit: l.slowest(c)}
	}
	if l.encoded.Learned && f.Limit == script.LearnedName {
		f.At = now // it may be wrong, so no caller is refused for it
	}
	return f
}

// Refund implements [throttle.Limiter]. The permit is in hand again, with its instant.
func (l *Limiter) Refund(now throttle.Instant, g throttle.Grant, r throttle.Request) {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	c := l.costs(&r)
	if free(c) || g.At > now || l.Closed || l.check(&r) != nil {
		return
	}
	if o := &l.outage; g.Ref.Instant == 0 { // a permit of local
		if o.local != nil {
			o.local.Refund(now, g, r)
		}
		for i := range o.spent {
			o.spent[i] = max(o.spent[i]-c[i], 0)
		}
		return
	}
	l.demand.vain = max(l.demand.vain, l.demand.before)
	p := permit{at: g.At, there: g.Ref.Instant, count: 1, costs: slices.Clone(c), first: g.Ref.Ordinal, of: l.known.seen.Generation}
	if g.At <= l.known.begun {
		p.of = 0
	}
	if g.At < max(l.paused, now.Add(-l.tolerance)) {
		l.discard([]permit{p})
		return
	}
	l.hand.hold(p)
}

// Settle implements [throttle.Limiter]. A later call reports it: what the actual cost is below the
// estimate for the instant of the permit, and what it is above as a charge.
func (l *Limiter) Settle(now throttle.Instant, g throttle.Grant, r, actual throttle.Request) {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	l.clock.Anchor(now)
	if len(l.limits) == 0 || l.Closed {
		return
	}
	if l.Lost && l.outage.local != nil {
		l.outage.local.Settle(now, g, r, actual)
	}
	estimated, real := slices.Clone(l.encoded.Permits(l.costs(&r))), slices.Clone(l.encoded.Permits(l.costs(&actual)))
	l.encoded.Clamp(estimated)
	more := make([]int64, len(real))
	for i, n := range l.encoded.Clamp(real) {
		more[i], real[i] = max(n-estimated[i], 0), min(n, estimated[i])
	}
	if !free(more) {
		l.report(pending{Report: script.Report{Kind: script.ReportSettle, Costs: make([]int64, len(more)), Actual: more}})
	}
	if g.Ref.Instant > 0 && !slices.Equal(real, estimated) { // otherwise no state counts it
		l.report(pending{Report: script.Report{Kind: script.ReportSettle, At: g.Ref.Instant, Costs: estimated, Actual: real}})
	}
}

// Reconcile implements [throttle.Limiter]. A pause holds here at once, and at other replicas
// when they receive the message.
func (l *Limiter) Reconcile(now throttle.Instant, f throttle.Fact) {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	l.clock.Anchor(now)
	if l.Closed {
		return
	}
	l.outage.reconcile(now, f)
	switch {
	case f.Resumed:
		l.resume(now)
		l.report(pending{Report: script.Report{Kind: script.ReportResume}})
	case f.Until > l.paused:
		l.pause(f.Until)
		l.report(pending{Report: script.Report{Kind: script.ReportPause}, when: f.Until})
	}
}

// pause holds all callers until an instant. The permits in hand are void, and those that the
// call in progress brings.
func (l *Limiter) pause(until throttle.Instant) {
	l.paused = until
	l.voided++
	l.discard(l.hand.all())
	clear(l.known.next)
	l.known.kept = 0
}

// resume ends the current pause here.
func (l *Limiter) resume(now throttle.Instant) {
	l.paused, l.demand.again, l.demand.shy = min(l.paused, now), 0, 0
	clear(l.known.next) // they were dated after the pause
	l.known.kept = 0
}

// resuming reports whether the end of a pause is still to be sent: replies and messages that come
// meanwhile are older.
func (l *Limiter) resuming() bool { return l.reports.has(script.ReportResume) }

// pausing reports whether a pause holds here that Redis does not know yet.
func (l *Limiter) pausing() bool {
	return l.reports.has(script.ReportPause) || l.flight.reports.has(script.ReportPause)
}

// Tune implements [throttle.Limiter]. If another replica claims stricter limits, the new ones
// hold once no replica has claimed those for five seconds.
func (l *Limiter) Tune(now throttle.Instant, limits ...throttle.Limit) error {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	if l.Closed {
		return fmt.Errorf("distributed: lane %q: %w", l.name, call.ErrClosed)
	}
	l.clock.Anchor(now)
	old := l.configured()
	if err := l.install(limits); err != nil {
		return err
	}
	heirs := make([]string, len(l.limits))
	for i, j := range throttle.Inherit(old, l.configured()) {
		if j >= 0 {
			heirs[i] = old[j].Name
		}
	}
	l.report(pending{Report: script.Report{Kind: script.ReportTune, Heirs: heirs}})
	return nil
}

// State implements [throttle.Limiter], by the last reply: at most a
// second before the last call.
func (l *Limiter) State(now throttle.Instant) throttle.State {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	store := l.stats
	store.Lost, store.Cause = l.Lost, l.Cause
	store.Replicas, store.Differs = l.known.alive, l.known.differs
	s := throttle.State{
		// What the replicas have used is with the store, and outlives this.
		Whole:  now >= l.paused && l.hand.count() == 0 && !l.Underway && !l.Lost && len(l.reports) == 0 && !l.outage.owes(),
		Limits: make([]throttle.LimitState, len(l.configured())),
		Store:  &store,
	}
	if now < l.paused {
		s.Paused = l.paused.Sub(now)
	}
	for i := range s.Limits {
		s.Limits[i] = l.known.state(now, i, &l.limitSet)
	}
	return s
}

// Inspect returns how many permits are in hand, how many of those may still be spent, and how
// many reports are to be sent. It is for tests.
func (l *Limiter) Inspect() (inHand, usable, reports int) {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	later := l.hand[l.hand.from(l.clock.Now().Add(-l.tolerance)):]
	return l.hand.count(), later.count(), len(l.reports) + len(l.flight.reports)
}

// Tolerance implements [throttle.Limiter].
func (l *Limiter) Tolerance() time.Duration {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	return l.tolerance
}

// Close gives back the permits in hand, by a call that it does not wait for.
func (l *Limiter) Close() error {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	if l.Closed {
		return nil
	}
	l.surrender()
	l.Leave(l)
	for _, t := range []*conn.Timer{&l.demand.ahead, &l.demand.quiet, &l.linger} {
		t.Stop()
	}
	if !l.Underway && !l.settleAccounts() {
		l.Hub.Detach(l.Lane, l)
	}
	return nil
}

// settleAccounts begins a call for what is still to be sent, and reports whether there is one.
func (l *Limiter) settleAccounts() bool { return l.owes() && !l.Lost && l.start(nil) }
