package distributed_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirgo/weir/throttle"
)

// A spell is a time in which the vendor may see more or fewer calls than without a fault. The rate
// differs by rate permits per second, and each window that overlaps the spell may hold more permits
// in addition. Replicas numbered below `below` are cut off.
type spell struct {
	from, to throttle.Instant
	rate     float64
	more     float64
	below    int
}

// A bound is what the vendor may see in any window of departures: the rate times (window + x), plus
// the burst, plus what the spells add.
type bound struct {
	rate, burst float64
	x           time.Duration // permit tolerance and spread
	spells      []spell
}

// allowed returns the permits allowed from epoch to an instant, at which a window begins or ends.
func (b bound) allowed(epoch, at throttle.Instant, ends bool) float64 {
	sum := b.rate * at.Sub(epoch).Seconds()
	for _, s := range b.spells {
		sum += s.rate * max(0, min(at, s.to).Sub(max(epoch, s.from)).Seconds())
		if ends && at >= s.from || !ends && at > s.to {
			sum += s.more
		}
	}
	return sum
}

// credit is what a window of length zero may hold.
func (b bound) credit() float64 { return b.burst + b.rate*b.x.Seconds() }

// worst returns the window that exceeds the rate by most, and by how much. It takes one pass. The
// excess of a window is a sum up to its end minus a sum up to its beginning, so the least of those
// beginnings is kept.
func (b bound) worst(at []throttle.Instant) (over float64, from, to throttle.Instant) {
	least, begin := math.Inf(1), throttle.Instant(0)
	over = math.Inf(-1)
	for i, t := range at {
		if before := float64(i) - b.allowed(at[0], t, false); before < least {
			least, begin = before, t
		}
		if o := float64(i+1) - b.allowed(at[0], t, true) - least; o > over {
			over, from, to = o, begin, t
		}
	}
	return over, from, to
}

// judge fails the test if a window holds more than the bound, and logs how near the worst one came.
func (b bound) judge(t *testing.T, what string, at []throttle.Instant) {
	t.Helper()
	if len(at) == 0 {
		return
	}
	over, from, to := b.worst(at)
	t.Logf("%s: %d in %.2fs; worst %s; %.1f of %.1f above the rate", what, len(at), at[len(at)-1].Sub(at[0]).Seconds(), b.table(at), over, b.credit())
	if over > b.credit() {
		t.Errorf("%s: %d departures in %v from %v on, %.2f above the rate, want at most %.2f", what, count(at, from, to), to.Sub(from), from.Sub(at[0]), over, b.credit())
	}
}

// table formats the fullest windows of several lengths, beside what is allowed in them.
func (b bound) table(at []throttle.Instant) string {
	var cells []string
	for _, w := range []time.Duration{100 * time.Millisecond, time.Second, 10 * time.Second} {
		if w > at[len(at)-1].Sub(at[0]) {
			break
		}
		most, allowed := 0, 0.0
		first := 0
		for i, t := range at {
			for at[first] <= t.Add(-w) {
				first++
			}
			if n := i + 1 - first; n > most {
				most = n
				allowed = b.credit() + b.allowed(at[0], t, true) - b.allowed(at[0], t.Add(-w), false)
			}
		}
		cells = append(cells, fmt.Sprintf("%v %d/%.0f", w, most, allowed))
	}
	return strings.Join(cells, ", ")
}

// count returns how many of the ordered instants are in a window.
func count(at []throttle.Instant, from, to throttle.Instant) int {
	i, _ := slices.BinarySearch(at, from)
	j, _ := slices.BinarySearch(at, to+1)
	return max(j-i, 0)
}

// homeless returns how many departures fit in no aligned window if each may count up to x before
// its instant. It also returns the count of the fullest window.
func homeless(l throttle.Limit, at []throttle.Instant, x time.Duration) (beyond, most int) {
	window := func(i throttle.Instant) int64 { return int64(i) / int64(l.Per) }
	held := make(map[int64]int)
	for _, t := range at {
		w := window(t.Add(-x))
		for w < window(t) && held[w] == l.Permits {
			w++
		}
		if held[w] == l.Permits {
			beyond++
			continue
		}
		held[w]++
		most = max(most, held[w])
	}
	return beyond, most
}

// densest returns the most departures in any window of length w.
func densest(at []throttle.Instant, w time.Duration) int {
	most, first := 0, 0
	for i, t := range at {
		for at[first] <= t.Add(-w) {
			first++
		}
		most = max(most, i+1-first)
	}
	return most
}

// The single pass finds the same window as a look at each one.
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

// inWindow is what a window may hold beyond the credit, by definition.
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

// The most that a bucket of the rate and burst grants is within the bound, and one more is not.
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

// A departure counts in the window of its permit, which may be the previous one.
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
		{ms(10, 900, 1001, 1002), 0},
		{ms(10, 900, 950), 1},
		{ms(10, 1001, 1500, 1600), 0},
		{ms(10, 20, 1001, 1500, 1600), 1},
		{ms(10, 20, 30, 1001, 1500, 1600, 1700), 3},
	} {
		if got, _ := homeless(l, test.at, 5*time.Millisecond); got != test.want {
			t.Errorf("homeless(%v) = %d, want %d", test.at, got, test.want)
		}
	}
	if got := densest(ms(0, 500, 999, 1000, 1001), time.Second); got != 4 {
		t.Errorf("densest = %d, want 4", got)
	}
}
