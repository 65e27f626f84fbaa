package distributed

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/weirgo/weir/distributed/internal/script"
	"github.com/weirgo/weir/internal/store"

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
// Locks: mu guards everything below it, and Store.mu and node.mu may be taken while it
// is held. None is held while Redis is called or the queue woken. The methods of
// [store.Flights] lock mu, as do call, longestCall, approach, prepare, land, probe, restore, tick
// and summoned. All other methods want it locked.
type slots struct {
	id   string // of this replica in the lane's hash
	most int    // of all replicas
	caller

	flying  int
	waiting int // callers in line
	lease   lease
	told    told
	away    bool      // the node is lost, and brings this back
	retry   time.Time // no call before it; zero: at once
	timer   *time.Timer
	rings   time.Time // when the timer does; zero: it is not set
	stats   throttle.FlightState
}

var (
	_ store.FlightStore = (*Store)(nil)
	_ store.Flights     = (*slots)(nil)
)

// Flights implements [store.FlightStore]: this process has a part of the most calls
// that all processes of the namespace may have in flight under a key. If they differ in
// the most, the least holds. A part is leased for [Store.Lease], and renewed while it
// is used. If Redis is lost it holds until then, and after that what [Store.OnLoss]
// allows: with FailLocal [Store.Share] of the most divided by the processes, but one at
// least; with FailOpen the most for each process; with FailClosed none, and callers are
// refused with ErrUnavailable.
//
// The errors are those of [Store.Limiter], and one for a bound that is not positive. It
// does not reach for Redis: that begins with the first request.
func (s *Store) Flights(key string, most int) (store.Flights, error) {
	if err := s.ready(); err != nil {
		return nil, err
	}
	if most <= 0 || most > script.MostSlots {
		return nil, fmt.Errorf("distributed: %d calls in flight is not from 1 to %d", most, script.MostSlots)
	}
	f := &slots{
		caller: caller{store: s, lane: script.Escape(key), key: script.KeyOf(s.layout, s.namespace, key) + ":flights"},
		id:     strconv.FormatUint(rand.Uint64(), 36), most: most,
	}
	if err := s.attach(key, func(k *link) {
		f.link, f.node = k, k.node("")
		s.flights[f.lane] = append(s.flights[f.lane], f)
	}); err != nil {
		return nil, err
	}
	return f, nil
}

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

// Room implements [store.Flights].
func (f *slots) Room() (n int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	allowed := f.allowed(time.Now())
	if allowed == 0 && f.lost && !f.closed {
		return 0, fmt.Errorf("distributed: calls in flight of lane %q: %w: %s", f.lane, ErrUnavailable, f.cause)
	}
	return max(0, allowed-f.flying), nil
}

// Board implements [store.Flights].
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

// Land implements [store.Flights].
func (f *slots) Land() (held bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	held = f.flying == f.allowed(now)
	f.flying--
	f.consider(now)
	return held
}

// Await implements [store.Flights].
func (f *slots) Await(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.waiting = n
	now := time.Now()
	f.told.peak = max(f.told.peak, f.wants(now))
	f.consider(now)
}

// State implements [store.Flights].
func (f *slots) State() throttle.FlightState {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.stats
	s.Slots, s.Cause, s.Lost = f.allowed(time.Now()), f.cause, f.lost
	return s
}

// Close implements [store.Flights]. The slots of calls that are still in flight are
// given back when their lease ends.
func (f *slots) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil
	}
	f.closed, f.wake, f.waiting = true, nil, 0
	f.node.Forget(f)
	if f.timer != nil {
		f.timer.Stop()
	}
	if !f.underway && !f.sayGoodbye() {
		f.store.leave(f)
	}
	return nil
}

// sayGoodbye begins a call that gives back what is not in flight, and reports whether
// there is anything.
func (f *slots) sayGoodbye() bool {
	return f.lease.holds(time.Now()) > f.flying && !f.lost && f.begin()
}
