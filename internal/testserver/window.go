package testserver

import "time"

// A window is the state of a fixed window: the permits spent in the current one.
type window struct {
	limit Limit
	start int64 // the vendor's start, in nanoseconds of its wall clock
	index int64 // of the window, counted from the epoch
	used  int
}

// enter begins a new window if now is in another one.
func (w *window) enter(now time.Duration) {
	index := (w.start + int64(now)) / int64(w.limit.Per)
	if index != w.index {
		w.index, w.used = index, 0
	}
}

// left returns the time until the window ends.
func (w *window) left(now time.Duration) time.Duration {
	return w.limit.Per - time.Duration((w.start+int64(now))%int64(w.limit.Per))
}

func (w *window) wait(now time.Duration, cost int) time.Duration {
	if cost > w.limit.Permits {
		return untold
	}
	w.enter(now)
	if w.used+cost <= w.limit.Permits {
		return 0
	}
	return w.left(now)
}

func (w *window) spend(_ time.Duration, cost int) { w.used += cost }

func (w *window) done(int) {}

func (w *window) standing(now time.Duration) Standing {
	w.enter(now)
	return Standing{Limit: w.limit, Remaining: max(0, w.limit.Permits-w.used), Reset: w.left(now), Next: w.left(now)}
}

func (w *window) resume(old meter) {
	if o, ok := old.(*window); ok && o.limit.Per == w.limit.Per {
		w.index, w.used = o.index, o.used
	}
}
