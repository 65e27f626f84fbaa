package store

import "time"

// A Watch receives events between a [Limiter], or [Flights], and its store. A nil function is not
// called. The functions are called on any goroutine, with no lock held, before the callers that
// wait for the call are woken. They must not block.
type Watch struct {
	Called  func(Call)  // a call to the store has ended
	Strayed func(Event) // processes that share the limits diverged
}

// A Call is a call to a store that has ended.
type Call struct {
	Operation Operation
	Began     time.Time
	Took      time.Duration
	Cause     string // of its failure, in one word such as "timeout"; "": it was answered
}

// An Operation is the purpose of a call to a store.
type Operation string

// The operations.
const (
	OperationReserve Operation = "reserve" // permits for those in line
	OperationTell    Operation = "tell"    // reports of this process, or of others: no permits
	OperationProbe   Operation = "probe"   // whether a lost store is back
	OperationLease   Operation = "lease"   // slots of calls in flight

	// OperationSubscribe is a subscription to the messages of other processes, or the
	// first message to them. Only a missing grant is reported.
	OperationSubscribe Operation = "subscribe"
)

// An Event is how processes that share limits diverged, or agree again.
type Event string

// The events.
const (
	EventLimitsDiffer Event = "limits_differ" // another process claims stricter limits, which are enforced
	EventLimitsAgree  Event = "limits_agree"  // no other process claims stricter limits now
	EventStateLost    Event = "state_lost"    // the store has lost its counts, and begins again
	EventStateForeign Event = "state_foreign" // the state was not of this version, and begins again
	EventClockStepped Event = "clock_stepped" // the clocks of the store and of this process moved apart
	EventPermitsVoid  Event = "permits_void"  // most permits arrive too late to be used
)
