package throttle

import (
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"
)

// A Part is a part of a limit: "20%" of its permits, or "1000" permits. A percentage is
// rounded up to whole permits. The zero Part is nothing.
type Part string

// of returns how many of n permits the part is, or an error for an invalid part.
func (p Part) of(n int) (int, error) {
	if p == "" {
		return 0, nil
	}
	percent, isPercent := strings.CutSuffix(string(p), "%")
	if !isPercent {
		count, err := parseCount(string(p))
		if err != nil || count < 0 {
			return 0, fmt.Errorf("%q is not a number of permits, or a percentage such as 20%%", string(p))
		}
		return count, nil
	}
	share, err := strconv.ParseFloat(percent, 64)
	if err != nil || math.IsNaN(share) || share < 0 || share > 100 {
		return 0, fmt.Errorf("%q is not between 0%% and 100%%", string(p))
	}
	const rounding = 1e-9 // 7% of 100 is no more than 7
	return min(int(math.Ceil(float64(n)*share/100*(1-rounding))), n), nil
}

// Keeping returns l with a part that is left to other clients: "20%" of the permits, or
// "1000" of them.
func (l Limit) Keeping(p Part) Limit {
	l.Keep = p
	return l
}

// Reserving returns l with a part that is reserved for urgent requests: "10%", or "100"
// permits.
func (l Limit) Reserving(p Part) Limit {
	l.Reserve = p
	return l
}

// Enforced returns the limit that is enforced: l without what Keep leaves to others.
// Permits are fewer by what is kept, Burst shrinks in proportion but is at least 1, and Per
// stays:
//
//	5000/h burst 500 keep 20%   4000/h burst 400
//	fixed 5000/h keep 1000      fixed 4000/h
func (l Limit) Enforced() Limit {
	kept, err := l.Keep.of(l.Permits)
	l.Keep = ""
	if err != nil || kept <= 0 || kept >= l.Permits {
		return l
	}
	if l.saves() {
		high, low := bits.Mul64(uint64(max(l.Burst, 1)), uint64(l.Permits-kept))
		burst, _ := bits.Div64(high, low, uint64(l.Permits))
		l.Burst = max(int(burst), 1)
	}
	l.Permits -= kept
	return l
}

// Reserved returns how many permits Reserve is: a part of the burst of a bucket, or of the
// permits of a window.
func (l Limit) Reserved() int {
	reserved, _ := l.Reserve.of(l.Enforced().most())
	return reserved
}

// leaves returns how many permits every request that is not urgent must leave. Those of a
// fixed window are released in its course, so that at its end a request may ask for all. A
// window of first use has no end before its first permit.
func (l Limit) leaves() int {
	if l.Algorithm == AlgorithmFixedWindow && l.Align != AlignFirstUse {
		return 0
	}
	return l.Reserved()
}

// checkParts returns what is wrong with Keep or Reserve.
func (l Limit) checkParts() error {
	switch kept, err := l.Keep.of(l.Permits); {
	case err != nil:
		return fmt.Errorf("keep %w", err)
	case kept >= l.Permits:
		return fmt.Errorf("keep %q leaves none of %d permits", string(l.Keep), l.Permits)
	}
	most := l.Enforced().most()
	switch reserved, err := l.Reserve.of(most); {
	case err != nil:
		return fmt.Errorf("reserve %w", err)
	case l.Reserve != "" && l.Algorithm == AlgorithmLeakyBucket:
		return fmt.Errorf("reserve %q: the %v algorithm saves no permits", string(l.Reserve), l.Algorithm)
	case reserved >= most:
		return fmt.Errorf("reserve %q leaves none of %d permits at once to other requests", string(l.Reserve), most)
	}
	return nil
}
