package learn

import (
	"testing"
	"time"

	"github.com/weirgo/weir/throttle"
)

// Others take everything for a moment, and 10/s are learned instead of 100/s. After a second the
// rate is raised to the earlier one.
func TestRateFromBeforeIsTriedAgain(t *testing.T) {
	now := throttle.InstantOf(time.Unix(1_700_000_000, 0))
	var b Before
	r := Search{W: 10, U: 0.1, R: 10}
	raise := func(after time.Duration) float64 { return b.raise(&Fact{Departed: now.Add(after)}, &r) }
	b.refused(&Fact{Departed: now}, 100, false)
	b.over(&Fact{Departed: now}, &r, 0.5)
	if least := raise(500 * time.Millisecond); least != 0 {
		t.Errorf("half a second after the refusal the rate is raised by %.2f", least)
	}
	if least := raise(1100 * time.Millisecond); least != mostRise {
		t.Errorf("a second after it the rate is raised by %.2f, want %.2f", least, mostRise)
	}
	if r.R = 100; raise(1200*time.Millisecond) != 0 || b.Rate != 0 {
		t.Errorf("the rate of before, %.1f/s, is raised further", b.Rate)
	}
}

// A refusal on the way puts the next attempt off, each time four times as long, until a minute.
func TestRateFromBeforeIsGivenUp(t *testing.T) {
	now := throttle.InstantOf(time.Unix(1_700_000_000, 0))
	var b Before
	r := Search{W: 10, U: 0.1, R: 10}
	b.refused(&Fact{Departed: now}, 100, false)
	for _, gap := range []float64{1, 4, 16} {
		b.over(&Fact{Departed: now}, &r, 0.1)
		if b.Rate == 0 || b.Next != now.Add(seconds(gap)) {
			t.Fatalf("the next attempt at %.0f/s is %v after the refusal, want %.0f s", b.Rate, b.Next.Sub(now), gap)
		}
		now = b.Next
		b.raise(&Fact{Departed: now}, &r)
		b.refused(&Fact{Departed: now}, 20, false)
	}
	if b.Rate != 0 {
		t.Errorf("after three attempts %.0f/s are still tried", b.Rate)
	}
	for range 40 { // others come again and again
		b.refused(&Fact{Departed: now}, 20, false)
	}
	if b.Gap > 4*lastReturn {
		t.Errorf("the next attempt is %g s after a refusal: a state with that is not read", b.Gap)
	}
}
