package lane

import (
	"context"
	"time"

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
		fact.Until = now.Add(min(told, longestPause))
	}
	moved := l.moved(now, fact.Until)
	if moved {
		l.observer.Paused(told, min(told, longestPause))
	}
	long := told > l.settings.MaxPause
	if long {
		l.gate.closeTo(fact.Until)
	}
	a.Refused, a.Until = true, fact.Until
	l.gate.refused(ctx, now, a)
	l.queue.Reconcile(fact)
	if long && moved {
		with := []any{"lane", l.key, "asked", told, "closed", min(told, longestPause)}
		if l.sub != nil {
			with = append(with, "alone", l.sub.part)
		}
		l.settings.Logger().Warn("weir: lane closed: the server asked for a long pause", with...)
	}
	return told > 0 && !long
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
	l.gate.landed(ctx, l.queue.Now(), a)
	if departed := a.Departed; a.Served && l.refusedAt.Load() != 0 {
		for last := l.servedAt.Load(); int64(departed) > last && !l.servedAt.CompareAndSwap(last, int64(departed)); last = l.servedAt.Load() {
		}
	}
}

// CouldTake reports whether the lane might let the turn go after the delay: it
// is not certain to reject it.
func (l *Lane) CouldTake(ctx context.Context, turn *shaping.Turn, delay time.Duration) bool {
	return l.gate.closedFor(l.queue.Now()) <= delay && l.queue.CheckWait(ctx, turn, delay) == nil
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
	return !l.doubts.agreed(now, &doubt{key: key, route: route, until: now.Add(min(told, longestPause))})
}
