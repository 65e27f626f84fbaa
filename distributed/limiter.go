package distributed

import (
	"fmt"
	"sync"
	"time"

	"github.com/weirgo/weir/throttle"
)

// A limiter is one lane's at this replica. It spends only permits that it holds,
// dated ones of a run fetched for who stands in line. Take never blocks: where
// no permit is at hand it says when to ask again, or that only news can tell.
type limiter struct {
	store *Store
	link  *link
	name  string // of the lane, as it was given
	lane  string // and its word in keys and news
	key   string
	trips *breaker // of a Cluster's lane; nil: the link's

	mu        sync.Mutex
	limits    []throttle.Limit
	encoded   *encodedLimits
	keys      []string
	rates     []float64 // permits per second of each limit
	counts    bool      // some limit counts in windows
	tolerance time.Duration
	wake      func()
	closed    bool

	clock    clock
	met      bool // a call was answered
	trip     trip
	hand     hand
	waiting  bool             // somebody is in line
	peak     int              // the most in line since the last run
	paused   throttle.Instant // nothing departs before it
	seen     echo
	begun    throttle.Instant // when its generation was seen first
	alive    int
	period   int64
	next     []throttle.Instant // of each limit: no permit before it but those in hand, as the store told
	nextAt   throttle.Instant   // when that was
	again    throttle.Instant   // when to ask once more for what was not granted
	share    int64              // of the configured rate in force, in thousandths; below 1000 served calls matter; zero: never told
	served   throttle.Instant   // when a served call was last told
	slowedAt throttle.Instant   // when a refusal slowed; zero: a call that departed since then was served
	voided   int                // grows when a pause told here makes a run under way void
	reports  []pending
	learning *learning // nil: the lane learns nothing
	failures int
	out      outage
	retuned  bool // the limits changed since the gate was made
	differs  bool

	asked  throttle.Instant // when the state of the limits was last asked for
	told   []limitReply
	toldAt throttle.Instant

	ahead  *time.Timer // for the next run before the hand is empty
	probe  *time.Timer // of a store that does not answer
	slow   *time.Timer // of a first call: callers wait no longer for it
	tells  *time.Timer // for reports that no run takes along
	stats  throttle.StoreState
	late   overdue
	flight flight
}

// A flight is the call under way, of which there is one at most, and what it
// needs again and again.
type flight struct {
	underway bool
	limits   *encodedLimits // in which its costs are
	number   int            // of calls so far
	request  request
	keys     []string
	args     []any
	reports  []pending // that travel with it
	spent    []int64   // here, of each limit, as it tells
	voided   int       // of the limiter, when it left
}

var (
	_ throttle.Limiter = (*limiter)(nil)
	_ throttle.Remote  = (*limiter)(nil)
)

func newLimiter(s *Store, name string, limits []throttle.Limit) (*limiter, error) {
	l := &limiter{store: s, name: name, lane: word(name), key: laneKey(s.namespace, name)}
	if err := l.install(limits); err != nil {
		return nil, fmt.Errorf("distributed: limiter of %q: %w", name, err)
	}
	return l, nil
}

// mostLimits bounds the limits of a lane: a call tells all of them.
const mostLimits = 100

// install puts limits in force here. Where the error is not nil nothing has
// changed.
func (l *limiter) install(limits []throttle.Limit) error {
	if len(limits) > mostLimits {
		return fmt.Errorf("%d limits are more than %d", len(limits), mostLimits)
	}
	resolved, err := throttle.Resolve(limits...)
	if err != nil {
		return err
	}
	encoded, err := encodeLimits(resolved)
	if err != nil {
		return err
	}
	l.limits, l.encoded, l.keys = resolved, encoded, encoded.keys(l.key)
	l.tolerance = throttle.Tolerance(resolved...)
	if l.learning != nil && l.learning.counted {
		l.limits = append(resolved, learnedLimit(l.learning.pace.Interval))
		l.encoded = encoded.learning()
		resolved, l.tolerance = l.limits, toleranceOf(l.limits)
	}
	l.rates, l.counts = make([]float64, len(resolved)), false
	for i, limit := range resolved {
		l.rates[i] = limit.PerSecond()
		l.counts = l.counts || l.counting(i)
	}
	l.next = make([]throttle.Instant, len(resolved))
	l.out.spent = make([]int64, len(resolved))
	l.flight.spent = nil // the call under way tells of the old limits
	l.told = nil
	return nil
}

// Take implements [throttle.Limiter].
func (l *limiter) Take(now throttle.Instant, r throttle.Request) (throttle.Instant, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.check(&r); err != nil {
		return 0, err
	}
	if now < l.paused {
		return l.paused, nil
	}
	c := l.costs(&r)
	if l.unborn() {
		return throttle.Never, nil
	}
	if l.learning != nil {
		l.learning.spent = 0
	}
	if c.nothing() {
		return now, nil
	}
	l.expire(now)
	i := l.hand.find(c)
	switch {
	case i >= 0 && l.hand[i].at <= now:
		return l.spend(i, c), nil
	case i >= 0 && (!l.out.lost || l.store.set.onLoss == FailClosed):
		return l.hand[i].at, nil
	case i >= 0:
		at, err := l.takeLocal(now, r)
		return min(at, l.hand[i].at), err
	case l.out.lost:
		return l.takeLocal(now, r)
	default:
		return throttle.Never, nil
	}
}

// spend takes a permit in hand for c. What it holds beyond c stays in hand if a
// later permit there is for no more, so that whoever that is for can go now. If
// none is, the store has it back.
func (l *limiter) spend(i int, c costs) throttle.Instant {
	p := l.hand.take(i)
	if l.learning != nil {
		l.learning.spent = p.first
	}
	if c.equal(p.costs) {
		return p.at
	}
	rest := permit{at: p.at, count: 1, costs: c.rest(p.costs), of: p.of}
	if l.hand.within(rest.costs) {
		l.hand.hold(rest)
	} else {
		l.credit(rest)
	}
	return p.at
}

func (l *limiter) check(r *throttle.Request) error {
	if l.closed {
		return fmt.Errorf("distributed: lane %q: %w", l.name, ErrClosed)
	}
	c := l.costs(r)
	if r.N < 0 {
		return fmt.Errorf("distributed: %d permits are negative", r.N)
	}
	for i := range l.limits {
		if err := l.limits[i].Check(int(c.of(i))); err != nil {
			return err
		}
	}
	return l.encoded.check(c)
}

// expire voids what was not taken within the tolerance.
func (l *limiter) expire(now throttle.Instant) {
	late := l.hand.before(now.Add(-l.tolerance))
	l.late.note(late)
	l.drop(late)
}

// drop gives permits up, and back as far as the store can still tell.
func (l *limiter) drop(permits []permit) {
	for _, p := range permits {
		l.stats.Void += uint64(p.count)
		l.credit(p)
	}
}

// Forecast implements [throttle.Limiter]. Until the store has answered
// nothing is certain, and a while later nothing is any more: who comes then is
// not refused, but asks.
func (l *limiter) Forecast(now throttle.Instant, r throttle.Request) throttle.Forecast {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.check(&r) != nil {
		return throttle.Forecast{At: throttle.Never}
	}
	if now < l.paused {
		return throttle.Forecast{At: l.paused, Reason: throttle.ReasonPause}
	}
	c := l.costs(&r)
	if c.nothing() {
		return throttle.Forecast{At: now}
	}
	i := l.hand.find(c)
	if i >= 0 && l.hand[i].at <= now {
		return throttle.Forecast{At: now}
	}
	if l.out.lost {
		return l.forecastLocal(now, r)
	}
	f := throttle.Forecast{At: now, Reason: throttle.ReasonStore}
	for k, next := range l.next {
		if now.Sub(l.nextAt) < askAgain && c.of(k) > 0 && next > f.At {
			f = throttle.Forecast{At: next, Reason: throttle.ReasonRate, Limit: l.limits[k].Name}
		}
	}
	if i >= 0 && l.hand[i].at < f.At || i >= 0 && f.At <= now {
		f = throttle.Forecast{At: l.hand[i].at, Reason: throttle.ReasonRate, Limit: l.slowest(c)}
	}
	if l.encoded.learned && f.Limit == learnedName {
		f.At = now // it may be wrong: nobody is refused for it
	}
	return f
}

func (l *limiter) forecastLocal(now throttle.Instant, r throttle.Request) throttle.Forecast {
	f := throttle.Forecast{At: now}
	if gate := l.out.gate; gate != nil {
		f = gate.Forecast(now, r)
	}
	if f.At > now && f.At != throttle.Never {
		// The store may be back before: no reason to refuse.
		f = throttle.Forecast{At: now, Reason: throttle.ReasonStore}
	}
	return f
}

// slowest returns the name of the limit that holds such a request back most.
func (l *limiter) slowest(c costs) string {
	name, longest := "", 0.0
	for i, rate := range l.rates {
		if t := float64(c.of(i)) / rate; t > longest {
			name, longest = l.limits[i].Name, t
		}
	}
	return name
}

// Refund implements [throttle.Limiter]: the permit is in hand again, with its
// instant.
func (l *limiter) Refund(now, at throttle.Instant, r throttle.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.costs(&r)
	if c.nothing() || at > now || l.closed || l.check(&r) != nil {
		return
	}
	if isLocal(at) {
		if gate := l.out.gate; gate != nil {
			gate.Refund(now, at, r)
		}
		for i := range l.out.spent {
			l.out.spent[i] = max(l.out.spent[i]-c.of(i), 0)
		}
		return
	}
	p := permit{at: at, count: 1, costs: c.list(), of: l.seen.generation}
	if at <= l.begun {
		p.of = 0
	}
	if at < max(l.paused, now.Add(-l.tolerance)) {
		l.drop([]permit{p})
		return
	}
	l.hand.hold(p)
}

// Settle implements [throttle.Limiter].
func (l *limiter) Settle(now, at throttle.Instant, r, actual throttle.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.clock.anchor(now)
	if len(l.limits) == 0 || l.closed {
		return
	}
	estimated, real := l.costs(&r), l.costs(&actual)
	if gate := l.out.gate; gate != nil && l.out.lost {
		gate.Settle(now, at, r, actual)
	}
	then, _ := l.clock.there(at) // zero: too long ago to give anything back
	l.report(pending{report: report{kind: reportSettle, at: then, costs: l.encoded.clamp(estimated.list()), actual: l.encoded.clamp(real.list())}})
}

// Reconcile implements [throttle.Limiter]. A pause holds here at once, and
// elsewhere when the news has come.
func (l *limiter) Reconcile(now throttle.Instant, f throttle.Fact) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.clock.anchor(now)
	if l.closed {
		return
	}
	if gate := l.out.gate; gate != nil {
		gate.Reconcile(now, f)
	}
	if !f.Refused && f.Departed > l.slowedAt {
		l.slowedAt = 0
	}
	if f.Slows() && (f.Until == 0 || l.slowedAt == 0) {
		l.share, l.slowedAt = cutShare, now
		l.report(pending{report: report{kind: reportCut}, when: f.Departed})
	}
	switch {
	case f.Resumed:
		l.resume(now)
		l.report(pending{report: report{kind: reportResume}})
	case f.Refused && f.Until > l.paused:
		l.pause(f.Until)
		l.voided++
		l.report(pending{report: report{kind: reportPause}, when: f.Until})
	case !f.Refused && l.share > 0 && l.share < fullShare && now.Sub(l.served) >= time.Second:
		l.served = now
		l.report(pending{report: report{kind: reportServed}})
	}
}

// pause holds everybody until then; what is in hand is void.
func (l *limiter) pause(until throttle.Instant) {
	l.paused = until
	l.drop(l.hand.before(throttle.Never))
	clear(l.next)
}

// resume ends the pause that runs, here.
func (l *limiter) resume(now throttle.Instant) {
	l.paused, l.again = min(l.paused, now), 0
}

// pausing reports whether a pause was told here that the store does not know yet.
func (l *limiter) pausing() bool {
	for _, reports := range [][]pending{l.reports, l.flight.reports} {
		for i := range reports {
			if reports[i].kind == reportPause {
				return true
			}
		}
	}
	return false
}

// Tune implements [throttle.Limiter]. Limits that are looser than those that
// another replica claims hold once nobody has claimed the stricter ones for
// five seconds.
func (l *limiter) Tune(now throttle.Instant, limits ...throttle.Limit) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return fmt.Errorf("distributed: lane %q: %w", l.name, ErrClosed)
	}
	l.clock.anchor(now)
	old := l.own()
	if err := l.install(limits); err != nil {
		return err
	}
	l.drop(l.hand.before(throttle.Never)) // its costs are of the old limits
	l.reports, l.retuned = keepTimed(l.reports), true
	if l.out.gate != nil {
		l.regate()
	}
	heirs := make([]string, len(l.limits))
	for i, j := range throttle.Inherit(old, l.own()) {
		if j >= 0 {
			heirs[i] = old[j].Name
		}
	}
	l.report(pending{report: report{kind: reportTune, heirs: heirs}})
	return nil
}

// Notify implements [throttle.Remote].
func (l *limiter) Notify(wake func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wake = wake
}

// Tolerance implements [throttle.Limiter].
func (l *limiter) Tolerance() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tolerance
}

// Close gives back what is in hand. It does not wait for the call that does.
func (l *limiter) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	l.surrender()
	l.closed, l.wake = true, nil
	for _, t := range []*time.Timer{l.ahead, l.probe, l.tells} {
		if t != nil {
			t.Stop()
		}
	}
	if l.flight.underway {
		return nil // the call says goodbye
	}
	if len(l.reports) == 0 || l.out.lost || !l.start(nil) {
		l.store.part(l)
	}
	return nil
}
