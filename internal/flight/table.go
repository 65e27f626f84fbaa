package flight

import (
	"cmp"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirgo/weir/throttle"
)

// Patience is the least time that a call may take while others wait for it. Then the next one
// departs: an unanswered call is neither good nor bad.
const Patience = time.Second

// Lease returns how long an answer is waited for, if answers usually take the given time. It is
// four times as long, but at least [Patience] and at most ten times that:
//
//	50 ms   1 s
//	1 s     4 s
//	1 min   10 s
func Lease(usual time.Duration) time.Duration {
	return min(max(Patience, 4*usual), 10*Patience)
}

// flyingBits is the number of bits in a Seen for the calls in flight: 16 million.
const flyingBits = 24

// A Seen is the state of a table when a call departed: how many calls had departed,
// and how many of them were in flight, itself included. Zero belongs to a call that
// did not depart.
type Seen uint64

// Ordinal returns the number of the departure.
func (s Seen) Ordinal() int64 { return int64(s >> flyingBits) }

// Flying returns the number of calls in flight.
func (s Seen) Flying() int { return int(s & (1<<flyingBits - 1)) }

// A Call is the entry of a call in flight.
type Call struct {
	ID      uint64
	At      throttle.Instant // when it departed; never before that of an earlier entry
	Seen    Seen             // for the learner; zero: it does not count there
	Given   int64            // its ordinal in the store of a fleet; zero: none
	Over    int64            // calls of the fleet whose answers the store knew at its departure
	Refused bool             // by the server
	Places  int              // how many calls in flight a fleet allowed when it took one of their places; zero: it has none
	Probe   uint64           // the closing of the gate after which it departed; zero: none
	Bills   [MaxBills]Bill   // of the units in which quotas are reported
	Hangs   bool             // overdue, and counted no longer

	prev, next *Call
}

// MaxBills is the most units in which the calls of a lane are counted.
const MaxBills = 3

// A Bill is what a call costs in one unit.
type Bill struct {
	Cost   int64
	Number int64 // cost of all departed calls, with this one
	Flying int64 // cost of the calls in flight, with this one
	Read   bool  // its answer reported a quota in the unit
}

// A Turn is a call that asks to depart, departs, or does not depart after all. Since is the
// earliest instant at which it may be charged. With an ID of zero, it is no call in flight.
type Turn struct {
	throttle.Request
	Now   throttle.Instant
	Grant throttle.Grant // of its permits; not after Now; zero: not granted yet
	Call  *Call          // nil: no entry

	Forecast bool // asks only when it could depart
}

// A Table holds the calls in flight of one lane. The zero value is empty. The methods
// that count are safe for concurrent use; the others need the lock.
type Table struct {
	seen atomic.Uint64
	kept atomic.Int64 // entries

	// The lock guards the entries, and the state of the vetoes that use them: they see the same
	// calls, and a call boards with all of them or with none.
	sync.Mutex

	// Ended are called once for each entry, under the lock, when its call is no longer in flight: it
	// landed, did not depart after all, or is overdue.
	Ended []func(*Call)

	// Left is called once for each entry, under the lock, when it is removed. If nil, nothing is called.
	Left func(*Call)

	calls map[uint64]*Call
	last  *Call         // in the order of departures
	fresh *Call         // the first that does not hang; nil: all hang
	usual time.Duration // duration of an answer; zero: no answer yet
	spare *Call         // entries to reuse
}

// Look returns the state of the table.
func (t *Table) Look() Seen { return Seen(t.seen.Load()) }

// Depart counts one more call in flight. It returns false if the most allowed are in flight; zero:
// any number.
func (t *Table) Depart(most int64) (Seen, bool) {
	for {
		v := t.seen.Load()
		if most > 0 && int64(Seen(v).Flying()) >= most {
			return Seen(v), false
		}
		if t.seen.CompareAndSwap(v, v+1<<flyingBits+1) {
			return Seen(v + 1<<flyingBits + 1), true
		}
	}
}

// Answered counts one call fewer in flight.
func (t *Table) Answered() {
	for {
		v := t.seen.Load()
		if Seen(v).Flying() == 0 || t.seen.CompareAndSwap(v, v-1) {
			return
		}
	}
}

// Pass counts a departure that is no longer in flight.
func (t *Table) Pass() { t.seen.Add(1 << flyingBits) }

// Start makes the table one with a number of departed calls.
func (t *Table) Start(departed int64) { t.seen.Store(uint64(departed) << flyingBits) }

// Kept returns how many entries there are. It takes no lock.
func (t *Table) Kept() int64 { return t.kept.Load() }

// Board makes the entry of a call that departs now.
func (t *Table) Board(now throttle.Instant, id uint64) *Call {
	t.Leave(id) // it was never landed
	c := t.spare
	if c == nil {
		c = new(Call)
	}
	t.spare = c.next
	*c = Call{ID: id, At: now, prev: t.last}
	if t.last != nil { // calls that depart together may have read the clock in another order
		c.At, t.last.next = max(now, t.last.At), c
	}
	t.last = c
	if t.fresh == nil {
		t.fresh = c
	}
	if t.calls == nil {
		t.calls = make(map[uint64]*Call)
	}
	t.calls[id] = c
	t.kept.Add(1)
	return c
}

// Find returns the entry of a call, or nil.
func (t *Table) Find(id uint64) *Call { return t.calls[id] }

// Land removes the entry of a call that was answered now, or has failed. It returns the zero call
// without an entry.
func (t *Table) Land(now throttle.Instant, id uint64) Call {
	c := t.Leave(id)
	if c.ID == 0 {
		return c
	}
	took := now.Sub(c.At)
	t.usual = cmp.Or(t.usual, took)
	t.usual += (took - t.usual) / 8 // as TCP smooths round trips: RFC 6298, section 2
	return c
}

// Leave removes the entry of a call that does not depart after all.
func (t *Table) Leave(id uint64) Call {
	c := t.calls[id]
	if c == nil {
		return Call{}
	}
	delete(t.calls, id)
	t.kept.Add(-1)
	if !c.Hangs {
		for _, ended := range t.Ended {
			ended(c)
		}
	}
	if t.Left != nil {
		t.Left(c)
	}
	if t.fresh == c {
		t.fresh = c.next
	}
	if c.prev != nil {
		c.prev.next = c.next
	}
	if c.next == nil {
		t.last = c.prev
	} else {
		c.next.prev = c.prev
	}
	left := *c
	left.prev, left.next = nil, nil
	*c = Call{next: t.spare}
	t.spare = c
	return left
}

// Lapse ends overdue calls, by how long answers take here. It returns when the next one will be
// overdue; [throttle.Never]: no other call has an entry.
func (t *Table) Lapse(now throttle.Instant) (next throttle.Instant) {
	lease := Lease(t.usual)
	for ; t.fresh != nil; t.fresh = t.fresh.next {
		if over := t.fresh.At.Add(lease); over > now {
			return over
		}
		t.fresh.Hangs = true
		for _, ended := range t.Ended {
			ended(t.fresh)
		}
	}
	return throttle.Never
}

// Recent returns how many of the calls selected by counts departed less than a lease ago. It also
// returns when there will be one fewer without an answer; [throttle.Never] if there are none.
func (t *Table) Recent(now throttle.Instant, lease time.Duration, counts func(*Call) bool) (n int, fewer throttle.Instant) {
	fewer = throttle.Never
	for c := t.last; c != nil && c.At.Add(lease) > now; c = c.prev {
		if counts(c) {
			n, fewer = n+1, c.At.Add(lease)
		}
	}
	return n, fewer
}
