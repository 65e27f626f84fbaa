package throttle

import "time"

// A fixed enforces a fixed window: it grants a number of permits in each
// window.
type fixed struct {
	counting
	align  alignment
	window window
}

// A window is one window of a fixed. Windows follow each other and never move
// back.
type window struct {
	start, end Instant
	mark       mark  // its end by the wall clock
	used       int64 // permits, at most those of the limit
	debt       int64 // permits beyond those, which later windows pay

	before     Instant // start of the window before; if nothing lies between the two, usedBefore were used in it
	usedBefore int64

	// Permits charged up to the instant with which a window of first use begins.
	first int64
}

// newFixed returns the rule of a limit, before its first window.
func newFixed(l Limit, wall func(Instant) Instant) *fixed {
	return &fixed{
		counting: countingOf(l),
		align:    newAlignment(l, wall),
		window:   window{start: minInstant, end: minInstant, before: minInstant},
	}
}

// now returns the window that holds an instant, or the window in force if that
// is later.
func (f *fixed) now(now Instant) window { return f.at(now, 0) }

// at is now for an instant later than the question.
func (f *fixed) at(now Instant, early time.Duration) window {
	w := f.window
	if now < w.end {
		return w
	}
	start, end, mark := f.align.around(now, f.align.ahead(now.Add(-early), w.mark.ahead))
	if mark.same(w.mark) {
		w.end, w.mark = end, mark
		return w
	}
	if f.align.first && w.debt > 0 {
		start, end = f.paying(w, now)
	}
	next := window{start: max(start, w.end), end: end, mark: mark, before: w.end}
	if next.start == w.end {
		next.before, next.usedBefore = w.start, w.used
	}
	if w.debt > 0 {
		next.debt = f.owed(w, next.start)
		next.settle(f.permits)
	}
	return next
}

// paying returns the window that holds an instant after w, if windows begin
// with their first use and w has a debt. Windows that pay follow each other
// without a gap, because no permit would begin one. When all of them are past,
// the next window begins with its first permit, and pays the rest.
func (f *fixed) paying(w window, now Instant) (start, end Instant) {
	windows := (w.debt-1)/f.permits + 1
	past := min(int64(now.Sub(w.end)/f.limit.Per), windows)
	start = w.end.Add(time.Duration(past) * f.limit.Per)
	if past == windows {
		return start, now.Add(f.limit.Per)
	}
	return start, start.Add(f.limit.Per)
}

// owed returns what is left of w's debt when a later window begins at an
// instant: each window between the two has paid. Windows of a calendar differ
// in length.
func (f *fixed) owed(w window, start Instant) int64 {
	if f.align.span == "" {
		between := int64(start.Sub(w.end) / f.limit.Per)
		if between > w.debt/f.permits {
			return 0
		}
		return w.debt - between*f.permits
	}
	debt := w.debt
	for end := w.end; end < start && debt > 0; _, end, _ = f.align.around(end, w.mark.ahead) {
		debt -= f.permits
	}
	return max(debt, 0)
}

// settle lets the window pay as much of the debt as it can.
func (w *window) settle(permits int64) {
	pay := min(w.debt, max(permits-w.used, 0))
	w.used, w.debt = w.used+pay, w.debt-pay
}

// earliest returns when n permits fit a window and the spacing lets them go.
func (f *fixed) earliest(a asking, n int64) Instant {
	return max(f.opens(a, n), f.spacing.earliest())
}

// opens returns since when the window has room for n permits beside what they must leave.
func (f *fixed) opens(a asking, n int64) Instant {
	now := a.now
	n = min(n, f.permits) // a larger request takes the whole window
	w := &f.window
	if now >= w.end {
		next := f.at(now, a.early)
		w = &next
	}
	switch {
	case w.used > f.permits-n:
		at := f.paid(w, n)
		if a.leave > 0 {
			next := f.at(at, at.Sub(now)+a.early)
			at = max(at, f.releases(&next, a.leave, n))
		}
		return at
	case w.used > f.permits-n-a.leave:
		return f.releases(w, a.leave, n)
	case now < w.start || w.usedBefore > f.permits-n:
		return w.start
	default:
		return w.before
	}
}

// releases returns since when n permits of a window leave no less than is reserved then.
func (f *fixed) releases(w *window, reserved, n int64) Instant {
	length := w.end.Sub(w.start)
	if f.align.first {
		length = f.limit.Per
	}
	return w.end.Add(-fades(length, reserved, max(f.permits-n-w.used, 0)))
}

// paid returns when a window after w has room for n permits, after the debt is
// paid.
func (f *fixed) paid(w *window, n int64) Instant {
	if w.debt == 0 {
		return w.end
	}
	full, rest := w.debt/f.permits, w.debt%f.permits
	if rest > f.permits-n {
		full++
	}
	if f.align.span == "" {
		return point{at: w.end}.after(pace{int64(f.limit.Per), 1}.times(full), 1).at
	}
	end := w.end
	for range full {
		_, end, _ = f.align.around(end, w.mark.ahead)
	}
	return end
}

// spend counts the permits in the window of the departure.
func (f *fixed) spend(a asking, charged Instant, n int64) Instant {
	f.charge(a.now, n)
	f.spacing.spend(a.now, charged, n)
	return charged
}

// charge counts n permits in the window that holds now. The excess becomes a debt.
func (f *fixed) charge(now Instant, n int64) {
	if now >= f.window.end {
		f.window = f.now(now)
		if f.align.first {
			f.window.end = now.Add(f.limit.Per) // it begins here, even if it pays a debt
		}
	}
	if now <= f.begins() {
		f.window.first = counted(f.window.first, n)
	}
	f.window.debt = counted(f.window.debt, n)
	f.window.settle(f.permits)
}

// begins returns the instant with which the window in force begins, if windows
// begin with their first use.
func (f *fixed) begins() Instant { return f.window.end.Add(-f.limit.Per) }

// overspend charges n permits, but leaves no more debt than windows pay within
// longestOwed.
func (f *fixed) overspend(now Instant, n int64) {
	f.charge(now, n)
	f.bound()
}

// bound leaves no more debt than windows pay within longestOwed.
func (f *fixed) bound() {
	windows := max(int64(longestOwed/f.limit.Per), 1)
	if f.window.debt/windows > f.permits {
		f.window.debt = f.permits * windows
	}
}

// refund takes back permits that were not used. If all came back that had begun
// a window of first use, that window has not begun. If others left since, one of
// them began it, no later than now, which is within the tolerance of oldest.
func (f *fixed) refund(oldest, at Instant, n int64) {
	f.relieve(at, at, n)
	w := &f.window
	if !f.align.first || at < w.start || at > f.begins() {
		return
	}
	if w.first -= n; w.used+w.debt == 0 {
		w.end = w.start
	} else if w.first <= 0 {
		w.first = w.used + w.debt
		w.end = max(w.end, max(at, oldest).Add(f.limit.Per).Add(maxTolerance))
	}
}

// relieve takes permits back if they count in the window in force.
func (f *fixed) relieve(now, at Instant, n int64) {
	w := &f.window
	if at < w.start || now >= w.end {
		return
	}
	paid := min(n, w.debt)
	w.debt -= paid
	w.used = max(w.used-(n-paid), 0)
	f.spacing.relieve(n)
}

func (f *fixed) whole(now Instant) bool { return f.used(now) == 0 && f.spacing.over(now) }

// used returns the permits of the present window, with its debt.
func (f *fixed) used(now Instant) int64 {
	w := f.now(now)
	return w.used + w.debt
}

// adopt keeps the count if the windows are the same. Otherwise it counts, in
// this window, what the other rule had used.
func (f *fixed) adopt(now, _ Instant, old rule) {
	if was, ok := old.(*fixed); ok && was.limit.Per == f.limit.Per && was.limit.Align == f.limit.Align {
		f.window = was.window
		if w := &f.window; w.debt > 0 && now >= w.end {
			*w = was.now(now) // the windows before this one paid by the old limit
			if f.align.first {
				// Its permits are still to begin it.
				w.end, w.used, w.debt = w.start, f.permits, w.used+w.debt
			}
		}
		f.window.settle(f.permits)
	} else if used := old.used(now); used > 0 {
		f.charge(now, min(used, f.permits))
	}
	w := f.now(now)
	f.spacing = spacedChange(spaced(now, w.end, f.permits-w.used), now, f.permits-w.used, old.state(now))
}

// state returns what is left of the present window.
func (f *fixed) state(now Instant) LimitState {
	w := f.now(now)
	return f.report(now, f.earliest(asking{now: now, line: Never}, 1), w.used+w.debt)
}
