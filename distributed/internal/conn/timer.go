package conn

import "time"

// A Timer calls Ring when it is due, and can be set repeatedly. It is made when first set, because
// most timers never are.
type Timer struct {
	Ring func()
	t    *time.Timer
}

// Set sets the timer to ring after a time, in place of an earlier setting.
func (t *Timer) Set(d time.Duration) {
	if t.t == nil {
		t.t = time.AfterFunc(d, t.Ring)
	} else {
		t.t.Reset(d)
	}
}

// Stop stops the timer, unless it has rung.
func (t *Timer) Stop() {
	if t.t != nil {
		t.t.Stop()
	}
}
