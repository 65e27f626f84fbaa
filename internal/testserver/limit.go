package testserver

import (
	"fmt"
	"math"
	"time"
)

// A Limit is one rule that a [Vendor] enforces. Make one with [TokenBucket],
// [FixedWindow], [FirstUseWindow], [SlidingLog] or [Concurrency]; the zero Limit
// is not valid.
type Limit struct {
	Name    string        // what headers call it; if empty, the algorithm's name
	Permits int           // permits granted in each Per; for Concurrency, most requests at once
	Per     time.Duration // zero for Concurrency
	Burst   int           // most permits at once, for TokenBucket
	Unit    string        // what it counts, for [Of]; "requests": each request needs one permit, whatever it costs

	kind kind
}

// A kind is a limit's algorithm.
type kind uint8

const (
	tokenBucket kind = iota + 1
	fixedWindow
	firstUseWindow
	slidingLog
	concurrency
)

var kindNames = [...]string{"invalid", "token-bucket", "fixed-window", "first-use-window", "sliding-log", "concurrency"}

// TokenBucket returns a bucket that begins full with burst permits and gains
// permits evenly in each per. It panics unless all three are positive.
func TokenBucket(permits int, per time.Duration, burst int) Limit {
	l := Limit{Permits: permits, Per: per, Burst: burst, kind: tokenBucket}
	l.mustBeValid()
	return l
}

// FixedWindow returns a count per window. Windows are aligned with the
// vendor's wall clock: a window of an hour begins at the full hour, UTC. It
// panics unless both are positive.
func FixedWindow(permits int, per time.Duration) Limit {
	l := Limit{Permits: permits, Per: per, kind: fixedWindow}
	l.mustBeValid()
	return l
}

// FirstUseWindow returns a count per window. A window begins with the first
// request that is granted after the last window. It panics unless both are
// positive.
func FirstUseWindow(permits int, per time.Duration) Limit {
	l := Limit{Permits: permits, Per: per, kind: firstUseWindow}
	l.mustBeValid()
	return l
}

// SlidingLog returns a bound on the permits in every window (t-per, t]. It
// panics unless both are positive.
func SlidingLog(permits int, per time.Duration) Limit {
	l := Limit{Permits: permits, Per: per, kind: slidingLog}
	l.mustBeValid()
	return l
}

// Concurrency returns a bound on the requests that are being answered at one time. If only it
// refuses, the answer reports no wait, because the wait is unknown. It panics unless n is positive.
func Concurrency(n int) Limit {
	l := Limit{Permits: n, kind: concurrency}
	l.mustBeValid()
	return l
}

// String returns the limit's numbers, for messages.
func (l Limit) String() string {
	switch l.kind {
	case tokenBucket:
		return fmt.Sprintf("%s %d/%v burst %d", l.name(), l.Permits, l.Per, l.Burst)
	case concurrency:
		return fmt.Sprintf("%s %d", l.name(), l.Permits)
	}
	return fmt.Sprintf("%s %d/%v", l.name(), l.Permits, l.Per)
}

// name returns what headers call the limit.
func (l Limit) name() string {
	if l.Name != "" {
		return l.Name
	}
	return kindNames[l.kind]
}

// cost returns how many permits a request of that cost needs.
func (l Limit) cost(of int) int {
	if l.Unit == "requests" {
		return 1
	}
	return of
}

// Quota returns the most permits that can remain.
func (l Limit) Quota() int {
	if l.kind == tokenBucket {
		return l.Burst
	}
	return l.Permits
}

// mustBeValid panics for a limit that cannot be counted, in the name of weirtest, whose users see it.
func (l Limit) mustBeValid() {
	timed := l.kind != concurrency
	if l.Permits <= 0 || timed && l.Per <= 0 || l.kind == tokenBucket && l.Burst <= 0 {
		panic(fmt.Sprintf("weirtest: %v is not positive", l))
	}
	if l.kind == tokenBucket && int64(l.Burst) > (math.MaxInt64-int64(l.Permits))/int64(l.Per) {
		panic(fmt.Sprintf("weirtest: %v is too large to count", l))
	}
}

// newMeter returns the limit's state at the vendor's start.
func (l Limit) newMeter(start time.Time) meter {
	switch l.kind {
	case tokenBucket:
		return newBucket(l)
	case fixedWindow:
		return &window{limit: l, start: start.UnixNano()}
	case firstUseWindow:
		return &useWindow{limit: l}
	case slidingLog:
		return &grantLog{limit: l}
	case concurrency:
		return &flight{limit: l}
	}
	panic("weirtest: the zero Limit is not valid")
}
