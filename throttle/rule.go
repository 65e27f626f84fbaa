package throttle

import "time"

// A rule is the state of one limit with its arithmetic. It knows only the
// instants that it is given. Its methods are called under the set's lock. Their
// n is never more than the limit grants at once.
type rule interface {
	// earliest returns the instant since which n permits can be spent and a.leave are left,
	// if nothing else is spent before. It may be in the past.
	earliest(a asking, n int64) Instant
	// spend charges n permits for a departure at a.now, and returns the instant at
	// which they count. The instant charged, not after a.now, is the one since
	// which all limits allowed the departure. A bucket is charged at that instant,
	// a window or a log at the departure itself.
	spend(a asking, charged Instant, n int64) Instant
	// refund takes back n permits that count at an instant and were not used. An
	// instant before oldest is no longer within the tolerance.
	refund(oldest, at Instant, n int64)
	// overspend charges n permits, whatever is at hand, because a call cost more than
	// estimated. No limit holds a
	// caller back for longer than longestOwed because of it.
	overspend(now Instant, n int64)
	// relieve takes back n permits that count at the instant at. The state then holds
	// no more than if they had never been spent.
	relieve(now, at Instant, n int64)
	// pause voids a bucket's savings: at until, it has one permit. A window keeps its permits.
	pause(until Instant)
	// sooner ends a pause earlier by that much; zero: at its time. Permits that were
	// spent before the pause stay spent.
	sooner(by time.Duration)
	// whole reports whether the rule is as good as new.
	whole(now Instant) bool
	// used returns the permits that count now. A begun permit counts whole.
	used(now Instant) int64
	// adopt takes over what was used from the rule that it replaces. If paused is
	// later than now, there is a pause until then.
	adopt(now, paused Instant, old rule)
	// state returns the state, whose Next is negative if one permit could be spent
	// since some time ago.
	state(now Instant) LimitState
	// encode writes the state without the limit, and decode reads it into a new rule.
	encode(c *coder)
	decode(c *coder)
}

// longestOwed bounds the harm of a wrong number that is settled. It is 4.5
// years, as in a shared store.
const longestOwed = 1 << 47 * time.Microsecond

// An asking says when a request is decided, and since when it was in line, no
// further back than the tolerance.
type asking struct {
	now, line Instant
	leave     int64         // permits that the request must leave, at the beginning of a window
	early     time.Duration // how long before now the question is asked, and the wall clock read
}

// newRule returns the rule of a resolved limit that keeps nothing. Windows that follow the wall
// clock read it through wall. If wall is nil, instants are the wall clock.
func newRule(l Limit, wall func(Instant) Instant) rule {
	switch l.Algorithm {
	case AlgorithmFixedWindow:
		return newFixed(l, wall)
	case AlgorithmSlidingLog:
		return newLog(l)
	case AlgorithmSlidingWindow:
		return newSliding(l)
	default:
		return newBucket(l)
	}
}

// A counting is the part that all rules have that count permits in windows.
type counting struct {
	limit   Limit // resolved
	permits int64
	spacing spacing // of the permits at hand
}

// countingOf returns the counting of a limit.
func countingOf(l Limit) counting { return counting{limit: l, permits: countOf(l)} }

// pause and sooner do nothing: a pause holds all callers, and permits of a window are
// the same after it.
func (c *counting) pause(Instant)        {}
func (c *counting) sooner(time.Duration) {}

// report returns the state of a rule with this many permits used, which can spend the next one at
// an instant.
func (c *counting) report(now, next Instant, used int64) LimitState {
	return LimitState{
		Limit:       c.limit,
		Headroom:    float64(c.spacing.hand(now, c.permits-used)),
		Next:        next.Sub(now),
		Utilization: float64(used) / float64(c.limit.Permits),
	}
}

// maxCount bounds what a window counts, so that no sum overflows.
const maxCount = 1 << 60

// countOf returns the permits of a window as they are configured.
func countOf(l Limit) int64 { return min(int64(l.Permits), maxCount) }

// counted returns count + n, within maxCount.
func counted(count, n int64) int64 { return min(count+min(n, maxCount), maxCount) }
