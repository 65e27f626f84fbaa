package store

import "time"

// A Watch receives what a [Limiter], or [Flights], has to do with its store. A
// function that is nil is not called. The functions are called on any goroutine,
// with no lock held, before those who wait for the call are woken. They must not
// block.
type Watch struct {
	Called  func(Call)  // a call to the store has ended
	Strayed func(Event) // processes that share the limits fell out of step
}

// A Call is a call to a store that has ended.
type Call struct {
	Operation Operation
	Began     time.Time
	Took      time.Duration
	Cause     string // of its failure, in one word such as "timeout"; "": it was answered
}

// A Operation is what a call to a store is for.
type Operation string

// The operations.
const (
	OperationReserve Operation = "reserve" // permits for those in line
	OperationTell    Operation = "tell"    // what happened here, or elsewhere: no permits
	OperationProbe   Operation = "probe"   // whether a store that was lost is back
	OperationLease   Operation = "lease"   // slots of calls in flight

	// OperationSubscribe is a subscription to the messages of other processes, or the
	// first message to them. Only a missing grant is reported.
	OperationSubscribe Operation = "subscribe"
)

// A Event is how processes that share limits fell out of step, or came back
// into it.
type Event string

// The events.
const (
	EventLimitsDiffer Event = "limits_differ" // another process claims stricter limits, and those hold
	EventLimitsAgree  Event = "limits_agree"  // no other process claims stricter limits any more
	EventStateLost    Event = "state_lost"    // the store has lost what was used, and begins anew
	EventStateForeign Event = "state_foreign" // the state was none of this version's, and begins anew
	EventClockStepped Event = "clock_stepped" // the clocks of the store and of this process moved apart
	EventPermitsVoid  Event = "permits_void"  // most permits come too late to be used
)
