package store

import (
	"time"

	"github.com/weirgo/weir/throttle"
)

// A Learner is what one process knows of the limit of a lane's vendor, if several processes share
// the lane. It is the state machine of a replicated log. The lane's store keeps the proposed
// entries in one order. Each process applies all of them in that order, so all learn the same. The
// store does not read the entries' data.
//
// A [Replicator] makes one call at a time, on any goroutine, and holds no lock
// that the learner's own methods take.
type Learner interface {
	// Propose returns what this process has to add to the log since the last
	// Propose.
	Propose(s FleetState) Entry

	// Apply applies the data of one entry, of this process or another. Ordinal is the store's
	// latest departure when it took the entry, and at is its instant by the store's clock.
	Apply(data []byte, ordinal int64, at throttle.Instant)

	// Snapshot returns everything that was applied so far, in at most 32 KiB, for a
	// process that comes later. That process calls Restore. If Restore cannot read
	// the snapshot, nothing was learned.
	Snapshot() []byte
	Restore(snapshot []byte)

	// Pacing returns the pacing of all processes together.
	Pacing(s FleetState) Pacing
}

// A FleetState is the state of a lane that several processes share, as its
// store last returned it to this one.
type FleetState struct {
	Now         throttle.Instant // instant by the store's clock
	ClockOffset time.Duration    // how far the store's clock is ahead of the lane's
	Ordinal     int64            // of the latest departure that the store granted
	Last        throttle.Instant // instant of that departure, possibly in the future
	Replicas    int              // processes that share the lane, this one included
	RoundTrip   time.Duration    // how long nearly every call to the store takes at most
	Landed      int64            // departures whose answers the store knew
	Canceled    []OrdinalRange   // departures found canceled since the last Propose
}

// An OrdinalRange is Count departures, by their ordinals, from First on.
type OrdinalRange struct{ First, Count int64 }

// An Entry is what a process adds to the log. The zero Entry adds nothing.
type Entry struct {
	Data      []byte
	Uncounted int     // departures since the last Entry that took no permit of the store
	Landed    int     // departures since the last Entry that were answered, or never will be
	Refused   int     // of those, the ones that the vendor refused: they spent nothing of its quota
	Reading   Reading // of the newest departure whose answer reported what is left of a quota
	Revoke    bool    // permits in any process's hands are void, and all processes must apply the entry at once
}

// Join adds the next entry of the same process to one that was not sent. Data is bounded: what would
// exceed most bytes is dropped.
func (e *Entry) Join(next Entry, most int) {
	if len(e.Data)+len(next.Data) <= most {
		e.Data = append(e.Data, next.Data...)
	}
	e.Uncounted += next.Uncounted
	e.Landed += next.Landed
	e.Refused += next.Refused
	if next.Reading.Ordinal >= e.Reading.Ordinal {
		e.Reading = next.Reading
	}
	e.Revoke = e.Revoke || next.Revoke
}

// Rest returns what is to be sent again of an entry that the store has received, whose data it took
// or did not take.
func (e *Entry) Rest(took bool) Entry {
	if took || len(e.Data) == 0 {
		return Entry{}
	}
	return Entry{Data: e.Data, Revoke: e.Revoke}
}

// A Reading is what the answer to a departure reports to be left of the vendor's quota. Calls are
// granted up to number Landed + Left + 1, in whatever order they arrive, unless others spend or a
// window ends. The store grants nothing above that at first, see [Pacing].
type Reading struct {
	Ordinal int64 // of the departure; zero: no reading
	Left    int64
	Landed  int64 // departures whose answers the store knew when this one left, as in [FleetState]
}

// A Pacing spaces the departures of all processes together. With the zero value they depart as they
// come.
type Pacing struct {
	Counted    bool             // each departure takes a permit of the store, which counts them, even if nothing delays it
	Interval   time.Duration    // from each departure to the next; zero: none
	Even       time.Duration    // from each departure to the next without the store, if Interval is less; zero: Interval
	NotBefore  throttle.Instant // no departure before it, by the store's clock; zero: no bound
	Probe      bool             // departures after the ordinal ProbeAfter go one by one, a second apart
	ProbeAfter int64
	Unbound    bool          // departures may pass the number that readings allow; otherwise they go one by one there
	Reserve    int           // departures up to that number that go one by one, too
	TTL        time.Duration // how long the store keeps what was learned without calls
}

// A Replicator is the part of a [Limiter] by which its store replicates a [Learner], so that
// the processes that share a lane learn together. The [Pacing] of the process
// that has applied most is enforced in the same decision as the limits, without
// another call to the store.
type Replicator interface {
	// Replicate makes the lane learn through the store. It is called once, before
	// the limiter is used.
	Replicate(l Learner)

	// Flush sends what the learner proposes at once, instead of with the next call.
	Flush()
}
