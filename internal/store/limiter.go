package store

import (
	"iter"

	"github.com/weirgo/weir/throttle"
)

// A Lender is a [throttle.Remote] that lends its call to the caller for whom it is made, who
// runs it on its own goroutine: the call then costs no switch to another and back. Its
// permits are of the callers for whom they were fetched. It is found by type assertion.
type Lender interface {
	throttle.Remote

	// Lend is Fetch for a line of one request, whose caller waits until an instant at
	// most. It may return the call that Fetch would have started: nil if there is none,
	// if it may take longer than that, or if the answer is not expected within a
	// millisecond or so. Whoever has it runs it once, at once and with no lock held. It
	// takes one answer of the store, or its deadline, and calls wake before it returns: a
	// caller who gives up meanwhile knows it no sooner. If it panics the caller's wait is
	// over, and Fetch receives those still in line.
	Lend(now, until throttle.Instant, line iter.Seq[throttle.Request]) (call func())

	// Holder returns the place in line, from zero on, of a caller that may go now although
	// the head may not, or -1 if no caller may.
	Holder(now throttle.Instant, line iter.Seq[throttle.Request]) (place int)
}

// A Vetoer is a [throttle.Limiter] that may hold a request for reasons of which Forecast is not
// certain, such as what was learned. It is found by type assertion.
type Vetoer interface {
	// Held returns until when those hold r now: Never if nobody knows, and an instant not after
	// now if they do not. It spends nothing.
	Held(now throttle.Instant, r throttle.Request) throttle.Instant
}

// A Limiter is the [throttle.Limiter] of a store that several processes share. A lane
// finds it by type assertion.
type Limiter interface {
	Lender
	Replicator

	// Watch registers what receives the calls to the store from now on. Only the last
	// Watch counts, and the zero one ends it.
	Watch(w Watch)
}
