package headers

import (
	"math/bits"
	"strconv"
	"strings"
	"time"
)

const (
	// maxWait bounds every wait: a longer one is cut to it. No client would stand
	// in line for a quota that is longer than a month.
	maxWait = 31 * 24 * time.Hour
	// maxWindow bounds a quota's window: a longer one is left out. If it were cut
	// to the bound, the rate would look higher than it is.
	maxWindow = 10 * 366 * 24 * time.Hour
	// maxCount bounds limit and remaining. Above it, 2^53 - 1, a float64 no longer
	// holds every integer, and no vendor grants that much.
	maxCount = 1<<53 - 1
)

// A decimal is a number without a sign as it is written in a field. It is kept
// in integers, so that rounding never ends a wait before the vendor's time.
type decimal struct {
	whole uint64 // 2^64 - 1 if it is more
	nanos uint64 // billionths, rounded up; 1e9 if that carries
}

// parseDecimal reads 1*DIGIT [ "." 1*DIGIT ] only. Package strconv would also accept signs,
// exponents, hexadecimals, underscores, NaN and Inf.
func parseDecimal(s string) (decimal, bool) {
	var d decimal
	i := 0
	for ; i < len(s) && isDigit(s[i]); i++ {
		hi, lo := bits.Mul64(d.whole, 10)
		sum, carry := bits.Add64(lo, uint64(s[i]-'0'), 0)
		if hi != 0 || carry != 0 {
			sum = 1<<64 - 1
		}
		d.whole = sum
	}
	if i == 0 || i == len(s) {
		return d, i > 0
	}
	if s[i] != '.' || i+1 == len(s) {
		return decimal{}, false
	}
	place, rest := uint64(100_000_000), uint64(0)
	for i++; i < len(s); i++ {
		if !isDigit(s[i]) {
			return decimal{}, false
		}
		digit := uint64(s[i] - '0')
		d.nanos += digit * place
		if place == 0 {
			rest |= digit
		}
		place /= 10
	}
	if rest != 0 {
		d.nanos++
	}
	return d, true
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// times returns d units, rounded up to a nanosecond and cut to bound. The
// second result is false if it was cut.
func (d decimal) times(unit, bound time.Duration) (time.Duration, bool) {
	if d.whole > uint64(bound/unit) {
		return bound, false
	}
	hi, lo := bits.Mul64(d.nanos, uint64(unit))
	part, rest := bits.Div64(hi, lo, 1e9)
	if rest != 0 {
		part++
	}
	sum := d.whole*uint64(unit) + part
	if sum > uint64(bound) {
		return bound, false
	}
	return time.Duration(sum), true
}

// instant returns d as time since the Unix epoch. The unit, from seconds to
// nanoseconds, follows from its size.
func (d decimal) instant() time.Time {
	unit := time.Second
	switch {
	case d.whole >= 1e17:
		unit = time.Nanosecond
	case d.whole >= 1e14:
		unit = time.Microsecond
	case d.whole >= 1e11:
		unit = time.Millisecond
	}
	perSecond := uint64(time.Second / unit)
	part, _ := decimal{d.whole % perSecond, d.nanos}.times(unit, time.Second)
	return time.Unix(int64(d.whole/perSecond), int64(part))
}

// parseCount reads a limit, or how much of one remains. A number that is too
// high to be meant is left out. It must not be cut to a bound, because the
// bound would still allow everything.
func parseCount(s string) (float64, bool) {
	d, ok := parseDecimal(s)
	if !ok || d.nanos == 0 { // as nearly always: it is exact
		return float64(d.whole), ok && d.whole <= maxCount
	}
	n, err := strconv.ParseFloat(s, 64)
	return n, err == nil && n <= maxCount
}

// parseRemaining is parseCount, but a number below zero means zero: the quota
// was overdrawn.
func parseRemaining(s string) (float64, bool) {
	if digits, negative := strings.CutPrefix(s, "-"); negative {
		_, ok := parseDecimal(digits)
		return 0, ok
	}
	return parseCount(s)
}
