package learn

import (
	"testing"
	"time"

	"github.com/weirgo/weir/throttle"
)

// The first estimate is rough, whatever its stated width: the lane takes a share only of a rate
// that two in a row agree on.
func TestShareIsOfARateThatTwoEstimatesShow(t *testing.T) {
	s := New(Setting{Share: 0.5})
	for _, c := range []struct{ w, u, before, want float64 }{
		{500, 0.2, 0, 0}, {110, 0.2, 500, 0}, {100, 0.2, 105, 0}, {100, 0.1, 120, 0}, {100, 0.1, 105, 90}, {80, 0.1, 100, 90},
	} {
		s.W, s.U = c.w, c.u
		if s.found(c.before); s.Whole != c.want {
			t.Errorf("after %v and %v, with a width of %v, the whole rate is %v, want %v", c.before, c.w, c.u, s.Whole, c.want)
		}
	}
}

// Refusals every two seconds show that the share is too much, although calls are served in between.
func TestShareIsSearchedAnewAfterRefusals(t *testing.T) {
	s := New(Setting{Share: 0.5})
	s.Mode, s.W, s.U, s.R, s.Whole, s.RTT = Rate, 100, 0.1, 90, 400, 0.02
	for i := range mostMissed {
		if s.Whole == 0 {
			t.Fatalf("the rate is searched anew after %d refusals, want %d", i, mostMissed)
		}
		s.again()
		for n := range int64(160) {
			f := Fact{Ordinal: n, Waited: true, Departed: throttle.Instant(n * 12e6)}
			s.grow(&f, 0)
		}
		s.missed()
	}
	if s.Whole != 0 {
		t.Errorf("the lane still takes its share of %v/s after %d refusals in 8 s", s.Whole, mostMissed)
	}
}

// A lane with a share leaves a bucket full. The slope is then its own pace, exactly, and not a guess
// above it. The rise of that level counts, and not what refusals taught before.
func TestShareMeasuresABucketThatItLeavesFull(t *testing.T) {
	s := sharing(20)
	if c := &s.Ceilings[0]; c.Slope < 60 || c.Slope > 70 || c.Blur > agreed*c.Slope {
		t.Errorf("at a pace of 66/s the slope is %.1f/s with an error of %.1f, want 60 to 70, and a tenth", c.Slope, c.Blur)
	}
	s.Mode, s.Whole, s.W, s.R = Rate, 50, 50, 50
	if s.shared(50) != 50 {
		t.Errorf("of 50/s that refusals allow, the lane takes %.1f/s of a level that rises", s.shared(50))
	}
	for n := range int64(1000) {
		s.grow(&Fact{Ordinal: n, Waited: true, Departed: throttle.Instant(n * 15e6)}, 0)
	}
	if s.R <= 50 {
		t.Errorf("the search stands still at %.1f/s", s.R)
	}
}

// As long as the share's rate is unknown, the lane departs faster than a level that stays near the
// top rises, because only a level that falls shows how fast it would.
func TestShareExploresABucketThatItLeavesFull(t *testing.T) {
	s := sharing(20)
	c := &s.Ceilings[0]
	pace := func() float64 {
		rate, _ := c.paced(&s, s.Last.At, c.reserve(s.RTT), s.Last.Ordinal) // the rest is granted already
		return rate
	}
	if pace() < 2*c.Slope {
		t.Errorf("at a full level the lane takes %.1f/s, want twice the slope of %.1f", pace(), c.Slope)
	}
	c.Found = c.Slope
	if pace() >= 2*c.Slope {
		t.Errorf("the lane takes %.1f/s of a found rate of %.1f", pace(), c.Found)
	}
	if s.Full == s.Last.Ordinal {
		t.Error("one process notes what processes that share a lane leave")
	}
	s.Setting.Shared = true
	f := Fact{Departed: s.Last.At.Add(15e6), Ordinal: s.Last.Ordinal + 1}
	if c.rise(&s, &f, 20, Level{c.Prev.Low + 1, c.Prev.High + 1, f.Departed, f.Ordinal}, false); s.Full != f.Ordinal {
		t.Errorf("a full level of processes that share the lane is noted for call %d, want %d", s.Full, f.Ordinal)
	}
}

// A share that is spent is reported as zero, however far it is overdrawn: that shows no rise.
func TestOverdrawnShareShowsNoRise(t *testing.T) {
	if s := sharing(0); s.Ceilings[0].Slope != 0 {
		t.Errorf("the slope is %.1f/s", s.Ceilings[0].Slope)
	}
}

// sharing returns the state of a lane that takes half, after 3 s of 66 calls a second whose answers
// report so many left.
func sharing(left float64) State {
	s := New(Setting{Share: 0.5})
	for n := range int64(200) {
		departed := throttle.Instant(1e18 + n*15e6)
		f := Fact{
			Departed: departed, Landed: departed.Add(5e6), Ordinal: n + 1, Granted: n + 1, Flying: 1, Waited: true,
			Quotas: []Quota{{Limit: 50, HasLimit: true, Remaining: left, HasRemaining: true}},
		}
		s.Observe(&f, f.Landed)
	}
	return s
}

// A new process finds its share of a log spent, and no reset is reported. A look is not refused, since others
// have the rest: so the end of a minute is looked at, too, and not only that of five. Looks are few.
func TestSpentShareIsLookedAtInTime(t *testing.T) {
	s := New(Setting{Share: 0.5})
	now, looks, silence := throttle.Instant(98*time.Second), int64(0), time.Duration(0)
	for left := 1.0; now < throttle.Instant(5*time.Minute); left = 0 {
		looks++
		f := Fact{
			Departed: now, Landed: now.Add(50 * time.Millisecond), Ordinal: looks, Granted: looks, Answered: looks, Flying: 1, Waited: true,
			Quotas: []Quota{{Limit: 107, HasLimit: true, Remaining: left, HasRemaining: true}},
		}
		s.Observe(&f, f.Landed)
		now = max(f.Landed, s.Plan(f.Landed, looks).Hold)
		silence = max(silence, now.Sub(f.Departed))
	}
	if silence > 90*time.Second || looks > 20 {
		t.Errorf("%d looks, the longest silence %v, want at most 20, 90s", looks, silence)
	}
}
