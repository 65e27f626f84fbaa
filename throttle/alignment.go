package throttle

import (
	"strings"
	"time"
)

// An alignment says where the windows of a fixed-window limit lie. A window of the wall
// clock is found anew each time, because a step of the clock moves it. An Instant
// follows the monotonic clock, and a process may live for months.
type alignment struct {
	per   time.Duration
	first bool   // windows begin with their first permit
	span  string // "day" or "month" in the zone; "": multiples of per since the epoch
	zone  *time.Location
	wall  func(Instant) Instant // reads the wall clock at an instant
}

// A mark is the end of a window by the wall clock, with the wall clock's lead over
// instants when it was read. The zero mark belongs to no window.
type mark struct {
	end   Instant
	ahead time.Duration
	set   bool
}

// same reports whether both marks end the same window of the wall clock,
// however the clock was stepped between them.
func (m mark) same(o mark) bool { return m.set && o.set && m.end == o.end }

// newAlignment returns the alignment of a limit that validates.
func newAlignment(l Limit, wall func(Instant) Instant) alignment {
	al := alignment{per: l.Per, first: l.Align == AlignFirstUse, wall: wall}
	if span, zone, calendar := strings.Cut(string(l.Align), "@"); calendar {
		al.span = span
		// Validate found the zone; without it any more, days are those of UTC.
		al.zone = time.UTC
		if loaded, err := time.LoadLocation(zone); err == nil {
			al.zone = loaded
		}
	}
	return al
}

// around returns the window that holds now, and the mark of its end, if the
// wall clock is that far ahead of instants.
func (al alignment) around(now Instant, ahead time.Duration) (start, end Instant, m mark) {
	if al.first {
		return minInstant, now.Add(al.per), mark{}
	}
	wall := now.Add(ahead)
	from, to := al.multiple(wall)
	if al.span != "" {
		from, to = al.calendar(wall)
	}
	return from.Add(-ahead), to.Add(-ahead), mark{to, ahead, true}
}

// ahead returns how far the wall clock is ahead of the instant now. If that differs
// little from the last value, the clock was not stepped, only read a moment before. The
// last value is then kept.
func (al alignment) ahead(now Instant, last time.Duration) time.Duration {
	ahead := al.wall(now).Sub(now)
	if d := ahead - last; d > -minTolerance && d < minTolerance {
		return last
	}
	return ahead
}

// multiple returns the window of multiples of per since the epoch.
func (al alignment) multiple(wall Instant) (from, to Instant) {
	past := wall % Instant(al.per)
	if past < 0 {
		past += Instant(al.per)
	}
	from = wall - past
	return from, from.Add(al.per)
}

// calendar returns the day or the month that holds an instant.
func (al alignment) calendar(wall Instant) (from, to Instant) {
	y, m, d := al.date(wall)
	months, days := 0, 1
	if al.span == "month" {
		months, days, d = 1, 0, 1
	}
	from = min(al.begin(y, m, d), wall)
	to = from
	for to <= wall && to < Never { // a zone may skip a day
		m, d = m+time.Month(months), d+days
		to = al.begin(y, m, d)
	}
	return from, to
}

// begin returns the instant at which a day begins in the zone. It searches for
// it, because midnight may not exist, or exist twice.
func (al alignment) begin(y int, m time.Month, d int) Instant {
	noon := time.Date(y, m, d, 12, 0, 0, 0, al.zone)
	y, m, d = noon.Date()
	low, high := InstantOf(noon).Add(-36*time.Hour), InstantOf(noon)
	for low+1 < high {
		middle := low + (high-low)/2
		if my, mm, md := al.date(middle); my < y || my == y && (mm < m || mm == m && md < d) {
			low = middle
		} else {
			high = middle
		}
	}
	return high
}

// date returns the date of an instant in the zone.
func (al alignment) date(wall Instant) (year int, month time.Month, day int) {
	return time.Unix(0, int64(wall)).In(al.zone).Date()
}
