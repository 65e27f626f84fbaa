// Package readable writes numbers in errors and logs as people read them.
package readable

import "time"

// Wait returns a wait with three or four digits, not longer than it is: what
// "58.52615056s or more" says is also true of 58.5s.
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
