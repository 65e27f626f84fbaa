package reserve

import (
	"iter"
	"math"
	"slices"
	"time"

	"github.com/weirgo/weir/distributed/internal/conn"
	"github.com/weirgo/weir/distributed/internal/script"
	"github.com/weirgo/weir/throttle"
)

// atHand is how many requests a call asks for even if its turn is shorter. Only dated permits
// are rationed by turns: those that may be spent at once need not wait.
const atHand = 256

// A demand is the line at this replica, as the limiter sees it.
type demand struct {
	waiting bool             // at least one caller does
	joint   bool             // one has waited for another limiter
	vain    int              // times in a row that permits of a reserve went back, and no caller departed
	before  int              // the same, before the last permit was taken: it may come back
	shy     throttle.Instant // requests that leave a reserve begin no call before it: see yield
	peak    int              // the most in line since the last run
	again   throttle.Instant // when to ask again for permits that were not granted; zero: at once
	beyond  throttle.Instant // the first permit that there was when one for later was refused; Never: one that is there, but not promised yet
	trusted throttle.Instant // until when sooner ones than that are not asked for
	urgent  bool             // also for urgent requests
	spent   throttle.Instant // no permits are asked for ahead of callers before it
	crowded throttle.Instant // no call is put off before it for callers who may come back
	pace    pace
	ahead   conn.Timer // of the next run, before the hand is empty
	quiet   conn.Timer // from which on no caller is expected
}

// Fetch implements [throttle.Remote]. It calls for more permits once those in hand
// are about to run out.
func (l *Limiter) Fetch(now throttle.Instant, n int, line iter.Seq[throttle.Request]) {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	l.ask(now, n, line)
}

// Lend implements [store.Lender]. If others were in line since the last run they may be back
// in a moment, so nothing is lent.
func (l *Limiter) Lend(now, until throttle.Instant, line iter.Seq[throttle.Request]) (call func()) {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	longest := l.Trip.Deadline(&l.Hub.Set)
	near := l.Met && !l.Lost && l.Link.Client.Own && l.Trip.Usual() < time.Millisecond // the next reply is
	l.flight.lends = l.demand.peak <= 1 && near && longest <= longestLoan && now.Add(longest) < until
	idle := !l.Underway
	l.ask(now, 1, line)
	l.flight.lends = false
	if idle && l.Underway && l.flight.lent {
		call = l.borrow
	}
	return call
}

// longestLoan bounds for how long a lent call may hold its caller. A caller that gives up just
// when Redis ceases to answer returns so much later.
const longestLoan = 100 * time.Millisecond

// ask notes that n requests are in line, and calls for their permits.
func (l *Limiter) ask(now throttle.Instant, n int, line iter.Seq[throttle.Request]) {
	if n > 0 && !l.Underway { // most callers come while it is
		l.clock.Anchor(now)
	}
	if l.demand.waiting = n > 0; !l.demand.waiting {
		l.demand.again = 0
		l.keep(now, true) // the callers it was for have gone
		l.prefetch(now)
		return
	}
	// A caller that has just departed may be back in a moment, so the line counts as long as
	// it was at most since the last run.
	l.demand.peak = max(l.demand.peak, n)
	switch {
	case l.Closed || l.Lost:
	case l.Underway:
		if l.flight.lined && l.Wait == nil { // no caller waited when it came in line
			l.WaitAtMost(l)
		}
	case len(l.limits) == 0:
		if l.untaught() {
			l.start(nil)
		}
	case now < l.paused:
		l.askOfPause(now)
	default:
		l.fetch(now, n, line)
	}
}

// fetch calls for the requests in line that have no permit in hand, or sets the timer for
// when that is due.
func (l *Limiter) fetch(now throttle.Instant, n int, line iter.Seq[throttle.Request]) {
	l.expire(now)
	if l.returnFar(now) {
		return
	}
	s, req := &l.survey, &l.flight.request
	*s = survey{now: now, n: n, hand: append(s.hand[:0], l.hand...)}
	req.Groups, l.flight.dated = req.Groups[:0], false
	line(l.look)
	if l.demand.waiting = s.wants; !s.wants && (len(l.hand) == 0 || l.hand.after(now)) { // other limiters hold all in line
		l.keep(now, true)
	} else if !s.wants {
		l.demand.quiet.Set(lingerFor) // at once, it could be granted to the same caller again and again
	}
	if s.due > now {
		l.demand.ahead.Set(s.due.Sub(now))
		return
	}
	if len(req.Groups) > 0 {
		slices.SortStableFunc(req.Groups, func(a, b script.Group) int { return l.encoded.Urgency(b.Costs) - l.encoded.Urgency(a.Costs) })
		if i := slices.IndexFunc(req.Groups, l.exposes); i > 0 {
			req.Groups = req.Groups[:i] // the others are asked for nearer instants
		}
		req.Latest = min(l.reach(req.Groups), max(s.until.Sub(now), 0))
		l.demand.peak = n
		l.start(req.Groups)
	}
}

// A survey is one look at the line, from its first request on. It finds the requests without
// a permit in hand, as many as one call may ask for. In the flight's request equal neighbours
// make one group. If nine callers ask for
// 1, 1, 1, 5, 1, 1, 1, 1, 1 and two permits of 1 are in hand, the groups are
//
//	1 of cost 1, 1 of cost 5, 5 of cost 1
//
// It is kept from look to look, because variables that a closure captures take memory.
type survey struct {
	now   throttle.Instant
	n     int              // in line
	wants bool             // one needs permits in hand, or a call; false: other limiters hold all in line
	some  bool             // one was looked at for whom to call
	due   throttle.Instant // of a call, if there is to be none before; it ends the look
	hand  hand             // what is in hand for those not looked at
	left  int              // permits that there may be at most
	asked int              // requests found
	most  int              // how many may be
	until throttle.Instant // the latest deadline of those found
}

// looked looks at one request in line, and reports whether to look at the next.
func (l *Limiter) looked(r throttle.Request) bool {
	s, c := &l.survey, l.costs(&r)
	urgent := l.encoded.Urgency(c) > 0
	if r.Since > s.now.Add(l.Trip.Lead()) {
		return l.lookedAhead(&r, c)
	}
	s.wants = true
	if !s.some {
		due := l.covered(s.now, s.n, c)
		if due <= s.now && (!urgent || l.demand.urgent) {
			due = l.demand.again
		}
		due = max(due, l.shyFor(c))
		if due > s.now {
			first := s.due == 0
			if first || due < s.due {
				s.due = due
			}
			return first && !urgent && l.encoded.Reserves // an urgent one may be behind it
		}
		s.some, s.due = true, 0
		s.hand = slices.DeleteFunc(s.hand, func(p permit) bool { return l.far(s.now, p) })
		s.left = max(s.n-s.hand.count(), 1)
	}
	if free(c) {
		return true
	}
	if i := l.awaits(s.hand, s.now, c); i >= 0 {
		s.hand.take(i)
		return true
	}
	req := &l.flight.request
	age := time.Duration(0) // how long it has been in line
	if r.Since != 0 {
		age = max(s.now.Sub(r.Since), 0)
	}
	req.Groups = l.flight.appendGroup(req.Groups, c, age)
	if s.until = max(s.until, r.Until); r.Until == 0 {
		s.until = throttle.Never
	}
	if s.asked++; s.asked == 1 {
		req.Most = min(turn(l.allotment(req.Groups[0].Costs), l.demand.peak), s.left)
		s.most = min(s.left, max(req.Most, atHand))
	}
	return s.asked < s.most
}

// lookedAhead looks at a request for the instant, to come, at which another limiter lets its caller
// go. Were each limiter asked for its first permit, one would be void before the other is due, and
// of two replicas each could hold what the other needs. Permits before the instant are left to others:
//
//	the other limiter:  .300
//	this one:           .100  .200  .300  .400, of which .300 is taken, and .100 and .200 come back
//
// It is asked for once no replica can hold a later one. A window has permits for any instant in it.
func (l *Limiter) lookedAhead(r *throttle.Request, c []int64) (more bool) {
	s, f := &l.survey, &l.flight
	l.demand.joint = true
	if s.some || l.windows || slices.Max(c) != 1 { // permits of several would come back for nobody
		return true
	}
	holds := func(p permit) bool { return p.at >= r.Since.Add(-l.tolerance*3/4) && (r.Until == 0 || p.at <= r.Until) }
	if i := slices.IndexFunc(s.hand, holds); i >= 0 {
		s.hand.take(i)
		s.wants = true
		return true
	}
	due := max(r.Since.Add(-l.turns(c)), l.demand.again, l.shyFor(c))
	if r.Until > 0 && r.Until < l.demand.beyond && (l.demand.beyond < throttle.Never || l.encoded.Urgency(c) == 0) {
		due = max(due, l.demand.trusted)
	}
	if due > s.now {
		if s.due == 0 || due < s.due {
			s.due = due
		}
		return true
	}
	if s.n == 1 && len(l.hand) > 0 { // nobody else is in line
		l.yield(s.now)
		if s.due = l.shyFor(c); s.due > s.now {
			l.surrender()
			return true
		}
		l.discard(l.hand.all())
	}
	s.wants, s.some, s.due, s.until = true, true, 0, r.Until
	f.request.Groups, f.request.Most, f.dated = f.appendGroup(f.request.Groups, c, s.now.Sub(r.Since)), 1, true
	return false
}

// awaits returns the place in h of a permit for a request in line, or -1. No urgent request waits
// for a permit that others asked for, unless it is due before a call could bring one.
func (l *Limiter) awaits(h hand, now throttle.Instant, c []int64) int {
	if l.encoded.Urgency(c) == 0 {
		return h.own(c)
	}
	near := now.Add(l.Trip.Lead())
	return slices.IndexFunc(h, func(p permit) bool {
		return slices.Equal(p.costs, c) || p.at <= near && script.Serves(p.costs, c)
	})
}

// covered returns until when the permits in hand are enough: a lead before the last of them,
// which ends the turn. It is zero if the first in line, of the costs, has no permit there, or
// if a call would bring others sooner.
func (l *Limiter) covered(now throttle.Instant, n int, c []int64) throttle.Instant {
	h := l.survey.hand
	if l.awaits(h, now, c) < 0 || l.short(now, n) {
		return 0
	}
	due := h[len(h)-1].at.Add(-l.Trip.Lead())
	if h.after(now.Add(askAgain)) {
		due = min(due, l.known.at.Add(askAgain))
	}
	return due
}

// appendGroup appends a request to groups: to the last of them if its costs are equal.
// A group is as old as the youngest in it.
func (f *flight) appendGroup(groups []script.Group, c []int64, age time.Duration) []script.Group {
	if last := len(groups) - 1; last >= 0 && slices.Equal(c, groups[last].Costs) {
		groups[last].Count++
		groups[last].Age = min(groups[last].Age, age)
		return groups
	}
	if !slices.Equal(c, f.costs) {
		f.costs = slices.Clone(c)
	}
	return append(groups, script.Group{Count: 1, Age: age, Costs: f.costs})
}

// allotment returns how many permits of the costs the rates earn within the horizon
// for each replica alive.
func (l *Limiter) allotment(costs []int64) float64 {
	horizon, least := max(l.Hub.Set.Horizon, l.Trip.Lead()).Seconds(), math.Inf(1)
	for i, rate := range l.rates {
		if costs[i] > 0 {
			least = min(least, rate*horizon/float64(max(l.known.alive, 1))/float64(costs[i]))
		}
	}
	return least
}

// turn returns how many dated permits a run may hold if n stand in line: its
// allotment, and at most half of the line. That is split evenly over turns, so that
// the last in line need not wait for one more. At 200/s with a horizon of 100 ms, two
// replicas and 16 in line:
//
//	min(200/s * 0.1 s / 2, 16 / 2) = 8, so 2 turns of 8
func turn(allotment float64, n int) int {
	run := max(1, int(min(allotment, float64((n+1)/2))))
	turns := (n + run - 1) / run
	return (n + turns - 1) / turns
}

// start begins a call in the background that asks for the groups and sends the reports, once
// there is a connection for it. It reports whether this call, or another, is in progress.
func (l *Limiter) start(groups []script.Group) bool {
	if l.Underway {
		return true
	}
	f := &l.flight
	f.lent, f.request.Limits, f.request.Groups = false, l.encoded, groups
	if f.lends && !l.Closed && l.Node.Lend() {
		l.Underway, f.lent = true, true
		return true
	}
	var ok bool
	f.lined, ok = l.Start(l, l.demand.waiting)
	return ok
}

// askAgain is how long the instants in a reply are trusted. After that permits may be nearer,
// because an estimate was settled, a permit came back, or the state was lost.
const askAgain = time.Second

// askOfPauses is how often a replica with callers asks whether its pause still holds, because
// the message of its end may be lost.
const askOfPauses = 5 * time.Second

// askOfPause calls if the pause is to be confirmed, or sets the timer for when it is.
func (l *Limiter) askOfPause(now throttle.Instant) {
	switch due := l.known.at.Add(askOfPauses); {
	case due >= l.paused:
	case due <= now:
		l.start(nil)
	default:
		l.demand.ahead.Set(due.Sub(now))
	}
}

// returnFar gives back the permits in hand if the first of them is farther off than a reply
// is trusted. The call that returns them brings them again, or nearer ones. If the learned
// pace is that slow, no permit is nearer: then a call without permits asks whether the pace
// still holds, and returnFar returns true.
func (l *Limiter) returnFar(now throttle.Instant) (asks bool) {
	if !l.hand.after(now.Add(askAgain)) || now.Sub(l.known.at) < askAgain {
		return false
	}
	if l.learning != nil && l.learning.counted && !l.hand.after(l.paced(now)) {
		return l.start(nil)
	}
	for _, p := range slices.Backward(l.hand.all()) {
		l.learning.lapse(p)
		l.credit(p)
	}
	return false
}

// paced returns the latest instant for which the learned pace promises this replica a
// permit: that of the last replica in turn, or the end of a hold.
func (l *Limiter) paced(now throttle.Instant) throttle.Instant {
	pace := &l.learning.pace
	turns := min(float64(l.known.alive+1)*pace.Interval.Seconds(), mostReach.Seconds())
	return max(l.clock.Here(int64(pace.NotBefore)/1000), now.Add(time.Duration(turns*float64(time.Second))))
}

// reach returns how far ahead a permit for the groups may be dated. The first permit of a
// later window closes a window, although settled estimates could still give back to it. So a
// far permit of a window is asked for only once it is near. A bucket takes back any promised
// permit, so each replica alive may hold one, however far, and they take turns.
func (l *Limiter) reach(groups []script.Group) time.Duration {
	if l.exposes(groups[0]) {
		return l.early()
	}
	reach := max(askAgain, l.Hub.Set.Horizon+2*l.Trip.Lead())
	for i := range groups {
		reach = max(reach, l.turns(groups[i].Costs))
	}
	return reach
}

// turns returns how long the buckets take to earn the costs for each replica alive, and once more.
func (l *Limiter) turns(costs []int64) time.Duration {
	longest := 0.0
	for k, rate := range l.rates {
		if !l.encoded.Limits[k].Windows() {
			longest = max(longest, float64(costs[k]*int64(l.known.alive+1))/rate)
		}
	}
	return time.Duration(min(longest, mostReach.Seconds()) * float64(time.Second))
}

// exposes reports whether a promise to a group could delay urgent callers by more than one
// interval: a bucket among limits that reserve permits reserves none. If it earns a permit in
// less than two calls, the delay is short, and runs save calls.
func (l *Limiter) exposes(g script.Group) bool {
	if !l.encoded.Reserves || l.encoded.Urgency(g.Costs) > 0 {
		return false
	}
	for i, limit := range l.limits {
		takes := float64(g.Costs[i]) / l.rates[i] // seconds to earn the cost
		if leaves(limit) == 0 && !l.encoded.Limits[i].Windows() && takes >= 2*l.Trip.Lead().Seconds() {
			return true
		}
	}
	return false
}

// early returns how long before its instant a permit is asked for that urgent callers may need:
// as long as a call takes, less what the tolerance makes up for.
func (l *Limiter) early() time.Duration { return max(l.Trip.Lead()-l.tolerance/4, 0) }

// mostReach bounds reach.
const mostReach = 30 * 24 * time.Hour

// refused reports whether a reply means that no call can bring more for now. A call for urgent
// callers is made all the same.
func (l *Limiter) refused(got *script.Reply) bool {
	n := len(got.Permits)
	if len(l.flight.request.Groups) == 0 || got.First == 0 {
		return false
	}
	return n == 0 || l.encoded.Reserves && got.Permits[n-1].At <= got.Now
}

// refrain puts the next call off after a reply: until the first permit is near, or for
// askAgain, because that permit may be nearer than the reply said.
func (l *Limiter) refrain(now throttle.Instant, first int64) {
	lead, urgent := l.Trip.Lead(), l.encoded.Urgency(l.flight.request.Groups[0].Costs) > 0
	spares := l.encoded.Reserves && !urgent
	if spares {
		lead = l.early()
	}
	at := l.clock.Here(first)
	again := min(max(at.Add(-lead), now.Add(l.Trip.Lead())), now.Add(askAgain))
	if l.flight.dated {
		l.demand.beyond, l.demand.trusted = at, again
		if at <= now.Add(l.flight.request.Latest-l.Trip.Usual()) { // it may be kept for urgent callers until it is nearer
			l.demand.beyond = throttle.Never
		}
		return
	}
	if spares && l.foretells() {
		l.known.kept, l.known.keptFor = min(at, now.Add(askAgain)), l.flight.request.Groups[0].Costs
	}
	l.demand.again, l.demand.urgent = again, urgent
}

// foretells reports whether the first permit that a refusal names is the next one. Of several groups some
// may cost less, a learner may be wrong, and windows and fast buckets have the next ones soon.
func (l *Limiter) foretells() bool {
	groups, learns := l.flight.request.Groups, l.learning != nil && l.learning.counted
	return len(groups) == 1 && !learns && !l.windows && l.turns(groups[0].Costs) > time.Duration(l.known.alive+1)*sparse
}

// sparse is the time between two permits beyond which they are asked for by their instants, as by [shaping.Roster].
const sparse = 50 * time.Millisecond

// Flush implements [store.Replicator].
func (l *Limiter) Flush() {
	l.Mu.Lock()
	if l.learning != nil {
		l.learning.hurry = true
	}
	l.Mu.Unlock()
	l.flush()
}
