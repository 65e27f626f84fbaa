package conn

import "time"

// A Timer calls Ring when it is due. It can be set again and again, and is made when it is
// set first, because most are not.
type Timer struct {
	Ring func()
	t    *time.Timer
}

// Set has the timer ring after a time, and not when it was set for before.
func (t *Timer) Set(d time.Duration) {
	if t.t == nil {
		t.t = time.AfterFunc(d, t.Ring)
	} else {
		t.t.Reset(d)
	}
}

// Stop has the timer not ring, unless it has.
func (t *Timer) Stop() {
	if t.t != nil {
		t.t.Stop()
	}
}
