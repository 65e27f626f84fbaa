package testserver

import "time"

// A useWindow is the state of a window that begins when it is used first.
type useWindow struct {
	limit Limit
	used  int           // permits spent in the current window; zero: no window
	end   time.Duration // of that window, since the vendor's start
}

// enter ends the window if it is over.
func (w *useWindow) enter(now time.Duration) {
	if now >= w.end {
		w.used = 0
	}
}

// left returns the time until the window ends; zero if it has not begun.
func (w *useWindow) left(now time.Duration) time.Duration {
	if w.used == 0 {
		return 0
	}
	return w.end - now
}

func (w *useWindow) wait(now time.Duration, cost int) time.Duration {
	if cost > w.limit.Permits {
		return untold
	}
	w.enter(now)
	if w.used+cost <= w.limit.Permits {
		return 0
	}
	return w.left(now)
}

func (w *useWindow) spend(now time.Duration, cost int) {
	if w.used == 0 {
		w.end = now + w.limit.Per
	}
	w.used += cost
}

func (w *useWindow) done(int) {}

func (w *useWindow) standing(now time.Duration) Standing {
	w.enter(now)
	return Standing{Limit: w.limit, Remaining: max(0, w.limit.Permits-w.used), Reset: w.left(now), Next: w.left(now)}
}

func (w *useWindow) resume(old meter) {
	if o, ok := old.(*useWindow); ok && o.limit.Per == w.limit.Per {
		w.end, w.used = o.end, o.used
	}
}
