package testserver

import "time"

// untold is the wait of a request that does not fit, if it is unknown.
const untold time.Duration = -1

// A meter is the state of one limit for one key. Instants are times since the
// vendor's start and never go back.
type meter interface {
	// wait returns the time until cost permits are free: zero if they are now.
	wait(now time.Duration, cost int) time.Duration
	// spend takes cost permits. The caller knows from wait that they are free.
	spend(now time.Duration, cost int)
	// done says that a request which spent cost has been answered.
	done(cost int)
	// standing returns the state for the vendor's answer.
	standing(now time.Duration) Standing
	// resume takes over the count of the previous meter in the same place.
	resume(old meter)
}

// A Standing is the state of one limit when a vendor answers.
type Standing struct {
	Limit     Limit
	Remaining int           // whole permits left
	Reset     time.Duration // until all permits are back, or the window ends; negative: not reported
	Next      time.Duration // until one permit more, or the window ends; zero: none will come
	Wait      time.Duration // until this request would fit; zero: it fits, or unknown
}

// ceil returns a/b rounded up, for positive numbers.
func ceil(a, b int64) int64 { return (a + b - 1) / b }
