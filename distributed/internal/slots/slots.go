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

// allowed returns how many calls may be in flight here. In a loss the policy decides, once the lease
// has ended.
func (f *Lane) allowed(now time.Time) int {
	switch set := &f.Hub.Set; {
	case f.open():
		return store.MostFlights
	case !f.Lost:
		return f.lease.allows(now)
	case f.lease.Has > 0 && now.Before(f.lease.until): // no other replica can have them in turn
		return f.lease.Has
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

// begin begins a call in the background, once there is a connection for it, and reports
// whether one is in progress.
func (f *Lane) begin() bool {
	_, ok := f.Start(f, f.waiting > 0)
	return ok
}

// Call implements [conn.Caller]. It applies the outcome, wakes the queue, and calls again if that is
// due.
func (f *Lane) Call() {
	var got script.LeaseReply
	o := f.Make(f, script.Slots, f.prepare, func(v any) (err error) {
		got, err = script.DecodeLease(v)
		return err
	})
	f.Mu.Lock()
	f.Landed()
	if o.Cause != call.Open {
		f.stats.Calls++
	}
	switch {
	case o.Err == nil:
		f.Answered(o.Took)
		f.lease.renew(&got, time.Now(), o.Read.Add(-o.Took), f.Hub.Set.Lease, f.flying)
		f.stats.Fleet, f.stats.Processes = got.Fleet, got.Replicas
	case o.Cause != call.Open:
		f.stats.Failures++
		fallthrough
	default:
		f.Failed(f, &o)
	}
	f.Mu.Unlock()
	f.WakeQueue() // callers depart before slots are given back
	f.Mu.Lock()
	defer f.Mu.Unlock()
	f.Underway = false
	if f.Closed {
		if !f.returnAll() {
			f.Hub.Detach(call.SlotsMessage+f.Lane, f)
		}
		return
	}
	if f.Lost {
		f.AskLater(f)
	}
	f.consider(time.Now())
}

// callTime is how long a replica that was asked to call may take. Then its slots go to another
// replica.
const callTime = time.Second

// prepare returns the words of a call, and gives back the slots that this replica does not keep.
func (f *Lane) prepare() ([]any, store.Operation) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	now, set, t := time.Now(), &f.Hub.Set, &f.sent
	if f.lease.Has = f.keeps(now); f.lease.Has <= f.lease.Sure { // the others go back
		f.lease.turn = time.Time{}
	}
	wants := f.wants(now)
	t.number, t.at, t.wants, t.learned, t.summoned = t.number+1, now, wants, f.learned, false
	t.since, t.peak = now, wants
	return append(conn.Command(nil, []any{f.Key}),
		f.id, t.number, f.most, script.Micros(set.Lease), f.lease.Has, max(wants, f.flying), script.Micros(callTime),
		f.Hub.Channel, call.SlotsMessage+" "+f.Lane, f.learned, int64(f.at)/1000), store.OperationLease
}

// Lose puts the policy for a loss in force.
func (f *Lane) Lose(cause string) { f.Lost, f.Cause = true, cause }

// Probe calls a store that did not answer.
func (f *Lane) Probe() {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	if f.Lost && !f.Closed && !f.Underway {
		f.begin()
	}
}

// Restore ends the loss after the node has answered another lane. A replica without callers in line
// or in flight does not call the store.
func (f *Lane) Restore(int) (owes bool) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	if f.Closed || !f.Lost || f.Underway {
		return false
	}
	if f.flying+f.waiting > 0 {
		f.begin()
	} else {
		f.Recover()
		f.consider(time.Now())
	}
	return false
}

// A lease is the slots of a lane that a replica was granted, each for one call in flight. Its
// arithmetic takes the instant. The zero lease has no slots.
type lease struct {
	script.LeaseReply           // the last one, but for slots that were given back since
	until             time.Time // when they end; zero: never granted
	turn              time.Time // end of its turn; zero: no turn
	unused            bool      // no call has departed in its turn
	freed             time.Time // when another's lease may end; zero: no other lease
}

const (
	// slotTurn is how long a replica keeps the slot that it has in turn: several calls of a usual
	// length share the cost of handing it on.
	slotTurn = 250 * time.Millisecond
	// unusedTurn is how long it keeps the slot until a call departs: its permit may fall due later. With
	// five seconds, calls that take ten to earn waited for good beside cheaper ones.
	unusedTurn = time.Minute

	// slotIdle is how long a replica keeps slots that it does not use, while no other replica
	// wants them.
	slotIdle = 100 * time.Millisecond
)

// holds returns how many slots it has.
func (l *lease) holds(now time.Time) int {
	if !now.Before(l.until) {
		return 0
	}
	return l.Has
}

// allows returns how many calls may be in flight: a call departs if there are fewer.
func (l *lease) allows(now time.Time) int {
	if !l.Contended {
		return l.holds(now)
	}
	fair := l.Sure
	if now.Before(l.turn) {
		fair += l.Extra
	}
	return min(l.holds(now), fair)
}

// renew applies a reply, read now, to a call sent at an instant, while calls are in flight.
func (l *lease) renew(got *script.LeaseReply, now, left time.Time, lasts time.Duration, flying int) {
	l.LeaseReply = *got
	l.until = left.Add(lasts) // the store counts from later
	if l.freed = (time.Time{}); got.Ends > 0 {
		l.freed = now.Add(got.Ends)
	}
	switch {
	case !l.Contended || l.Has <= l.Sure:
		l.turn = time.Time{}
	case l.turn.IsZero() && flying > l.Sure:
		l.turn = now.Add(slotTurn)
	case l.turn.IsZero():
		l.turn, l.unused = now.Add(unusedTurn), true
	}
}
