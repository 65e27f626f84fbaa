package store

import (
	"iter"

	"github.com/weirgo/weir/throttle"
)

// A Lender is a [throttle.Remote] that lends its call to the caller that needs it. That runs it on
// its own goroutine, which saves a switch to another and back. Its permits are for the callers for
// whom they were fetched. It is found by type assertion.
type Lender interface {
	throttle.Remote

	// Lend is Fetch for a line of one request, whose caller waits until an instant at most. It may
	// return the call that Fetch would have started. It returns nil if there is none, if it may
	// take longer than that, or if the answer is not expected within about a millisecond. The
	// receiver runs it once, at once and with no lock held. The call takes one answer of the store,
	// or its deadline, and calls wake before it returns; a caller that gives up meanwhile learns of
	// it no sooner. If it panics the caller's wait ends, and Fetch receives those still in line.
	Lend(now, until throttle.Instant, line iter.Seq[throttle.Request]) (call func())

	// Holder returns the place in line, from zero on, of a caller that may depart now although the
	// head may not; -1 if there is none.
	Holder(now throttle.Instant, line iter.Seq[throttle.Request]) (place int)
}

// A Vetoer is a [throttle.Limiter] that may delay a request for reasons of which Forecast is not
// certain, such as a learned limit. It is found by type assertion.
type Vetoer interface {
	// Held returns until when those reasons delay r: Never if that is unknown, and an instant not
	// after now if they do not. It spends nothing.
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
