package learn

import (
	"math"
	"testing"
	"time"

	"github.com/weirgo/weir/throttle"
)

// Others take everything for a moment, and 10/s are learned instead of 100/s. After a second the
// rate is raised to the earlier one, and stays if that is served again.
func TestRateFromBeforeIsTriedAgain(t *testing.T) {
	now, ordinal := throttle.InstantOf(time.Unix(1_700_000_000, 0)), int64(0)
	var b Before
	r := Search{W: 100, U: 0.1, R: 100}
	serve := func(d time.Duration) (least float64, restored bool) {
		f := Fact{Departed: now.Add(d), Landed: now.Add(d), Ordinal: ordinal + 1, Granted: ordinal + 1}
		b.depart(&f, false)
		now, ordinal = f.Departed, f.Ordinal
		return b.raise(&f, &r)
	}
	for range 300 {
		serve(10 * time.Millisecond)
	}
	b.refused(&Fact{Departed: now, Ordinal: ordinal}, r.W, r.U, false)
	if math.Abs(b.Rate-100) > 1 {
		t.Fatalf("%.1f/s were served before, want 100/s", b.Rate)
	}
	r.W, r.R = 10, 10
	b.over(&Fact{Departed: now}, &r, 0.5)
	if least, _ := serve(500 * time.Millisecond); least != 0 {
		t.Errorf("half a second after the refusal the rate is raised by %.2f", least)
	}
	if least, _ := serve(600 * time.Millisecond); least != mostRise {
		t.Errorf("a second after it the rate is raised by %.2f, want %.2f", least, mostRise)
	}
	r.R = 100
	for range 99 {
		if _, restored := serve(10 * time.Millisecond); restored {
			t.Fatal("it is the estimate again before it was served for a second")
		}
	}
	for range 3 {
		serve(10 * time.Millisecond)
	}
	if math.Abs(r.W-100) > 1 {
		t.Errorf("the estimate is %.1f/s, want the earlier rate", r.W)
	}
}
