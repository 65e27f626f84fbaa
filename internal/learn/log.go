package learn

import (
	"cmp"

	"github.com/weirgo/weir/throttle"
)

// A log counts the calls of the last period: a sliding window. It gives each permit back a period after it was
// spent, so its level is constant, and then repeats the lane's departures of a period before:
//
//	period 60 s     0 s   1 s   20 s               60 s  61 s  80 s
//	calls leave     40    30    30    none left
//	permits return                                 40    30    30
//
// The period is known from a window that ended with a part of its permits.

const logMarks = 8 // kept departures of a period: returned permits are then late by an eighth of a quota at most

// mark keeps the departure of a call that was granted.
func (t *Ceiling) mark(ordinal int64, at throttle.Instant) {
	newest := &t.Sent[logMarks-1]
	if float64(ordinal-newest.Ordinal) >= t.size()/logMarks {
		copy(t.Sent[:], t.Sent[1:])
		*newest = Mark{ordinal, at}
	}
}

// back returns when a log gives permits back next; zero: unknown. A past reset is better evidence
// than a window, which some vendors report in another unit.
func (t *Ceiling) back() throttle.Instant {
	period := seconds(cmp.Or(t.Window, t.Period))
	if t.Window == 0 && (!t.Stands || t.Whole) || period == 0 || t.timed() {
		return 0
	}
	for _, m := range t.Sent {
		if at := m.At.Add(period); m.At > 0 && at > t.Last.At {
			return at
		}
	}
	return 0
}
