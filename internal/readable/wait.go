// Package readable writes numbers as people read them, for errors and logs.
package readable

import "time"

// Wait returns d cut to three or four digits. It never returns more than d, so
// that a text such as "58.5s or more" stays true of 58.52615056s.
func Wait(d time.Duration) time.Duration {
	switch {
	case d >= time.Minute:
		return d.Truncate(time.Second)
	case d >= time.Second:
		return d.Truncate(100 * time.Millisecond)
	case d >= time.Millisecond:
		return d.Truncate(100 * time.Microsecond)
	default:
		return d
	}
}
