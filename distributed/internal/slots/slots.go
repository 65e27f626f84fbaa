package slots

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/weirgo/weir/distributed/internal/call"
	"github.com/weirgo/weir/distributed/internal/conn"
	"github.com/weirgo/weir/distributed/internal/script"
	"github.com/weirgo/weir/internal/store"
	"github.com/weirgo/weir/throttle"
)

// A Lane is the calls of one lane in flight at this replica. The replicas of a lane share
// a number of slots, and each slot is the right to have one call in flight. A replica
// leases slots and not single flights: the next call in line has the slot of one that has
// ended, without a call to Redis.
//
// A lease that is not renewed ends at the replica before it ends in Redis, so the slots of a dead
// replica are free again. Redis believes the number of calls in flight that a replica sends, even
// after losing its state.
//
// Locks: those of [call.Caller], whose Mu guards all but the id and most. The methods of
// [store.Flights] and [conn.Caller] lock it, as do prepare and tick. Callers of all other
// methods hold it.
type Lane struct {
	id   string // of this replica in the lane's hash
	most int    // of all replicas, as configured
	call.Caller

	flying  int
	waiting int              // callers in line
	learned int              // most of all replicas, as they have learned together; zero: not bounded by that
	at      throttle.Instant // when that was learned, by the clock of Redis; zero: never
	lease   lease
	sent    sent
	timer   conn.Timer
	stats   throttle.FlightState
}

var _ store.Flights = (*Lane)(nil)

// New returns the slots of a lane. The error is for a bound that is not positive.
func New(h *call.Hub, key string, most int) (*Lane, error) {
	if most <= 0 || most > store.MostFlights {
		return nil, fmt.Errorf("distributed: %d calls in flight is not from 1 to %d", most, store.MostFlights)
	}
	f := &Lane{
		Caller: call.Caller{Hub: h, Lane: script.Escape(key), Key: script.FlightsKey(script.KeyOf(h.Layout, h.Namespace, key))},
		id:     strconv.FormatUint(rand.Uint64(), 36), most: most,
	}
	f.timer.Ring = f.tick
	return f, nil
}

// wants returns how many slots would be used. While a slot is free, callers in line wait for
// something else.
func (f *Lane) wants(now time.Time) int {
	if f.open() {
		return 0
	}
	allowed := f.allowed(now)
	if f.flying < allowed {
		return min(f.flying+f.waiting, allowed)
	}
	return min(f.flying+f.waiting, f.bound())
}

// bound returns the most calls in flight of all replicas.
func (f *Lane) bound() int {
	if f.learned > 0 {
		return min(f.most, f.learned)
	}
	return f.most
}

// open reports whether nothing bounds the calls in flight: no slots are leased then.
func (f *Lane) open() bool { return f.bound() == store.MostFlights }

// allowed returns how many calls may be in flight here.
func (f *Lane) allowed(now time.Time) int {
	switch {
	case f.open():
		return store.MostFlights
	case !f.Lost:
		return f.lease.allows(now)
	case f.lease.Has > 0 && now.Before(f.lease.until): // no other replica can have them in turn
		return f.lease.Has
	default:
		return f.share()
	}
}

// share returns how many calls may be in flight under the policy for a loss.
func (f *Lane) share() int {
	switch set := &f.Hub.Set; {
	case set.FailClosed:
		return 0
	case set.FailOpen:
		return f.bound()
	default:
		replicas := cmp.Or(f.stats.Processes, set.Replicas, call.DefaultReplicas)
		return max(1, int(float64(f.bound())*set.Share/float64(replicas)))
	}
}

// Room implements [store.Flights].
func (f *Lane) Room() (n int, err error) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	allowed := f.allowed(time.Now())
	switch {
	case f.Closed:
		return 0, fmt.Errorf("distributed: calls in flight of lane %q: %w", f.Lane, call.ErrClosed)
	case allowed == 0 && f.Lost:
		return 0, fmt.Errorf("distributed: calls in flight of lane %q: %w: %s", f.Lane, call.ErrUnavailable, f.Cause)
	}
	return max(0, allowed-f.flying), nil
}

// Turn implements [store.Flights].
func (f *Lane) Turn() time.Duration {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	if l := &f.lease; l.Contended && l.Sure == 0 && !l.turn.IsZero() {
		return max(0, time.Until(l.turn))
	}
	return 0
}

// Board implements [store.Flights].
func (f *Lane) Board() bool {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	if f.Closed || f.flying >= f.allowed(time.Now()) {
		return false
	}
	f.flying++
	f.sent.peak = max(f.sent.peak, f.flying)
	if l := &f.lease; l.unused && !l.turn.IsZero() && f.flying > l.Sure {
		l.turn, l.unused = time.Now().Add(slotTurn), false
	}
	return true
}

// Land implements [store.Flights].
func (f *Lane) Land() (held bool) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	now := time.Now()
	held = f.flying == f.allowed(now)
	f.flying--
	f.consider(now)
	return held
}

// Bound implements [store.Flights].
func (f *Lane) Bound(most int, learned throttle.Instant) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	before := f.learned
	if f.learned, f.at = min(most, store.MostFlights), learned; f.learned != before {
		f.consider(time.Now())
	}
}

// Await implements [store.Flights].
func (f *Lane) Await(n int) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	f.waiting = n
	now := time.Now()
	f.sent.peak = max(f.sent.peak, f.wants(now))
	f.consider(now)
}

// State implements [store.Flights].
func (f *Lane) State() throttle.FlightState {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	s := f.stats
	s.Slots, s.Cause, s.Lost = f.allowed(time.Now()), f.Cause, f.Lost
	return s
}

// Close implements [store.Flights]. The slots of calls that are still in flight are
// given back when their lease ends.
func (f *Lane) Close() error {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	if f.Closed {
		return nil
	}
	f.Leave(f)
	f.waiting = 0
	f.timer.Stop()
	if !f.Underway && !f.returnAll() {
		f.Hub.Detach(call.SlotsMessage+f.Lane, f)
	}
	return nil
}

// returnAll begins a call that gives back unused slots, and reports whether there are any.
func (f *Lane) returnAll() bool {
	return f.lease.holds(time.Now()) > f.flying && !f.Lost && f.begin()
}
