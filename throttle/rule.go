package throttle

import "time"

// A rule is the state of one limit with its arithmetic. It knows only the
// instants that it is given. Its methods are called under the set's lock. Their
// n is never more than the limit grants at once.
type rule interface {
	// earliest returns the instant since which n permits can be spent, if nothing
	// else is spent before. It may be in the past.
	earliest(a asking, n int64) Instant
	// spend charges n permits for a departure at a.now, and returns the instant at
	// which they count. The instant charged, not after a.now, is the one since
	// which all limits allowed the departure. A bucket is charged at that instant,
	// a window or a log at the departure itself.
	spend(a asking, charged Instant, n int64) Instant
	// refund takes back n permits that count at an instant within the tolerance and
	// were not used. Permits that came back earlier, and are older than oldest, are
	// lost.
	refund(oldest, at Instant, n int64)
	// charge adds n permits to what was spent, whatever is at hand.
	charge(now Instant, n int64)
	// overspend is charge for a call that cost more than estimated. No limit holds
	// anybody back for longer than longestOwed because of it.
	overspend(now Instant, n int64)
	// relieve takes back n permits of what counts at the instant at, as far as the
	// state then holds no more than if they had never been spent.
	relieve(now, at Instant, n int64)
	// pause voids what a bucket has saved. If refusals slow the limit, departures
	// are spaced from until on.
	pause(now, until Instant)
	// sooner moves what a pause has put off to an earlier time.
	sooner(by time.Duration)
	// slow sets the share of the rate that is in force, in thousandths. If paused
	// is later than now, there is a pause until then.
	slow(now, paused Instant, share int64)
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
}

// longestSlowed is the longest Per of a limit that a refusal slows. A refusal
// is usually that of the shortest limit. If it slowed a day's limit too, what
// the day has left would be spread over the rest of the day, and 50/s would
// become 5/s.
const longestSlowed = time.Minute

// slowed reports whether a refusal slows the limit.
func (l Limit) slowed() bool { return l.Per <= longestSlowed }

// longestOwed bounds the harm of a wrong number that is settled. It is 4.5
// years, as in a shared store.
const longestOwed = 1 << 47 * time.Microsecond

// An asking says when a request is decided, and since when it was in line, no
// further back than the tolerance.
type asking struct{ now, line Instant }

// newRule returns the rule of a resolved limit. A bucket that refusals slow
// begins at a share of its rate, in thousandths; a window begins at the whole
// rate. Windows that follow the wall clock read it through wall. If wall is
// nil, instants are the wall clock.
func newRule(l Limit, share int64, wall func(Instant) Instant) rule {
	if !l.slowed() {
		share = fullCut
	}
	switch l.Algorithm {
	case AlgorithmFixedWindow:
		return newFixed(l, wall)
	case AlgorithmSlidingLog:
		return newLog(l)
	case AlgorithmSlidingWindow:
		return newSliding(l)
	default:
		return newBucket(l, share)
	}
}

// A counting is the part that all rules have that count permits in windows.
type counting struct {
	limit   Limit // resolved
	permits int64
	share   int64   // of the rate that is in force, in thousandths
	spacing spacing // of the permits at hand
}

// countingOf returns the counting of a limit at its whole rate.
func countingOf(l Limit) counting {
	return counting{limit: l, permits: countOf(l), share: fullCut}
}

// cutHolds is how long a cut spaces a window's permits if no call is served.
const cutHolds = 10 * time.Minute

// slow spaces departures at the share of the rate. The window keeps all its
// permits: if it had only a share of them, more might be used already, and
// nothing would depart until its end.
func (c *counting) slow(now, paused Instant, share int64) {
	was, at := c.share, max(now, paused)
	if c.share = share; share == fullCut {
		if was != fullCut {
			c.spacing = spacing{}
		}
		return
	}
	line := bucketOf(Limit{Algorithm: AlgorithmLeakyBucket}, paceOf(c.limit, share))
	line.tat = point{at: at}
	if !c.spacing.over(now) {
		if was == fullCut {
			line.tat.at = max(at, c.spacing.earliest())
		} else {
			line.adopt(at, at, c.spacing.line)
			line.lift(at)
		}
	}
	c.spacing = spacing{line, now.Add(cutHolds)}
}

// sooner moves the line that a cut has formed to an earlier time.
func (c *counting) sooner(by time.Duration) {
	if c.share != fullCut {
		c.spacing.line.sooner(by)
	}
}

// space lets permits out evenly between two instants. If the rate is cut, it
// lets them out at the share of the rate, from the first instant on.
func (c *counting) space(from, until Instant, permits int64) {
	if c.share == fullCut {
		c.spacing = spaced(from, until, permits)
		return
	}
	c.spacing.line.lift(from)
	c.spacing.until = max(c.spacing.until, from.Add(cutHolds))
}

// tell returns the state of a rule that has used so many permits, and can spend
// the next one at an instant.
func (c *counting) tell(now, next Instant, used int64) LimitState {
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
