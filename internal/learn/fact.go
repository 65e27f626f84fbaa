package learn

import (
	"time"

	"github.com/weirgo/weir/throttle"
)

// A Fact is one answer of the vendor.
type Fact struct {
	Departed throttle.Instant // when the call left
	Landed   throttle.Instant // when its answer came
	Ordinal  int64            `json:",omitzero"` // number of the departure in the lane, from 1; in a fleet the store counts
	Granted  int64            `json:"-"`         // the lane's latest ordinal when the fact is observed
	Answered int64            `json:"-"`         // calls of the lane that are not in flight when the fact is observed; zero: not known
	Flying   int              // calls of the lane in flight when the call left, itself included
	Waited   bool             `json:",omitzero"`  // a caller stood in line when it left
	Refused  bool             `json:",omitzero"`  // for want of quota; false: served
	Until    throttle.Instant `json:",omitzero"`  // of a refusal, before which the vendor wants no calls; zero: none was asked for
	Quotas   []Quota          `json:",omitempty"` // what the answer reports of the vendor's limits; not kept

	guessed bool // Ordinal is the latest that was let go when the fact was sent, for it had none
}

// alone reports whether no other call of the lane was in flight from f's departure
// until its answer came. A call that left later may have overtaken f.
func (f *Fact) alone() bool { return f.Flying <= 1 && f.Granted <= f.Ordinal }

// A Setting is what the lane's owner wants. With the zero Setting nothing is
// configured, and reported windows are spent as calls come.
type Setting struct {
	Configured float64 // permits per second that the configured limits allow; zero: there are none
	Burst      float64 // permits that they allow at once
	Shared     bool    // processes share the lane: none knows how many calls of all are in flight, so that is not taken for what the vendor counts
	Waits      bool    // wait for resets that are exact: see [State.Room]
	Share      float64 // of the vendor's limit that the lane takes, see [Share]; zero or 1: all
	Spread     bool    // spread what is left of a reported window over the rest of it

	Without Mechanism // switched off, to measure what they are worth; zero: none is
}

// A Mode says what the learner takes the vendor to count.
type Mode uint8

// The modes.
const (
	Start  Mode = iota // nothing was refused yet: calls in flight grow
	Trial              // perhaps calls in flight: refused calls are tried again with fewer in flight
	Flight             // calls in flight
	Rate               // calls in a time
)

// A Mark is a departure: its ordinal and its instant.
type Mark struct {
	Ordinal int64
	At      throttle.Instant
}

// seconds returns s seconds.
func seconds(s float64) time.Duration { return time.Duration(s * 1e9) }
