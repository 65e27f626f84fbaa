package main

import (
	"time"

	"github.com/weirgo/weir/throttle"
)

// A result is the outcome of one run.
type result struct {
	client   string
	title    string          // the client in the picture
	asked    int             // calls that should have been made
	failed   int             // of the calls that ended
	cause    string          // of the first failure
	latency  []time.Duration // of each call that ended, failed ones too; sorted
	wall     time.Duration
	limit    throttle.Limit // the vendor's; for a user's endpoint Weir's
	service  time.Duration  // duration of an answer; zero: unknown
	remote   bool           // at a user's endpoint
	arrivals []arrival      // in order
}

// An arrival is a request as the embedded vendor saw it, or as this program
// sent it to a user's endpoint.
type arrival struct {
	at      time.Duration // since the target was opened
	refused bool          // with a 429
}

// calls returns how many calls ended, without those that Ctrl-C cut off.
func (r result) calls() int { return len(r.latency) }

// answered returns how many calls succeeded.
func (r result) answered() int { return r.calls() - r.failed }

// refused returns how many requests got a 429.
func (r result) refused() int { return countRefused(r.arrivals) }

func countRefused(as []arrival) int {
	n := 0
	for _, a := range as {
		if a.refused {
			n++
		}
	}
	return n
}

// span returns when the last request arrived.
func (r result) span() time.Duration {
	if len(r.arrivals) == 0 {
		return 0
	}
	return r.arrivals[len(r.arrivals)-1].at
}

// ideal returns the shortest time for the calls that ended: the burst at once, the others at the
// rate, and the last answer.
func (r result) ideal() time.Duration {
	later := max(0, r.calls()-r.limit.Burst)
	return time.Duration(float64(later)*float64(r.limit.Per)/float64(r.limit.Permits)) + r.service
}
