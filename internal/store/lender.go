package store

import (
	"iter"

	"github.com/weirgo/weir/throttle"
)

// A Lender is a [throttle.Remote] that lends its call to the caller for whom it is made, who
// runs it on its own goroutine: the call then costs no switch to another and back. It
// is found by type assertion.
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
}
