package lane

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirgo/weir/backoff"
	"github.com/weirgo/weir/internal/course"
	"github.com/weirgo/weir/internal/flight"
	"github.com/weirgo/weir/internal/gate"
	"github.com/weirgo/weir/internal/learn"
	"github.com/weirgo/weir/internal/readable"
	"github.com/weirgo/weir/internal/store"
	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// A Lane is one key's queue over its limiter. A sub-lane has no limits. It
// holds what a refusal said of only a part of its lane: of a route, of a
// credential or, in the lane that many keys share, of a key. The exported fields are never
// changed.
type Lane struct {
	Key      string          // a sub-lane has that of its lane; the lane that many keys share has ""
	Shared   bool            // by the keys beyond the bound
	Budget   *backoff.Budget // of retries
	Observer Observer
	Shadow   *Shadow // nil: there are no shadow limits
	Queue    *shaping.Queue
	Line     Line // of the lane by itself
	Gate     *gate.Gate
	Course   *course.Course // nil: the lane does not learn

	settings *Settings
	limits   atomic.Pointer[[]throttle.Limit] // resolved; lanes with the same limits share one list
	ledgers  *course.Ledgers
	share    learn.Share // of what answers report
	roster   *roster     // of the groups; nil: the lane is in none. Under their lock

	users     atomic.Int64            // requests in the lane: in line, in flight or between attempts; gone: the lane has left the table
	listed    atomic.Bool             // its table knows that it may be idle
	used      atomic.Int64            // Instant of the last departure
	refusedAt atomic.Int64            // Instant of the last refusal; zero: never refused
	pausedTo  atomic.Int64            // Instant; end of the last pause that was a new one; zero: there was none
	servedAt  atomic.Int64            // Instant; when the last served call departed; noted from the first refusal on
	sublanes  atomic.Int32            // number of its sub-lanes
	doubt     atomic.Pointer[doubt]   // the last; nil: there is none
	buckets   atomic.Pointer[buckets] // nil: no answer named one

	longWaits sync.Map    // reason and limit -> throttle.Instant at which such a wait was logged
	lost      atomic.Bool // the body of an answer was never closed, and that was logged

	hook shaping.Hook
	home *table   // its table; nil: it is in none
	sub  *sublane // nil: the lane is no sub-lane
}

// A sublane says of which part of which lane a sub-lane is.
type sublane struct {
	lane *Lane
	part string // "route GET /users/*"
	kind Kind
}

func (l *Lane) name() string {
	if l.sub == nil {
		return l.Key
	}
	return sublaneName(l.sub.lane, l.sub.part)
}

func sublaneName(l *Lane, part string) string { return l.Key + "\x00" + part }

// gone is the number of users of a lane that has left the table. It is so low
// that no requests that enter by mistake make it positive.
const gone = -1 << 40

// newLane returns a lane with limits, resolved, that the store enforces under a name. If it does not
// learn, it obeys what others learn in the store.
func newLane(set *Settings, from throttle.Store, key, name string, limits *[]throttle.Limit, learns bool) (*Lane, error) {
	limiter, err := from.Limiter(name, *limits...)
	if err != nil {
		return nil, fmt.Errorf("limiter: %w", err)
	}
	l := &Lane{Key: key, settings: set, Budget: set.Budget(), Observer: set.Observe(key)}
	l.limits.Store(limits)
	_, local := from.(throttle.Local)
	l.Course = l.newCourse(limiter, local, learns, *limits, l.leases(from, name))
	l.ledgers = course.NewLedgers(l.Course, *limits, set.WaitResets, learns && local)
	l.ledgers.Share = set.Share
	l.Gate = gate.NewGate(limiter, l.Course, l.ledgers, set.MaxPause)
	l.Queue = shaping.NewQueue(l.Gate)
	l.Queue.Line = set.Line
	l.Line = Line{Lanes: []*Lane{l}, Queue: l.Queue}
	l.hook.Wait = l.waits
	l.Queue.Hook = &l.hook
	if shared, ok := limiter.(store.Limiter); ok {
		shared.Watch(l.watch())
	}
	now := l.Queue.Now()
	l.used.Store(int64(now))
	if !local {
		l.Gate.Update(now)
	}
	return l, nil
}

func (l *Lane) bound() (err error) {
	set := l.settings
	most, urgent := set.SharedMaxInFlight, set.ReservedInFlight
	b := gate.Bound{Most: set.MaxInFlight, Urgent: urgent}
	if most > 0 {
		b.Fleet, err = l.flights(l.Key, max(most-urgent, 1))
		if err == nil && urgent > 0 {
			b.Reserve, err = l.flights(l.Key+urgentKey, urgent)
		}
	}
	l.Gate.Bind(b)
	return err
}

// flights returns the most calls in flight that all processes may have under a key.
func (l *Lane) flights(key string, most int) (store.Flights, error) {
	shared, ok := l.settings.Store.(store.FlightStore)
	if !ok {
		return nil, fmt.Errorf("InFlight.Shared is %d, but the store, %T, does not bound calls in flight across processes", l.settings.SharedMaxInFlight, l.settings.Store)
	}
	flights, err := shared.Flights(key, most)
	if err != nil {
		return nil, fmt.Errorf("InFlight.Shared: %w", err)
	}
	flights.Watch(l.watch())
	return flights, nil
}

// urgentKey follows a lane's key in the key of its places for urgent calls.
const urgentKey = " urgent"

func (l *Lane) watch() store.Watch {
	return store.Watch{Called: l.Observer.Called, Strayed: l.Observer.Strayed}
}

// newCourse returns what the lane will learn by; nil if it does not learn: limits that
// are shared through a store which does not let processes learn together are slowed
// there.
func (l *Lane) newCourse(limiter throttle.Limiter, local, learns bool, limits []throttle.Limit, lease func() store.Flights) *course.Course {
	shared, together := limiter.(store.Limiter)
	if !together && (!learns || !local && len(limits) > 0) {
		return nil
	}
	set := course.SettingOf(limits)
	set.Share, set.Spread = l.settings.Share, l.settings.Spread
	c := course.NewCourse(set, l)
	if together {
		c.Share(shared, learns, lease)
	}
	return c
}

// leases returns what makes the calls in flight under a name that all processes bound by what they
// have learned; nil if the store bounds none. With InFlight.Shared there are none beside those.
func (l *Lane) leases(from throttle.Store, name string) func() store.Flights {
	shared, ok := from.(store.FlightStore)
	if !ok {
		return nil
	}
	return func() store.Flights {
		if l.settings.SharedMaxInFlight > 0 {
			return nil
		}
		flights, err := shared.Flights(name, store.MostFlights)
		if err != nil { // the store is closed, and its limiters say so
			return nil
		}
		flights.Watch(l.watch())
		return flights
	}
}

// Limits returns the lane's limits, resolved. They must not be changed.
func (l *Lane) Limits() []throttle.Limit { return *l.limits.Load() }

// Label returns the label, for users, of the limit with that name. It returns
// the name itself if the limits have changed meanwhile, or if it is empty.
func (l *Lane) Label(name string) string {
	for _, limit := range l.Limits() {
		if limit.Name == name {
			return limit.Label()
		}
	}
	return name
}

// Requests returns the number of requests in the lane: in line, in flight or
// between attempts.
func (l *Lane) Requests() int { return int(max(l.users.Load(), 0)) }

// Now returns the present instant by the lane's clock.
func (l *Lane) Now() throttle.Instant { return l.Queue.Now() }

// late reports whether a departure was charged so long ago that its permits hold no more.
func (l *Lane) late(d shaping.Departure) bool {
	charged := d.Grant.At
	return charged != 0 && l.Now().Sub(charged) > cmp.Or(l.Gate.Limiter.Tolerance(), throttle.Tolerance())
}

// Settle states what a departure should have been charged, since its cost in a unit is known.
func (l *Lane) Settle(d shaping.Departure, unit string, actual throttle.Request) {
	l.Queue.Settle(d, actual)
	l.ledgers.Settle(unit, d.Request, actual)
}

// HasSublanes reports whether the lane has sub-lanes. It takes no lock.
func (l *Lane) HasSublanes() bool { return l.sublanes.Load() > 0 }

// SinceRefusal returns how long ago the server last refused; zero: it never did.
func (l *Lane) SinceRefusal() time.Duration {
	at := throttle.Instant(l.refusedAt.Load())
	if at == 0 {
		return 0
	}
	return max(l.Now().Sub(at), 1)
}

// Configured returns how many requests per second the configured limits of up
// to a minute allow. Zero means any number.
func (l *Lane) Configured() float64 {
	if rate := course.SettingOf(l.Limits()).Configured; rate < learn.AnyRate {
		return rate
	}
	return 0
}

// enter counts a request in. It returns false if the lane has left the table.
func (l *Lane) enter() bool { return l.users.Add(1) > 0 }

// Leave counts a request out that had this turn. If t is nil, it had none.
func (l *Lane) Leave(t *shaping.Turn) {
	if t != nil {
		// A request that was rejected at once has used nothing. Lanes age by minutes, and to
		// store each instant costs as much as to count the request out.
		if at := int64(max(t.Arrived(), t.Departed())); at > l.used.Load()+int64(time.Millisecond) {
			l.used.Store(at)
		}
	}
	if l.users.Add(-1) == 0 && !l.listed.Load() && l.home != nil {
		l.home.list(l)
	}
}

// age returns for how long the lane was not used.
func (l *Lane) age() time.Duration { return l.Queue.Now().Sub(throttle.Instant(l.used.Load())) }

// retire takes the lane out of use, if nobody is in it and nothing would be
// forgotten with it. An old lane may forget what it has learned.
func (l *Lane) retire(old bool) bool {
	if l.OfBucket() && l.age() < idle { // what was reported of it would be forgotten
		return false
	}
	if l.sublanes.Load() > 0 || l.users.Load() != 0 || !l.whole(old) || !l.users.CompareAndSwap(0, gone) {
		return false
	}
	if l.whole(old) { // a call may have come and gone meanwhile
		return true
	}
	l.users.Store(0)
	return false
}

// whole reports whether nothing would be forgotten with the lane, or, if it is old, nothing but what
// it has learned.
func (l *Lane) whole(old bool) bool {
	s := l.Queue.State()
	used := func(limit throttle.LimitState) bool { return limit.Utilization > 0 }
	return s.Whole || old && s.Paused == 0 && !slices.ContainsFunc(s.Limits, used)
}

func (l *Lane) close() error {
	l.Queue.Close()
	l.Observer.Closed(l.Queue.State().Store)
	return l.Gate.Close()
}

func (l *Lane) waits(ctx context.Context, w shaping.Wait) func(error) {
	l.logLong(w)
	return l.Observer.Waits(ctx, w, l.Gate.Store())
}

// logLong logs a wait that will be long. Otherwise nobody would notice callers
// whom a day's limit holds for an hour.
func (l *Lane) logLong(w shaping.Wait) {
	wait := max(w.Planned, lineTime(l.Limits(), w.Waiting))
	if wait <= longWait || !l.dueToLog([2]string{string(w.Reason), w.Limit}) {
		return
	}
	with := []any{"wait", readable.Wait(wait), "reason", string(w.Reason), "waiting", w.Waiting + 1}
	if w.Limit != "" {
		with = append(with, "limit", l.Label(w.Limit))
	}
	l.warn("weir: requests wait for long", with...)
}

const (
	longWait      = 30 * time.Second // the shortest wait that is logged
	longWaitEvery = time.Minute      // the shortest time between two lines of log for one cause in a lane
)

// dueToLog reports whether a wait with this reason and limit is to be logged now, and remembers that.
func (l *Lane) dueToLog(cause [2]string) bool {
	now := l.Now()
	last, logged := l.longWaits.LoadOrStore(cause, now)
	return !logged || now.Sub(last.(throttle.Instant)) >= longWaitEvery && l.longWaits.CompareAndSwap(cause, last, now)
}

// lineTime returns the least time in which a line of waiting requests passes the limits, if each
// costs one permit. 100 requests before a limit of 20/s with a burst of 20 take 4 s.
func lineTime(limits []throttle.Limit, waiting int) (longest time.Duration) {
	for _, limit := range limits {
		seconds := min(float64(waiting-limit.Capacity())/limit.PerSecond(), (365 * 24 * time.Hour).Seconds())
		longest = max(longest, time.Duration(seconds*float64(time.Second)))
	}
	return longest
}

// A Seen is the state of a lane when a call departed from it. Zero belongs to a call that
// did not depart, and to all calls of a lane that does not learn.
type Seen = flight.Seen

// A Flight is a call in flight in a lane that bounds their number. It ends once. The
// zero value, which calls of an unbounded lane have, is not in flight.
type Flight struct{ lasts atomic.Bool }

// Fly makes f the flight of a call that has departed, and will not be given back.
func (l *Lane) Fly(f *Flight) { f.lasts.Store(l.Gate.Bounded()) }

// Land ends a flight in the lane, and lets others depart. Ending it again does nothing.
func (l *Lane) Land(f *Flight) {
	if f.lasts.CompareAndSwap(true, false) {
		l.Gate.Vacate()
	}
}

// Lose ends a flight that can no longer be ended otherwise, because the body of its answer was
// dropped and not closed. The first one in a lane is logged. Cancel frees the connection.
func (l *Lane) Lose(f *Flight, cancel context.CancelCauseFunc) {
	if !f.lasts.CompareAndSwap(true, false) {
		return
	}
	if l.lost.CompareAndSwap(false, true) {
		l.warn("weir: the body of an answer was never closed: its call counted as in flight until the garbage collector found it")
	}
	cancel(nil)
	l.Gate.Vacate()
}
