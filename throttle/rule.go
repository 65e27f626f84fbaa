package throttle

import "time"

// A rule is the state of one limit and the arithmetic over it, pure in the
// instants it is given. Its methods are called under the set's lock, with n
// within what the limit ever grants.
type rule interface {
	// earliest returns the instant, also a past one, since when n permits can
	// be spent if nothing else is spent before.
	earliest(a asking, n int64) Instant
	// spend charges n permits for a departure at a.now and returns the instant
	// they count at. charged, not after a.now, is the instant since when all
	// limits allowed it: buckets are charged there, windows and logs at the
	// departure itself.
	spend(a asking, charged Instant, n int64) Instant
	// refund takes back n permits that count at an instant within the
	// tolerance and never left. What came back from before the oldest is lost.
	refund(oldest, at Instant, n int64)
	// charge adds n permits to what was spent, whatever is at hand.
	charge(now Instant, n int64)
	// overspend is charge for what turned out to cost more: no limit holds
	// anybody back for longer than longestOwed for it.
	overspend(now Instant, n int64)
	// relieve takes back n permits of what counts at the instant at, as far as
	// the state would hold no more had they never been spent.
	relieve(now, at Instant, n int64)
	// pause voids what a bucket saved. Of a limit that is slowed, departures are
	// spaced from until on.
	pause(now, until Instant)
	// sooner takes so much time off a pause that was told.
	sooner(by time.Duration)
	// slow puts a share of the rate in force, in thousandths, in a pause until
	// paused if that is later than now.
	slow(now, paused Instant, share int64)
	// whole reports whether the rule is as good as new.
	whole(now Instant) bool
	// used returns the permits that count now, and any begun one.
	used(now Instant) int64
	// adopt takes over what was used from the rule it replaces, in a pause
	// until paused where that is later than now.
	adopt(now, paused Instant, old rule)
	// state returns the state, whose Next is negative if one permit could be spent
	// since some time ago.
	state(now Instant) LimitState
}

// longestSlowed is the longest Per of a limit that a refusal slows. A refusal
// concerns the shortest limits. What a day has left, spread over the rest of the
// day, would turn 50/s into 5/s.
const longestSlowed = time.Minute

func (l Limit) slowed() bool { return l.Per <= longestSlowed }

// longestOwed bounds what a wrong number that is settled can do: 4.5 years, as in
// a shared store.
const longestOwed = 1 << 47 * time.Microsecond

// An asking is when a request is decided, and since when it was in line, no
// further back than the tolerance.
type asking struct{ now, line Instant }

// newRule returns the rule of a resolved limit. A bucket is at a share of its rate
// in thousandths, if it is slowed; a window is at the whole of it. Windows that
// follow the wall clock read it through wall.
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

// counting is what the rules that count permits in windows share.
type counting struct {
	limit   Limit // resolved
	permits int64
	share   int64   // of the rate in force, in thousandths
	spacing spacing // of the permits at hand
}

func countingOf(l Limit) counting {
	return counting{limit: l, permits: countOf(l), share: fullCut}
}

// cutHolds is how long a cut spaces a window's permits, if no call is served.
const cutHolds = 10 * time.Minute

// slow spaces departures at the share of the rate. The windows stay as they are,
// and so do their permits: what is used may be more than a share of them, and
// nothing would go until the window ends.
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

func (c *counting) sooner(by time.Duration) {
	if c.share != fullCut {
		c.spacing.line.sooner(by)
	}
}

// space lets so many permits out evenly between two instants; if the rate is cut,
// at its share from the first of them on.
func (c *counting) space(from, until Instant, permits int64) {
	if c.share == fullCut {
		c.spacing = spaced(from, until, permits)
		return
	}
	c.spacing.line.lift(from)
	c.spacing.until = max(c.spacing.until, from.Add(cutHolds))
}

// tell returns the state where so many permits are used and the next one can be
// spent at an instant.
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

// countOf returns a window's permits, as configured.
func countOf(l Limit) int64 { return min(int64(l.Permits), maxCount) }

// counted returns a count that n more were added to.
func counted(count, n int64) int64 { return min(count+min(n, maxCount), maxCount) }
