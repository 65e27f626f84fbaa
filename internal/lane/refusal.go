package lane

import (
	"context"
	"time"

	"github.com/weirgo/weir/internal/gate"
	"github.com/weirgo/weir/internal/learn"
	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// Refused acts on a refusal that told a wait; zero: it told none. It pauses or
// closes the lane, and lets it learn. It reports whether the lane is paused for
// a time that its callers wait through.
func (l *Lane) Refused(ctx context.Context, a *Answer, told time.Duration) (paused bool) {
	now := l.queue.Now()
	l.refusedAt.Store(int64(now))
	fact := throttle.Fact{}
	if told > 0 {
		fact.Until = now.Add(min(told, gate.LongestPause))
	}
	moved := l.closes(now, told)
	a.Refused, a.Until = true, fact.Until
	if !l.shared {
		l.ledgers.Load().Read(now, a)
	}
	l.course.Observe(ctx, now, a)
	l.queue.Reconcile(fact)
	if moved {
		l.logClosed(told, "weir: lane closed: the server asked for a long pause")
	}
	return told > 0 && told <= l.settings.MaxPause
}

// spent takes in what an answer tells of quotas. If one is spent whose reset is exact,
// the lane pauses until then, as it does for a refusal that tells that time. A lane that
// keys share does not: the quota is of one of them.
func (l *Lane) spent(a *Answer) {
	if l.shared || len(a.Quotas) == 0 {
		return
	}
	now := l.queue.Now()
	told := l.ledgers.Load().Read(now, a)
	if told == 0 {
		return
	}
	moved := l.closes(now, told)
	l.queue.Reconcile(throttle.Fact{Until: now.Add(min(told, gate.LongestPause) + learn.ResetGuard)})
	if moved {
		l.logClosed(told, "weir: lane closed: the server told that nothing is left of its quota")
	}
}

// closes tells the observer of a pause that was told, if that is news, and closes the
// lane if callers do not wait through it. It reports whether the lane was closed anew.
func (l *Lane) closes(now throttle.Instant, told time.Duration) bool {
	held := min(told, gate.LongestPause)
	moved := told > 0 && l.moved(now, now.Add(held))
	if moved {
		l.observer.Paused(told, held)
	}
	if told <= l.settings.MaxPause {
		return false
	}
	l.gate.CloseTo(now.Add(held))
	return moved
}

// logClosed logs that the lane is closed for a time that was told.
func (l *Lane) logClosed(told time.Duration, why string) {
	with := []any{"lane", l.key, "asked", told, "closed", min(told, gate.LongestPause)}
	if l.sub != nil {
		with = append(with, "alone", l.sub.part)
	}
	l.settings.Logger().Warn(why, with...)
}

// moved reports whether a pause until an instant is news. It is if no pause
// runs, or if it ends later than the one that runs. All calls that were in
// flight are told the same pause, in whole seconds from their own answers, so
// an end that is up to a second later is not later.
func (l *Lane) moved(now, until throttle.Instant) bool {
	for {
		last := l.toldTo.Load()
		if until <= now || throttle.Instant(last) > now && until.Sub(throttle.Instant(last)) <= time.Second {
			return false
		}
		if l.toldTo.CompareAndSwap(last, int64(until)) {
			return true
		}
	}
}

// Landed says that a call was answered, or has failed.
func (l *Lane) Landed(ctx context.Context, a *Answer) {
	l.spent(a) // first, because a call that lands lets the next one go
	if !l.gate.LandedSilently(a) {
		l.gate.Landed(ctx, l.queue.Now(), a)
	}
	if departed := a.Departed; a.Served && l.refusedAt.Load() != 0 {
		for last := l.servedAt.Load(); int64(departed) > last && !l.servedAt.CompareAndSwap(last, int64(departed)); last = l.servedAt.Load() {
		}
	}
}

// CouldTake reports whether the lane might let the turn go after the delay: it
// is not certain to reject it.
func (l *Lane) CouldTake(ctx context.Context, turn *shaping.Turn, delay time.Duration) bool {
	return l.gate.ClosedFor(l.queue.Now()) <= delay && l.queue.CheckWait(ctx, turn, delay) == nil
}

// Alone reports whether a request that was refused at an instant, and again
// now, is refused for its own sake, because others of its lane were served in
// between.
func (l *Lane) Alone(refusedAt throttle.Instant) bool {
	return throttle.Instant(l.servedAt.Load()) > refusedAt
}

// Doubtful reports whether it is unclear that the refusal of a route concerns
// the whole lane. It is unclear unless another route of the key was refused for
// such a long time and still is.
func (l *Lane) Doubtful(key, route string, told time.Duration) bool {
	now := l.queue.Now()
	return !l.doubts.agreed(now, &doubt{key: key, route: route, until: now.Add(min(told, gate.LongestPause))})
}
