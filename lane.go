package weir

import (
	"context"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/weirgo/weir/backoff"
	course "github.com/weirgo/weir/internal/lane"
	"github.com/weirgo/weir/internal/learn"
	"github.com/weirgo/weir/internal/readable"
	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// A lane is one key's queue over its limiter. A sub-lane has no limits: it holds
// what a refusal said of a part of its lane alone, which is a route, a credential
// or, in the overflow lane, a key.
type lane struct {
	key      string
	home     *lanes
	limits   atomic.Pointer[[]throttle.Limit] // resolved; shared by lanes of the same limits
	gate     *gate
	queue    *shaping.Queue
	budget   *backoff.Budget
	shadow   *shadow // nil: there are no shadow limits
	observer laneObserver

	users     atomic.Int64 // requests in it, waiting, in flight or between attempts; gone: it left the table
	used      atomic.Int64 // Instant of the last departure
	refusedAt atomic.Int64 // Instant of the last refusal; zero: never refused
	toldTo    atomic.Int64 // Instant; end of the last pause that was news; zero: there was none
	servedAt  atomic.Int64 // departure of the last call that was served, once it was refused
	sublanes  atomic.Int32 // sub-lanes that were made for it
	doubts    doubts

	longWaits longWaits

	hook   shaping.Hook
	shared bool     // by the keys beyond the bound
	place  int      // in its table, under the lock of the lanes
	sub    *sublane // nil: it has a key of its own
}

// A sublane says what a sub-lane is of.
type sublane struct {
	lane *lane
	part string // "route GET /users/*"
}

// name returns what the lane is called in its table.
func (l *lane) name() string {
	if l.sub == nil {
		return l.key
	}
	return sublaneName(l.sub.lane, l.sub.part)
}

func sublaneName(l *lane, part string) string { return l.key + "\x00" + part }

// gone is the number of users of a lane that left the table.
const gone = -1 << 40

func newLane(home *lanes, store throttle.Store, key string, limits []throttle.Limit) (*lane, error) {
	t := &home.settings
	resolved, err := home.resolver.resolve(limits)
	if err != nil {
		return nil, fmt.Errorf("limits: %w", err)
	}
	limiter, err := store.Limiter(key, *resolved...)
	if err != nil {
		return nil, fmt.Errorf("limiter: %w", err)
	}
	l := &lane{key: key, home: home, budget: t.budget()}
	l.limits.Store(resolved)
	_, local := store.(throttle.Local)
	l.gate = newGate(limiter, l.newCourse(local, limits), t.maxPause)
	l.queue = shaping.NewQueue(l.gate)
	t.setQueue(l.queue)
	l.hook.Wait = l.waits
	l.queue.Hook = &l.hook
	l.observer = t.observe(key)
	now := l.queue.Now()
	l.used.Store(int64(now))
	if !local {
		l.gate.hear(now)
	}
	return l, nil
}

// newCourse returns what the lane will learn by; nil where it does not learn:
// limits that are shared through a store are slowed in the store.
func (l *lane) newCourse(local bool, limits []throttle.Limit) *course.Course {
	if l.home.settings.learn == LearnOff || !local && len(limits) > 0 {
		return nil
	}
	set := settingOf(limits)
	set.Spread = l.home.settings.learn == LearnSpread
	return course.NewCourse(set, l.learned)
}

// State returns the state of the lane's queue and limiter.
func (l *lane) State() shaping.State { return l.queue.State() }

// Known returns what answers have taught.
func (l *lane) Known() learn.Known { return l.gate.known() }

// Configured returns how many requests per second the configured limits of up to a
// minute allow; zero: any number.
func (l *lane) Configured() float64 {
	if rate := settingOf(*l.limits.Load()).Configured; !math.IsInf(rate, 1) {
		return rate
	}
	return 0
}

// Observer returns the lane's observer.
func (l *lane) Observer() laneObserver { return l.observer }

// learned tells the operator, and the observer, what was learned.
func (l *lane) learned(ctx context.Context, k learn.Known) {
	l.observer.Learned(ctx, k)
	with := []any{"lane", l.key}
	if k.Rate > 0 {
		with = append(with, "per_second", math.Round(k.Rate*100)/100)
	}
	if k.InFlight > 0 {
		with = append(with, "in_flight", k.InFlight)
	}
	l.home.settings.logger().Info("weir: a limit was learned from the server's answers", with...)
}

// waits tells the logger and the observer of a wait.
func (l *lane) waits(ctx context.Context, w shaping.Wait) func(error) {
	l.tellLong(w)
	return l.observer.Waits(ctx, w, l.gate.store.Load())
}

// tellLong logs a wait that will be long: otherwise nobody sees a caller whom a
// day's limit holds for an hour.
func (l *lane) tellLong(w shaping.Wait) {
	limits := *l.limits.Load()
	wait := max(w.Planned, lineTime(limits, w.Waiting))
	if wait <= longWait || !l.longWaits.due(waitCause{w.Reason, w.Limit}, time.Now()) {
		return
	}
	with := []any{"lane", l.key, "wait", readable.Wait(wait), "reason", string(w.Reason), "waiting", w.Waiting + 1}
	if w.Limit != "" {
		with = append(with, "limit", labelOf(limits, w.Limit))
	}
	if l.sub != nil {
		with = append(with, "alone", l.sub.part)
	}
	l.home.settings.logger().Warn("weir: requests wait for long", with...)
}

// enter counts a request in, or answers false where the lane has gone.
func (l *lane) enter() bool { return l.users.Add(1) > 0 }

// leave counts a request out that had this turn.
func (l *lane) leave(t *shaping.Turn) {
	// One that was refused at once has used nothing.
	if at := int64(max(t.Arrived(), t.Departed())); at > l.used.Load() {
		l.used.Store(at)
	}
	l.users.Add(-1)
}

// age returns for how long the lane was not used.
func (l *lane) age() time.Duration { return l.queue.Now().Sub(throttle.Instant(l.used.Load())) }

// retire takes the lane out of use if nobody is in it and nothing would be
// forgotten with it. That the rate was cut is forgotten where the lane is old:
// calls would have restored it by now.
func (l *lane) retire(old bool) bool {
	if l.sublanes.Load() > 0 || l.users.Load() != 0 || !l.whole(old) || !l.users.CompareAndSwap(0, gone) {
		return false
	}
	if l.whole(old) { // a call may have come and gone meanwhile
		return true
	}
	l.users.Store(0)
	return false
}

func (l *lane) whole(old bool) bool {
	s := l.queue.State()
	if s.Whole || !old || s.Paused > 0 {
		return s.Whole
	}
	for _, limit := range s.Limits {
		if limit.Utilization > 0 {
			return false
		}
	}
	return true
}

// close ends the line and the limiter.
func (l *lane) close() error {
	l.queue.Close()
	l.observer.Closed(l.queue.State().Store)
	return l.gate.Close()
}

// refused acts on a refusal: it pauses, closes or slows the lane. It reports
// whether the lane is paused for a time that its callers wait through.
func (l *lane) refused(ctx context.Context, a *course.Answer, told time.Duration) (paused bool) {
	now := l.queue.Now()
	l.refusedAt.Store(int64(now))
	fact := throttle.Fact{Departed: a.Departed, Refused: true}
	if told > 0 {
		fact.Until = now.Add(min(told, longestPause))
	}
	moved := l.moved(now, fact.Until)
	if moved {
		l.observer.Paused(told, min(told, longestPause))
	}
	long := told > l.home.settings.maxPause
	if long {
		l.gate.closeTo(fact.Until)
	}
	a.Refused, a.Until = true, fact.Until
	l.gate.refused(ctx, now, a)
	l.queue.Reconcile(fact)
	if long && moved {
		with := []any{"lane", l.key, "asked", told, "closed", min(told, longestPause)}
		if l.sub != nil {
			with = append(with, "alone", l.sub.part)
		}
		l.home.settings.logger().Warn("weir: lane closed: the server asked for a long pause", with...)
	}
	return told > 0 && !long
}

// moved reports whether a pause until then is news: none was told that still
// runs, or it ends later. Each of the calls that were in flight is told the same
// pause in whole seconds, from when it is answered: a second later is not later.
func (l *lane) moved(now, until throttle.Instant) bool {
	for {
		last := l.toldTo.Load()
		if until <= now || throttle.Instant(last) > now && until.Sub(throttle.Instant(last)) <= time.Second {
			return false
		}
		if l.toldTo.CompareAndSwap(last, int64(until)) {
			return true
		}
	}
}

// landed says that the call is answered, or has failed.
func (l *lane) landed(ctx context.Context, a *course.Answer) {
	l.gate.landed(ctx, l.queue.Now(), a)
	if departed := a.Departed; a.Served && l.refusedAt.Load() != 0 {
		for last := l.servedAt.Load(); int64(departed) > last && !l.servedAt.CompareAndSwap(last, int64(departed)); last = l.servedAt.Load() {
		}
		l.queue.Reconcile(throttle.Fact{Departed: departed})
	}
}

// couldTake reports whether the lane is not certain to refuse the turn after the
// delay.
func (l *lane) couldTake(ctx context.Context, turn *shaping.Turn, delay time.Duration) bool {
	return l.gate.closedFor(l.queue.Now()) <= delay && l.queue.CheckWait(ctx, turn, delay) == nil
}

// alone reports whether a request that was refused at that instant and again
// now is refused for itself: others of its lane were served in between.
func (l *lane) alone(refusedAt throttle.Instant) bool {
	return throttle.Instant(l.servedAt.Load()) > refusedAt
}
