package call

import "time"

// A trip estimates the usual round trip to the store, and its spread, as RFC
// 6298 does, section 2.
type trip struct {
	Mean, spread time.Duration // zero: no call yet
	rough        bool          // the estimate is of a call that may have dialled
	stood        time.Duration // total time of calls in a row whose deadlines fired late
}

// Saw applies the duration of a call. A call that may have dialled, the first or one after a loss,
// restarts the estimate, until the next call.
func (t *trip) Saw(took time.Duration, dialled bool) {
	t.stood = 0
	if dialled || t.rough {
		t.Mean, t.spread, t.rough = took, took/2, dialled
		return
	}
	off := took - t.Mean
	t.Mean += off / 8
	if off < 0 {
		off = -off
	}
	t.spread += (off - t.spread) / 4
}

// Usual returns how long nearly every round trip takes at most.
func (t *trip) Usual() time.Duration { return t.Mean + 4*t.spread }

// TimerSlack is how late a timer of the runtime usually wakes, and more.
const TimerSlack = 2 * time.Millisecond

// Lead returns how long before the last permit in hand the next ones must be
// asked for.
func (t *trip) Lead() time.Duration { return t.Usual() + TimerSlack }

// Deadline returns how long a call may take.
func (t *trip) Deadline(set *Settings) time.Duration {
	return min(max(4*t.Mean, set.Deadline), set.MaxDeadline)
}

// Fresh reports whether the reply to a call of this duration may be believed. A reply that waited
// in the socket of a stopped process looks as if just written. The first call may have to dial.
func (t *trip) Fresh(took time.Duration, met bool, tolerance time.Duration, set *Settings) bool {
	if !met {
		return took <= tolerance+set.Deadline/2
	}
	return took <= tolerance+max(t.Usual(), set.Deadline)
}

// excuses reports whether a failed call says nothing about the store, because this process stopped.
// On busy processors that may repeat while Redis is down. So callers wait no longer once such calls
// in a row took as long as a first call may take.
func (t *trip) excuses(stalled bool, took, deadline time.Duration, set *Settings) bool {
	if !stalled {
		t.stood = 0
		return false
	}
	excused := t.stood < set.FirstDeadline
	t.stood += min(took, 2*deadline) // a long stop counts as one
	return excused
}
