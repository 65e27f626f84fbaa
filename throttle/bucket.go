package throttle

import (
	"math"
	"math/big"
	"slices"
	"time"
)

// A bucket enforces a token bucket or a leaky bucket as the generic cell rate algorithm
// (ITU-T I.371, annex A, virtual scheduling). Its one value, the theoretical arrival
// time or tat, is when all permits spent so far are earned back. A leaky bucket is a
// bucket of burst 1 that pays for a request's cost after its departure.
type bucket struct {
	limit Limit // resolved
	pace  pace
	one   span // interval between permits
	spare span // how long before the tat a request of one permit may go
	tat   point
	held  time.Duration // by which the tat is later because of a pause

	returned returned // permits that came back and keep their instants
	slack    slack    // the past charges that settling needs
}

// newBucket returns the bucket of a limit.
func newBucket(l Limit) *bucket { return bucketOf(l, paceOf(l)) }

// bucketOf returns the bucket of a limit at a pace.
func bucketOf(l Limit, p pace) *bucket {
	b := &bucket{limit: l, pace: p, tat: point{at: minInstant}, slack: slack{from: minInstant}}
	b.one = b.pace.times(1)
	b.spare = b.pace.times(b.burst() - 1)
	return b
}

func (b *bucket) burst() int64 { return max(int64(b.limit.Burst), 1) }

func (b *bucket) leaky() bool { return b.limit.Algorithm == AlgorithmLeakyBucket }

// earliest returns when n permits are earned, or came back. A leaky bucket lets
// any cost go once one permit is earned.
func (b *bucket) earliest(a asking, n int64) Instant {
	if b.tat.at == last.at {
		return last.at // the exact instant beyond is unknown
	}
	spare := b.spare
	if n+a.leave > 1 && !b.leaky() {
		spare = b.pace.times(b.burst() - n - a.leave)
	}
	due := b.tat.before(spare, b.pace.den)
	if len(b.returned) == 0 {
		return due.ceil()
	}
	// They still count in the tat. They depart when they would had they not been spent: after an
	// overspend, not before it is earned back.
	back := due.before(b.intervals(n), b.pace.den)
	return min(due.ceil(), max(b.returned.first(a.line, n), back.ceil()))
}

// intervals returns the span of n permits.
func (b *bucket) intervals(n int64) span {
	if n == 1 {
		return b.one
	}
	return b.pace.times(n)
}

// spend takes permits that came back at the caller's instants, if there are
// any, and otherwise charges the bucket.
func (b *bucket) spend(a asking, charged Instant, n int64) Instant {
	if len(b.returned) > 0 {
		if at := b.returned.first(a.line, n); at != Never {
			b.returned.remove(at, n)
			return min(at, charged)
		}
	}
	b.held = 0 // no pause runs
	b.charge(charged, n)
	return charged
}

// charge moves the tat on by n intervals, from the instant at or from where it
// is.
func (b *bucket) charge(at Instant, n int64) {
	b.lift(at)
	b.slack.note(at, int64(b.tat.at-at))
	b.tat = b.tat.after(b.intervals(n), b.pace.den)
}

// lift raises the tat to an instant. It leaves a tat alone that is that instant
// but for a fraction. Otherwise the fraction would be dropped each time, and
// 7,777/s would be 7,754/s.
func (b *bucket) lift(at Instant) {
	if b.tat.ceil() < at {
		b.tat = point{at: at}
	}
}

// overspend charges n permits, but moves the tat no further ahead than
// longestOwed.
func (b *bucket) overspend(now Instant, n int64) {
	most := (point{at: now.Add(longestOwed)}).after(b.spare, b.pace.den)
	if b.tat.at > most.at {
		most = b.tat
	}
	b.held = min(b.held, max(b.tat.at.Sub(now), 0)) // without the pause, it is charged from now on
	b.charge(now, n)
	if b.tat.at > most.at {
		b.tat = most
	}
}

// refund takes back permits that were charged at the instant at. If everything
// that was charged since some instant has come back, the state moves back to
// there. Otherwise the permits keep their instants: if the state moved back,
// two requests could leave in the place of a later one. Permits that are too old
// for that come back as far as the charges since leave room, unless they are soon earned.
func (b *bucket) refund(oldest, at Instant, n int64) {
	if at < oldest {
		if costly(b.limit, n) {
			b.relieve(at, at, n)
		}
		return
	}
	b.returned.expire(oldest)
	b.returned.add(at, n)
	tat, all := b.tat, len(b.returned)
	for i, d := range slices.Backward(b.returned) {
		if tat = tat.before(b.intervals(d.n), b.pace.den); tat.ceil() <= d.at {
			b.tat, all = tat, i
		}
	}
	b.returned = b.returned[:all]
}

// relieve takes back n permits of a charge that was too high, as far as the charges
// since then leave room: see slack.
func (b *bucket) relieve(_, at Instant, n int64) {
	back := b.intervals(n)
	if least := b.slack.after(at); back.whole >= least {
		back = span{whole: least}
	}
	b.tat = b.tat.before(back, b.pace.den)
	b.slack.lower(at, back.whole+1)
}

// pause leaves one permit at the instant until, and none saved.
func (b *bucket) pause(until Instant) {
	b.returned = nil
	hold := (point{at: until}).after(b.spare, b.pace.den)
	if b.tat.ceil() < hold.ceil() {
		b.held = min(b.held, math.MaxInt64-hold.at.Sub(b.tat.at)) + hold.at.Sub(b.tat.at)
		b.tat = hold
	}
}

// sooner moves the tat back by the time by which the pause is shorter, but no further
// than the pause had moved it.
func (b *bucket) sooner(by time.Duration) {
	b.tat = b.tat.before(span{whole: int64(min(by, b.held))}, b.pace.den)
	b.held = 0
}

func (b *bucket) whole(now Instant) bool { return b.tat.ceil() <= now }

// used returns the permits that are not earned back yet. A begun permit counts
// whole.
func (b *bucket) used(now Instant) int64 {
	owed := b.owed(now)
	whole, rest := new(big.Int).QuoRem(owed.Num(), owed.Denom(), new(big.Int))
	if !whole.IsInt64() {
		return int64(^uint64(0) >> 1)
	}
	return whole.Int64() + int64(rest.Sign())
}

// adopt takes over from the rule that enforced the limit until now. Permits at hand stay, with
// their fraction, up to the new burst, and debt stays debt. The change grants nothing.
func (b *bucket) adopt(now, paused Instant, old rule) {
	if paused <= now {
		b.inherit(now, old)
		return
	}
	free := old
	if was, ok := old.(*bucket); ok {
		unpaused := *was
		unpaused.sooner(was.held)
		free = &unpaused
	}
	b.inherit(now, free)
	unpaused := b.tat.at
	b.inherit(paused, old) // what a pause holds back is time, not permits
	b.held = max(b.tat.at.Sub(unpaused), 0)
}

// inherit makes the tat what it was at an instant under another rule.
func (b *bucket) inherit(now Instant, old rule) {
	was, ok := old.(*bucket)
	if !ok {
		before := old.state(now)
		hand := int64(max(min(before.Headroom, float64(b.burst())), 0))
		b.tat = point{at: now}.after(b.pace.times(b.burst()-hand), b.pace.den)
		// The caller next in line under the old rule is not held back, however often limits change.
		if next := (point{at: now.Add(before.Next)}).after(b.spare, b.pace.den); hand == 0 && next.at < b.tat.at {
			b.tat = next
		}
		return
	}
	owed := was.owed(now)
	owed.Add(owed, new(big.Rat).SetInt64(b.burst()-was.burst()))
	if owed.Sign() <= 0 {
		b.tat = point{at: min(was.tat.at, now)}
		return
	}
	b.tat = point{at: now}.afterExactly(b.pace, owed)
}

// owed returns the intervals from now to the tat, with their fraction. It
// returns zero if the bucket is whole.
func (b *bucket) owed(now Instant) *big.Rat {
	if b.whole(now) {
		return new(big.Rat)
	}
	ticks := new(big.Int).Mul(big.NewInt(int64(b.tat.at.Sub(now))), big.NewInt(b.pace.den))
	ticks.Add(ticks, big.NewInt(b.tat.frac))
	return new(big.Rat).SetFrac(ticks, big.NewInt(b.pace.unit))
}

// state returns the permits at hand, with their fraction.
func (b *bucket) state(now Instant) LimitState {
	owed, _ := b.owed(now).Float64()
	burst := float64(b.burst())
	headroom := burst - owed
	if b.tat == last {
		headroom = min(headroom, 0)
	}
	return LimitState{
		Limit:       b.limit,
		Headroom:    headroom,
		Next:        b.earliest(asking{now: now, line: Never}, 1).Sub(now),
		Utilization: owed / burst,
	}
}
