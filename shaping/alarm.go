package shaping

import "time"

// An alarm rings once, after a time. Only the last setting counts. A [time.Timer] is one.
type alarm interface {
	Reset(d time.Duration) bool
	Stop() bool
}

// newAlarm returns an alarm that rings after d: a precise one is the kernel's timer, if
// there is one, and any other the runtime's.
func newAlarm(d time.Duration, precise bool, ring func()) alarm {
	if precise {
		if k := newKernelTimer(ring); k != nil {
			k.Reset(d)
			return k
		}
	}
	return time.AfterFunc(d, ring)
}
