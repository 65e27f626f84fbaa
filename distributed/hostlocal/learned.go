package hostlocal

import (
	"slices"
	"time"

	"github.com/weirgo/weir/internal/store"
	"github.com/weirgo/weir/throttle"
)

// A learned is a lane's state of learning, as decided by the process that has applied most
// messages. It follows the rules of learned.lua in a fleet's store, except for permits held ahead:
// there are none here. Instants are of the lane's clock in the file.
type learned struct {
	counted  int64 // 1: departures are counted
	ordinal  int64 // of the last departure
	last     int64 // instant of that departure
	landed   int64 // departures that were answered, or never will be
	applied  int64 // place up to which the deciding process had applied messages
	upto     int64 // the latest ordinal that it knew then
	to       int64 // place behind the last message
	interval int64 // from one departure to the next, in nanoseconds; zero: none
	hold     int64 // no departure before this instant
	alone    int64 // 1: departures after the ordinal since go one by one
	since    int64
	lease    int64 // when the last single departure has its answer
	keep     int64 // lifetime of all this, in nanoseconds
	touched  int64 // instant of the last exchange
	unbound  int64 // 1: readings bound nothing
	reserve  int64 // departures below the ceiling that go one by one, too
	ceiling  int64 // departures above it go one by one; zero: no ceiling
	newest   int64 // departure of the reading that set the ceiling
	mark     int64 // departures up to it have arrived at the instant due
	due      int64
}

// numbers returns the fields, in the order in which they are stored.
func (k *learned) numbers() [20]*int64 {
	return [...]*int64{
		&k.counted, &k.ordinal, &k.last, &k.landed, &k.applied, &k.upto, &k.to, &k.interval, &k.hold, &k.alone, &k.since, &k.lease,
		&k.keep, &k.touched, &k.unbound, &k.reserve, &k.ceiling, &k.newest, &k.mark, &k.due,
	}
}

const (
	probeLease = time.Second          // longest wait for the answer to a single departure
	askSoon    = 5 * time.Millisecond // shortest time until a process that waits for an answer asks again
	silent     = 2 * time.Second      // age at which a dead process's answers count as known
)

// holdsTo returns the instant of the earliest departure.
func (k *learned) holdsTo(now throttle.Instant, members int) throttle.Instant {
	hold := throttle.Instant(k.hold)
	if k.counted == 0 {
		return 0
	}
	lease := throttle.Instant(k.lease)
	if k.alone == 1 && k.ordinal > k.since {
		return max(hold, lease)
	}
	applied := k.landed == k.ordinal && k.applied >= k.to        // all answers are applied
	below := k.ceiling <= 0 || k.ceiling-k.reserve-k.ordinal > 0 // not one by one
	if below || k.alone == 1 || applied {
		return hold
	}
	// Processes take turns to ask, half as often after each time without a departure.
	since := now.Sub(lease.Add(-probeLease))
	return max(hold, min(lease, now.Add(max(askSoon, since/2)*time.Duration(members))))
}

// depart counts a departure.
func (k *learned) depart(now throttle.Instant) {
	if k.counted == 0 {
		return
	}
	k.ordinal++
	k.last = int64(now)
	if k.alone == 1 || k.ceiling > 0 {
		k.lease = int64(now.Add(probeLease))
	}
}

// An update is what a process adds to what was learned.
type update struct {
	place    int64 // up to which it has applied the messages
	ordinal  int64 // the latest that it knows
	landed   int64 // departures that it knew as answered, if the file lost them
	lapsed   int64 // departures that did not take place
	entry    store.Entry
	pacing   store.Pacing
	snapshot []byte // of what was learned at its place; nil: none
}

// decide puts the pacing of a process in force if no other has applied more.
func (k *learned) decide(u *update) {
	if !(u.place > k.applied || u.place == k.applied && u.ordinal >= k.upto || k.applied > k.to) {
		return
	}
	p := &u.pacing
	k.applied, k.upto = u.place, u.ordinal
	k.counted, k.interval, k.hold = asNumber(p.Counted), int64(max(p.Interval, 0)), max(int64(p.NotBefore), 0)
	k.alone, k.since, k.keep = asNumber(p.Probe), p.ProbeAfter, int64(p.TTL)
	k.unbound, k.reserve = asNumber(p.Unbound), int64(max(p.Reserve, 0))
}

// read applies how many departures were answered, how many of them spent nothing, and a reading:
// the vendor grants all departures up to the ceiling, in any order of arrival. See [store.Reading].
func (k *learned) read(now throttle.Instant, u *update) {
	e := &u.entry
	k.landed = min(k.landed+int64(e.Landed)+u.lapsed, k.ordinal)
	if k.unbound == 1 {
		k.ceiling, k.newest, k.mark, k.due = 0, 0, 0, 0
		return
	}
	later := int64(now.Add(silent))
	if k.ceiling > 0 && int64(now) > k.due || k.due > later {
		k.landed = max(k.landed, min(k.mark, k.ordinal))
		k.mark, k.due = k.ordinal, later
	}
	if k.ceiling > 0 {
		k.ceiling += int64(e.Refused) + u.lapsed
		if k.lease > 0 && int64(now) >= k.lease {
			k.landed = k.ordinal // an answer that is missing for so long never comes
		}
	}
	if r := e.Reading; r.Ordinal > k.newest {
		low := r.Left + r.Landed + 1
		if k.ceiling == 0 {
			k.lease = int64(now.Add(probeLease))
		}
		if k.ceiling > r.Left+k.ordinal { // another program spends, too
			k.ceiling = low
		}
		k.ceiling, k.newest = max(k.ceiling, low), r.Ordinal
	}
}

// take applies an update, and what it adds to the journal. It reports whether the message is in the
// journal.
func (k *learned) take(now throttle.Instant, j *journal, u *update) (took bool) {
	if k.keep > 0 && now.Sub(throttle.Instant(k.touched)) > time.Duration(k.keep) {
		*k, *j = learned{}, journal{written: true}
	}
	k.touched = int64(now)
	k.ordinal = max(k.ordinal, u.ordinal) + int64(u.entry.Uncounted)
	k.landed = max(k.landed, u.landed)
	if u.snapshot != nil && u.place > j.from {
		j.condense(u.place, u.snapshot)
	}
	if u.place <= j.to() && len(u.entry.Data) > 0 && len(j.entries) < mostEntries {
		j.add(k.ordinal, now, u.entry.Data)
		took = true
	}
	k.to = j.to()
	k.decide(u)
	k.read(now, u)
	if u.lapsed > 0 || took && u.entry.Revoke {
		k.lease = 0
	}
	return took
}

const (
	mostEntries = 48 << 10 // bytes of messages that are kept
	condenseAt  = 4 << 10  // bytes of messages that the next process replaces by a snapshot
)

// A journal is the messages of the processes in one order. A place is a number of bytes before it.
type journal struct {
	from     int64  // place of the first message
	snapshot []byte // of all before it
	entries  []byte
	written  bool // must be stored
}

// to returns the place behind the last message.
func (j *journal) to() int64 { return j.from + int64(len(j.entries)) }

// add appends a message.
func (j *journal) add(ordinal int64, at throttle.Instant, message []byte) {
	j.entries = append(numbers(j.entries, ordinal, int64(at), int64(len(message))), message...)
	j.written = true
}

// condense replaces the messages before a place by a snapshot. A place after all of them is of a
// file that was lost: then they follow the snapshot, which lacks them. So is a place within a
// message: its snapshot is not used.
func (j *journal) condense(place int64, snapshot []byte) {
	behind := place - j.from
	before := j.entries[:min(behind, int64(len(j.entries)))]
	if each(before, func([]byte, int64, throttle.Instant) {}) < int64(len(before)) {
		return
	}
	if int64(len(before)) == behind {
		j.entries = slices.Clone(j.entries[behind:])
	}
	j.from, j.snapshot, j.written = place, snapshot, true
}

// append writes the journal.
func (j *journal) append(b []byte) []byte {
	b = append(numbers(b, j.from, int64(len(j.snapshot))), j.snapshot...)
	return append(b, j.entries...)
}

// readJournal reads a journal; an empty one if the bytes are invalid.
func readJournal(b []byte) (j journal) {
	r := reader{b: slices.Clone(b)}
	j.from = r.next()
	j.snapshot = r.bytes(r.count(1))
	j.entries = r.b
	if r.bad || j.from < 0 {
		return journal{}
	}
	return j
}

// each calls apply with the messages, and returns how many bytes were valid.
func each(entries []byte, apply func(message []byte, ordinal int64, at throttle.Instant)) int64 {
	r := reader{b: entries}
	left := len(entries)
	for left > 0 {
		ordinal, at, n := r.next(), throttle.Instant(r.next()), r.count(1)
		if r.bad {
			break
		}
		apply(r.bytes(n), ordinal, at)
		left = len(r.b)
	}
	return int64(len(entries) - left)
}

func asNumber(is bool) int64 {
	if is {
		return 1
	}
	return 0
}
