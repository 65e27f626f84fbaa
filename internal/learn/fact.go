package learn

import (
	"time"

	"github.com/weirgo/weir/throttle"
)

// A Fact is one answer of the vendor.
type Fact struct {
	Departed throttle.Instant // when the call departed
	Landed   throttle.Instant // when its answer came
	Ordinal  int64            `json:",omitzero"` // number of the departure in the lane, from 1; in a fleet the store counts
	Granted  int64            `json:"-"`         // the lane's latest ordinal when the fact is observed
	Answered int64            `json:"-"`         // calls of the lane that are answered when the fact is observed, with this one; zero: unknown
	Flying   int              // calls of the lane in flight when the call departed, itself included
	Waited   bool             `json:",omitzero"`  // a caller was in line when it departed
	Refused  bool             `json:",omitzero"`  // for lack of quota; false: served
	Until    throttle.Instant `json:",omitzero"`  // of a refusal: the vendor wants no calls before; zero: none
	Quotas   []Quota          `json:",omitempty"` // reported by the answer; not kept

	guessed bool // the call had no ordinal: Ordinal is a guess, the latest when the fact came
}

// alone reports whether f was the only call of the lane in flight, and departed last. A later call may have overtaken it.
func (f *Fact) alone() bool { return f.Flying <= 1 && f.Granted <= f.Ordinal }

// A Setting is the lane's configuration. The zero Setting configures nothing, and spends reported windows as calls come.
type Setting struct {
	Configured float64 // permits per second of the configured limits; AnyRate: they name no rate; zero: nothing is configured
	Burst      float64 // permits of the configured limits at once
	Shared     bool    // processes share the lane: no process knows all calls in flight until the store bounds them
	Waits      bool    // wait for resets that are exact: see [State.Room]
	Share      float64 // of the vendor's limit that the lane takes, see [Share]; zero or 1: all
	Spread     bool    // spread the remaining permits of a reported window evenly over time

	Without Mechanism // switched off, to measure its worth, or as nothing can bound the calls in flight of all processes; zero: none
}

// A Mode is what the learner assumes the vendor to count.
type Mode uint8

// The modes.
const (
	Start  Mode = iota // no refusal yet: calls in flight grow
	Trial              // perhaps calls in flight: after a refusal, fewer are tried
	Flight             // calls in flight
	Rate               // calls in a time
)

// A Mark is a departure: its ordinal and its instant.
type Mark struct {
	Ordinal int64
	At      throttle.Instant
}

func seconds(s float64) time.Duration { return time.Duration(s * 1e9) }
