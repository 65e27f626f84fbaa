package lane

import (
	"context"
	"math"
	"strings"
	"time"

	"github.com/weirgo/weir/internal/course"
	"github.com/weirgo/weir/internal/gate"
	"github.com/weirgo/weir/internal/learn"
	"github.com/weirgo/weir/throttle"
)

// An Answer is the outcome of a call that departed from a lane.
type Answer = course.Answer

// Refused acts on a refusal that asked for a wait; zero: it asked for none. It pauses or
// closes the lane, and lets it learn. It reports whether the lane is paused for
// a time that its callers wait through.
func (l *Lane) Refused(ctx context.Context, a *Answer, asked time.Duration) (paused bool) {
	now := l.Now()
	l.refusedAt.Store(int64(now))
	if a.Refused = true; asked > 0 {
		a.Until = now.Add(min(asked, gate.LongestPause))
	}
	l.read(now, a)
	l.Course.Observe(ctx, now, a)
	if l.pause(now, asked, 0) {
		l.warn("weir: lane closed: the server asked for a long pause", "asked", asked, "closed", min(asked, gate.LongestPause))
	}
	return asked > 0 && asked <= l.settings.MaxPause
}

// read takes in what an answer reports of quotas, of which it leaves the share that the lane takes.
// It returns how long it is until the reset of a spent one, if the lane waits for that. A lane that
// keys share does not: the quota is of one of them.
func (l *Lane) read(now throttle.Instant, a *Answer) (asked time.Duration) {
	if share := l.settings.Share; share > 0 && share < 1 {
		l.share.Reduce(now, a.Quotas, share)
	}
	if l.Shared {
		return 0
	}
	return l.ledgers.Read(now, a)
}

// pause applies a pause that was asked for, longer by guard; zero: none was. It passes a new one on
// to the observer. It closes the lane if callers do not wait through the pause, and reports whether
// it closed it anew.
func (l *Lane) pause(now throttle.Instant, asked, guard time.Duration) (closed bool) {
	var fact throttle.Fact
	held := min(asked, gate.LongestPause)
	moved := asked > 0 && l.moved(now, now.Add(held))
	if moved {
		l.Observer.Paused(asked, held)
	}
	if asked > l.settings.MaxPause {
		l.Gate.CloseTo(now.Add(held))
	}
	if asked > 0 {
		fact.Until = now.Add(held + guard)
	}
	l.Queue.Reconcile(fact)
	return moved && asked > l.settings.MaxPause
}

func (l *Lane) warn(what string, with ...any) {
	with = append([]any{"lane", l.Key}, with...)
	if l.sub != nil {
		with = append(with, "alone", l.sub.part)
	}
	l.settings.Logger().Warn(what, with...)
}

// moved reports whether a pause until an instant is a new one. It is if no pause
// runs, or if it ends later than the one that runs. All calls that were in
// flight report the same pause, in whole seconds from their own answers, so
// an end that is up to a second later is not later.
func (l *Lane) moved(now, until throttle.Instant) bool {
	for {
		last := l.pausedTo.Load()
		if until <= now || throttle.Instant(last) > now && until.Sub(throttle.Instant(last)) <= time.Second {
			return false
		}
		if l.pausedTo.CompareAndSwap(last, int64(until)) {
			return true
		}
	}
}

// Landed says that a call was answered, or has failed.
func (l *Lane) Landed(ctx context.Context, a *Answer) {
	var now throttle.Instant // read once, if an instant is needed at all
	clock := func() throttle.Instant {
		if now == 0 {
			now = l.Now()
		}
		return now
	}
	if len(a.Quotas) > 0 { // first, because a call that lands lets the next one go
		if asked := l.read(clock(), a); asked > 0 && l.pause(now, asked, learn.ResetGuard) {
			l.warn("weir: lane closed: the server reported that nothing is left of its quota", "asked", asked, "closed", min(asked, gate.LongestPause))
		}
	}
	l.Gate.Landed(ctx, clock, a)
	if departed := a.Departed; a.Served && l.refusedAt.Load() != 0 {
		for last := l.servedAt.Load(); int64(departed) > last && !l.servedAt.CompareAndSwap(last, int64(departed)); last = l.servedAt.Load() {
		}
	}
}

// Alone reports whether a request that was refused at an instant, and twice since,
// is refused for its own sake, because others of its lane were served in between.
func (l *Lane) Alone(refusedAt throttle.Instant) bool {
	return throttle.Instant(l.servedAt.Load()) > refusedAt
}

// A doubt is the refusal of one route of a key, while it is unclear whether the
// refusal concerns the whole lane.
type doubt struct {
	key, route string
	until      throttle.Instant
}

// Doubtful reports whether it is unclear that the refusal of a route concerns
// the whole lane. It is unclear unless another route of the key was refused for
// such a long time and still is.
func (l *Lane) Doubtful(key, route string, asked time.Duration) bool {
	now := l.Queue.Now()
	this := &doubt{key: key, route: route, until: now.Add(min(asked, gate.LongestPause))}
	for {
		last := l.doubt.Load()
		if last != nil && last.key == key && last.route != route && last.until > now {
			return false
		}
		if l.doubt.CompareAndSwap(last, this) {
			return true
		}
	}
}

// Resume ends the pauses of the lane of a key, and of its sub-lanes. If many
// keys share the lane, it ends those of the key's own sub-lanes. For the key
// "", it ends all pauses of the lane, and those of the shared lane too.
func (s *Lanes) Resume(l *Lane, key string) { s.relieve(l, key, (*Lane).resume) }

// Forget makes the lane of a key, and its sub-lanes, forget what they have
// learned. It ends their pauses as Resume does.
func (s *Lanes) Forget(l *Lane, key string) { s.relieve(l, key, (*Lane).forget) }

// Pause pauses the lane of a key for d. If many keys share the lane, it pauses that key alone, as
// a refusal does; for the key "", all of them.
func (s *Lanes) Pause(l *Lane, key string, d time.Duration) {
	if l.Shared && key != "" {
		if own := s.Sublane(l, PartOfKey(key), Paused); own != nil {
			defer own.Leave(nil)
			l = own
		}
	}
	l.pause(l.Now(), d, 0)
}

// relieve calls do for the lane and its sub-lanes: in the shared lane for the key's own
// alone. For the key "", it does so for all of them, and in the shared lane too.
func (s *Lanes) relieve(l *Lane, key string, do func(*Lane)) {
	l.doubt.Store(nil)
	for _, sublane := range s.sublanesOf(l) {
		if !l.Shared || key == "" || strings.HasPrefix(sublane.sub.part, PartOfKey(key)) {
			do(sublane)
		}
	}
	do(l)
	if o := s.overflow.Load(); o != nil && !l.Shared && key == "" {
		s.relieve(o, key, do)
	}
}

// PartOfKey returns how the names of a key's sub-lanes begin, in the lane that many
// keys share.
func PartOfKey(key string) string { return "key " + key + "\x00" }

// forget makes the lane forget what it has learned, and ends its own pause.
func (l *Lane) forget() {
	l.Course.Forget()
	l.buckets.Store(nil)
	l.resume()
}

func (l *Lane) resume() {
	l.pausedTo.Store(0)
	l.Queue.Reconcile(throttle.Fact{Resumed: true})
}

// Learned passes a report to the observer and the log.
func (l *Lane) Learned(ctx context.Context, r course.Report) {
	if r.Event {
		l.Observer.Learned(ctx, r.Known)
	}
	if !r.Line {
		return
	}
	with := []any{"lane", l.Key}
	if r.Known.Rate > 0 {
		with = append(with, "per_second", math.Round(r.Known.Rate*100)/100)
	}
	if r.Known.InFlight > 0 {
		with = append(with, "in_flight", r.Known.InFlight)
	}
	l.settings.Logger().Info("weir: a limit was learned from the server's answers", with...)
}
