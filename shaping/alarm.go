package shaping

import "time"

// An alarm calls a queue's wake once, after a time. Only the time that was set
// last counts. A [time.Timer] is one.
type alarm interface {
	Reset(d time.Duration) bool
	Stop() bool
}

// newAlarm returns an alarm that rings after d: the kernel's timer with
// PrecisePacing, if there is one, and else the runtime's.
func (q *Queue) newAlarm(d time.Duration) alarm {
	if q.PrecisePacing {
		if k := newKernelTimer(q.wake); k != nil {
			k.Reset(d)
			return k
		}
	}
	return time.AfterFunc(d, q.wake)
}
