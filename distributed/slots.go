package distributed

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/weirgo/weir/throttle"
)

// slots are the calls of one lane in flight at this replica. The replicas of a lane
// share a number of slots, and each slot is the right to have one call in flight. A
// replica leases slots and not single flights: the next call in line has the slot of
// one that has ended, without a word to the store.
//
// A lease that is not renewed ends, at the replica before it does in the store, so
// that the slots of a replica that died come back. What a replica tells of its calls
// in flight the store believes, also after it has forgotten all.
//
// Locks: mu guards everything below it, and Store.mu may be taken while it is held.
// Neither is held while Redis is called or the queue woken. The methods of
// [throttle.Flights] lock mu, as do call, land, slow, tick and summoned. All other
// methods want it locked.
type slots struct {
	store *Store
	link  *link
	node  *node // written by the call in progress alone
	lane  string
	key   string
	id    string // of this replica in the lane's hash
	most  int    // of all replicas
	watched

	mu      sync.Mutex
	wake    func()
	closed  bool
	flying  int
	waiting int // callers in line
	lease   lease
	told    told
	trip    trip
	lost    bool
	retry   time.Time // no call before it; zero: at once
	timer   *time.Timer
	rings   time.Time // when the timer does; zero: it is not set
	stats   throttle.FlightState
}

var (
	_ throttle.FlightStore = (*Store)(nil)
	_ throttle.Flights     = (*slots)(nil)
)

// A told is what the store was told last.
type told struct {
	underway bool
	met      bool      // a call was answered
	number   int64     // of calls
	at       time.Time // when the last call left; zero: there was none
	wants    int       // slots that were wanted
	summoned bool      // the store has called for this replica since

	since time.Time // from here on counts
	peak  int       // the most slots that were wanted
}

// Flights implements [throttle.FlightStore]: this process has a part of the most calls
// that all processes of the namespace may have in flight under a key. If they differ in
// the most, the least holds. A part is leased for [Store.Lease], and renewed while it
// is used. If Redis is lost it holds until then, and after that what [Store.OnLoss]
// allows: with FailLocal [Store.Share] of the most divided by the processes, but one at
// least; with FailOpen the most for each process; with FailClosed none, and callers are
// refused with ErrUnavailable.
//
// The errors are those of [Store.Limiter], and one for a bound that is not positive. It
// does not reach for Redis: that begins with the first request.
func (s *Store) Flights(key string, most int) (throttle.Flights, error) {
	if err := s.ready(); err != nil {
		return nil, err
	}
	if most <= 0 || most > mostSlots {
		return nil, fmt.Errorf("distributed: %d calls in flight is not from 1 to %d", most, mostSlots)
	}
	f := &slots{
		store: s, lane: word(key), key: laneKey(s.namespace, key) + ":flights",
		id: strconv.FormatUint(rand.Uint64(), 36), most: most,
	}
	if err := s.attach(key, func(k *link) {
		f.link, f.node = k, k.node("")
		s.flights[f.lane] = append(s.flights[f.lane], f)
	}); err != nil {
		return nil, err
	}
	return f, nil
}

// mostSlots keeps the script's sums of all replicas' slots exact.
const mostSlots = 1 << 30

// wants returns how many slots would be used. Nobody waits for a slot while one is
// free: those in line then wait for something else.
func (f *slots) wants(now time.Time) int {
	allowed := f.allowed(now)
	if f.flying < allowed {
		return min(f.flying+f.waiting, allowed)
	}
	return min(f.flying+f.waiting, f.most)
}

// allowed returns how many calls may be in flight here.
func (f *slots) allowed(now time.Time) int {
	switch {
	case !f.lost:
		return f.lease.allows(now)
	case f.lease.has > 0 && now.Before(f.lease.until): // nobody can have them in turn
		return f.lease.has
	default:
		return f.share()
	}
}

// share returns how many calls may be in flight without the store, under the policy
// for its loss.
func (f *slots) share() int {
	switch set := &f.store.set; set.onLoss {
	case FailClosed:
		return 0
	case FailOpen:
		return f.most
	default:
		replicas := cmp.Or(f.stats.Processes, set.replicas, DefaultReplicas)
		return max(1, int(float64(f.most)*set.share/float64(replicas)))
	}
}

// Room implements [throttle.Flights].
func (f *slots) Room() (n int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	allowed := f.allowed(time.Now())
	if allowed == 0 && f.lost && !f.closed {
		return 0, fmt.Errorf("distributed: calls in flight of lane %q: %w: %s", f.lane, ErrUnavailable, f.stats.Cause)
	}
	return max(0, allowed-f.flying), nil
}

// Board implements [throttle.Flights].
func (f *slots) Board() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed || f.flying >= f.allowed(time.Now()) {
		return false
	}
	f.flying++
	f.told.peak = max(f.told.peak, f.flying)
	return true
}

// Land implements [throttle.Flights].
func (f *slots) Land() (held bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	held = f.flying == f.allowed(now)
	f.flying--
	f.consider(now)
	return held
}

// Await implements [throttle.Flights].
func (f *slots) Await(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.waiting = n
	now := time.Now()
	f.told.peak = max(f.told.peak, f.wants(now))
	f.consider(now)
}

// Notify implements [throttle.Flights].
func (f *slots) Notify(wake func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.wake = wake
}

// State implements [throttle.Flights].
func (f *slots) State() throttle.FlightState {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.stats
	s.Slots, s.Lost = f.allowed(time.Now()), f.lost
	return s
}

// Close implements [throttle.Flights]. The slots of calls that are still in flight are
// given back when their lease ends.
func (f *slots) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil
	}
	f.closed, f.wake, f.waiting = true, nil, 0
	if f.timer != nil {
		f.timer.Stop()
	}
	if !f.told.underway && !f.sayGoodbye() {
		f.store.leave(f)
	}
	return nil
}

// sayGoodbye begins a call that gives back what is not in flight, and reports whether
// there is anything.
func (f *slots) sayGoodbye() bool {
	return f.lease.holds(time.Now()) > f.flying && !f.lost && f.start()
}

// poll is how often a replica that wants more slots asks again without being called
// for: the news may be lost.
const poll = time.Second

// consider begins a call if one is due, or sets the timer for it.
func (f *slots) consider(now time.Time) {
	if f.closed || f.told.underway {
		return
	}
	if f.idled(now) && f.told.peak >= f.lease.holds(now) {
		f.told.since, f.told.peak = now, f.wants(now)
	}
	due := f.due(now)
	switch {
	case due.IsZero():
		return
	case !due.After(now):
		f.start()
	case f.timer == nil:
		f.timer = time.AfterFunc(due.Sub(now), f.tick)
		f.rings = due
	case f.rings.IsZero() || due.Before(f.rings):
		f.timer.Reset(due.Sub(now))
		f.rings = due
	}
}

// idled reports whether the most slots wanted were counted for long enough.
func (f *slots) idled(now time.Time) bool { return now.Sub(f.told.since) >= slotIdle }

// keeps returns how many slots this replica keeps. Those that are not wanted go back if
// others are short, or if they were idle for a while.
func (f *slots) keeps(now time.Time) int {
	if f.closed {
		return f.flying
	}
	n, wants := f.lease.holds(now), f.wants(now)
	switch {
	case f.lost: // nobody can have them
	case f.lease.contended, f.told.summoned:
		n = min(wants, f.lease.allows(now))
	case f.idled(now):
		n = min(n, f.told.peak)
	}
	return max(n, f.flying)
}

// due returns when the next call is due; zero: the store need not know of anything.
func (f *slots) due(now time.Time) (due time.Time) {
	t, set := &f.told, &f.store.set
	wants, has := f.wants(now), f.lease.holds(now)
	soonest := func(at time.Time) {
		if due.IsZero() || at.Before(due) {
			due = at
		}
	}
	if wants > 0 || has > 0 {
		soonest(t.at.Add(set.lease / 3))
	}
	switch {
	case t.summoned, f.keeps(now) < has:
		soonest(now)
	case has > wants:
		soonest(t.since.Add(slotIdle))
	case wants > has && has >= t.wants: // there was all that was asked for
		soonest(now)
	case wants > t.wants:
		soonest(t.at.Add(slotTurn))
	case wants > has:
		soonest(t.at.Add(poll))
	}
	if f.lease.contended && now.Before(f.lease.turn) {
		soonest(f.lease.turn)
	}
	if wants > has && t.at.Before(f.lease.news) {
		soonest(f.lease.news)
	}
	if !due.IsZero() && due.Before(f.retry) {
		due = f.retry
	}
	return due
}

// tick looks once more whether a call is due.
func (f *slots) tick() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rings = time.Time{}
	f.consider(time.Now())
}

// summoned is told by the news that the store has something for this replica, or wants
// something back.
func (f *slots) summoned() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.told.summoned = true
	f.consider(time.Now())
}
