package throttle

import (
	"math"
	"math/big"
	"math/bits"
)

// A pace is the exact interval between permits: unit/den nanoseconds, in lowest
// terms. Rounded to a microsecond, 150,000/s would be 11 % too fast.
type pace struct{ unit, den int64 }

// paceOf returns the pace of a limit.
func paceOf(l Limit) pace {
	unit, den := reduce(int64(l.Per), int64(l.Permits))
	return pace{unit, den}
}

// reduce returns a/b in lowest terms.
func reduce(a, b int64) (int64, int64) {
	x, y := a, b
	for y != 0 {
		x, y = y, x%y
	}
	return a / x, b / x
}

// A span is a number of intervals in nanoseconds: whole ones, and the rest in
// 1/den.
type span struct{ whole, rest int64 }

// endless is a span beyond every instant.
var endless = span{whole: math.MaxInt64}

// times returns n intervals.
func (p pace) times(n int64) span {
	hi, lo := bits.Mul64(uint64(n), uint64(p.unit))
	if hi >= uint64(p.den) {
		return endless
	}
	q, r := bits.Div64(hi, lo, uint64(p.den))
	if q > math.MaxInt64 {
		return endless
	}
	return span{int64(q), int64(r)}
}

// A point is an instant with a fraction of a nanosecond, in 1/den of a pace.
type point struct {
	at   Instant
	frac int64
}

// ceil returns the first whole nanosecond that is not before x.
func (x point) ceil() Instant {
	if x.frac > 0 {
		return x.at + 1
	}
	return x.at
}

// last is the last point. No state is ever at Never, because a caller who waits
// for Never sleeps until it is woken.
var last = point{at: Never - 1}

// after returns the point a span later, or last.
func (x point) after(s span, den int64) point {
	if Instant(s.whole) > last.at-1-max(x.at, 0) {
		return last
	}
	x.at += Instant(s.whole)
	if x.frac += s.rest; x.frac >= den {
		x.frac -= den
		x.at++
	}
	return x
}

// before returns the point a span earlier, or the first one.
func (x point) before(s span, den int64) point {
	if x.at < 0 && Instant(s.whole) > x.at-minInstant-1 {
		return point{at: minInstant}
	}
	x.at -= Instant(s.whole)
	if x.frac -= s.rest; x.frac < 0 {
		x.frac += den
		x.at--
	}
	return x
}

// afterExactly returns the point that many intervals later, rounded up to the
// pace's fraction of a nanosecond.
func (x point) afterExactly(p pace, intervals *big.Rat) point {
	ticks := new(big.Int).Mul(intervals.Num(), big.NewInt(p.unit))
	ticks.Add(ticks, new(big.Int).Sub(intervals.Denom(), big.NewInt(1)))
	ticks.Quo(ticks, intervals.Denom())
	whole, frac := new(big.Int).QuoRem(ticks, big.NewInt(p.den), new(big.Int))
	if !whole.IsInt64() || Instant(whole.Int64()) > last.at-1-max(x.at, 0) {
		return last
	}
	return point{at: x.at + Instant(whole.Int64()), frac: frac.Int64()}
}
