package distributed_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/weirgo/weir/throttle"
)

// The judge's one pass finds what a look at each window finds.
func TestBoundFindsTheWorstWindow(t *testing.T) {
	random := rand.New(rand.NewPCG(seeded(t), 3))
	for range 200 {
		b := bound{rate: 100 * random.Float64(), burst: 5}
		for range random.IntN(3) {
			from := throttle.Instant(random.Int64N(int64(time.Second)))
			b.spells = append(b.spells, spell{
				from: from, to: from + throttle.Instant(random.Int64N(int64(time.Second))),
				rate: 50*random.Float64() - 20, more: 10 * random.Float64(),
			})
		}
		at := make([]throttle.Instant, 1+random.IntN(60))
		for i := range at {
			at[i] = throttle.Instant(random.Int64N(int64(time.Second)))
		}
		slices.Sort(at)
		want := math.Inf(-1)
		for i := range at {
			for j := i; j < len(at); j++ {
				want = max(want, float64(j-i+1)-b.inWindow(at[i], at[j]))
			}
		}
		if got, _, _ := b.worst(at); math.Abs(got-want) > 1e-9 {
			t.Fatalf("worst of %v within %+v = %v, want %v", at, b, got, want)
		}
	}
}

// inWindow is what a window may hold beyond the credit, by the definition.
func (b bound) inWindow(from, to throttle.Instant) float64 {
	sum := b.rate * to.Sub(from).Seconds()
	for _, s := range b.spells {
		sum += s.rate * max(0, min(to, s.to).Sub(max(from, s.from)).Seconds())
		if from <= s.to && to >= s.from {
			sum += s.more
		}
	}
	return sum
}

// What a bucket of the rate and burst lets go is within the bound, and one more
// is not.
func TestBoundIsExact(t *testing.T) {
	b := bound{rate: 100, burst: 3, x: 5 * time.Millisecond}
	var at []throttle.Instant
	for range 3 {
		at = append(at, throttle.Instant(time.Second))
	}
	for i := range 50 {
		at = append(at, throttle.Instant(time.Second)+throttle.Instant(i+1)*throttle.Instant(10*time.Millisecond))
	}
	if over, _, _ := b.worst(at); math.Abs(over-3) > 1e-9 || b.credit() != 3.5 {
		t.Errorf("%v above the rate of credit %v, want 3 of 3.5", over, b.credit())
	}
	at = slices.Insert(at, 30, at[30])
	if over, _, _ := b.worst(at); math.Abs(over-4) > 1e-9 {
		t.Errorf("%v above the rate with one more, want 4", over)
	}
}

// A departure counts in the window of its permit, which may be the one before.
func TestBoundOfWindows(t *testing.T) {
	l := throttle.FixedWindow(2, time.Second)
	ms := func(all ...int) (at []throttle.Instant) {
		for _, i := range all {
			at = append(at, throttle.Instant(i)*throttle.Instant(time.Millisecond))
		}
		return at
	}
	for _, test := range []struct {
		at   []throttle.Instant
		want int
	}{
		{ms(10, 900, 1001, 1002), 2},
		{ms(10, 900, 950), 3},
		{ms(10, 1001, 1500, 1600), 2},
		{ms(10, 20, 1001, 1500, 1600), 3},
	} {
		if got := fullest(l, test.at, 5*time.Millisecond); got != test.want {
			t.Errorf("fullest(%v) = %d, want %d", test.at, got, test.want)
		}
	}
	if got := densest(ms(0, 500, 999, 1000, 1001), time.Second); got != 4 {
		t.Errorf("densest = %d, want 4", got)
	}
}
