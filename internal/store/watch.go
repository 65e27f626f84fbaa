package store

import "time"

// A Watchable is a [throttle.Limiter], or [Flights], that calls a store and tells of it. It is
// found by type assertion.
type Watchable interface {
	// Watch registers what is told from now on. Only the last StoreWatch counts, and
	// the zero one ends it.
	Watch(w StoreWatch)
}

// A StoreWatch is told what a limiter, or Flights, has to do with its store. A
// function that is nil is told nothing. The functions are called on any goroutine,
// with no lock held, before those who wait for the call are woken. They must not
// block.
type StoreWatch struct {
	Called  func(StoreCall)  // a call to the store has ended
	Strayed func(StoreEvent) // processes that share the limits fell out of step
}

// A StoreCall is a call to a store that has ended.
type StoreCall struct {
	Operation StoreOperation
	Began     time.Time
	Took      time.Duration
	Cause     string // of its failure, in one word such as "timeout"; "": it was answered
}

// A StoreOperation is what a call to a store is for.
type StoreOperation string

// The operations.
const (
	OperationReserve StoreOperation = "reserve" // permits for those in line
	OperationTell    StoreOperation = "tell"    // what happened here, or to hear of it: no permits
	OperationProbe   StoreOperation = "probe"   // whether a store that was lost is back
	OperationLease   StoreOperation = "lease"   // slots of calls in flight

	// OperationSubscribe is a subscription to the messages of other processes, or the
	// first message to them. Only a missing grant is reported.
	OperationSubscribe StoreOperation = "subscribe"
)

// A StoreEvent is how processes that share limits fell out of step, or came back
// into it.
type StoreEvent string

// The events.
const (
	EventLimitsDiffer StoreEvent = "limits_differ" // another process claims stricter limits, and those hold
	EventLimitsAgree  StoreEvent = "limits_agree"  // no other process claims stricter limits any more
	EventStateLost    StoreEvent = "state_lost"    // the store has lost what was used, and begins anew
	EventStateForeign StoreEvent = "state_foreign" // the state was none of this version's, and begins anew
	EventClockStepped StoreEvent = "clock_stepped" // the clocks of the store and of this process moved apart
	EventPermitsVoid  StoreEvent = "permits_void"  // most permits come too late to be used
)
