package learn

import (
	"testing"
	"time"

	"github.com/weirgo/weir/throttle"
)

// Calls leave in waves of 64, every 300 ms: 213/s. The refused one left between two
// waves, when the pace seemed to be a third of that. More was served than that, so
// the estimate is not sure of it, and the search that follows is a short one.
func TestRoughPaceIsNoSureEstimate(t *testing.T) {
	s := New(Setting{})
	ordinal := int64(0)
	leave := func(at throttle.Instant, flying int, refused bool) Fact {
		ordinal++
		f := Fact{Departed: at, Landed: at.Add(300 * time.Millisecond), Ordinal: ordinal, Granted: ordinal, Flying: flying, Waited: true, Refused: refused}
		if refused {
			f.Landed = at.Add(5 * time.Millisecond)
			f.Until = f.Landed.Add(200 * time.Millisecond)
		}
		return f
	}
	now := throttle.InstantOf(time.Unix(1_700_000_000, 0))
	for range 8 {
		for range 64 {
			f := leave(now, 64, false)
			s = observed(s, &f, f.Landed)
		}
		now = now.Add(300 * time.Millisecond)
	}
	f := leave(now, 20, true)
	s = observed(s, &f, f.Landed)
	f = leave(now.Add(210*time.Millisecond), 1, false)
	s = observed(s, &f, f.Landed)
	if s.Mode != Rate || s.U < 0.2 {
		t.Errorf("learned %v, want a rate within 0.2 of itself at best", &s)
	}
}

// Processes begin to learn at their first refusal. What left before has no ordinal, so
// the refused call seems to be an early one of the burst. The twenty that were served
// at once, and one after the second that was asked for, are no sign of a high rate.
func TestBurstOfManyProcessesIsNoRate(t *testing.T) {
	s := New(Setting{Shared: true})
	first := throttle.InstantOf(time.Unix(1_700_000_000, 0))
	receive := func(f Fact, granted int64, at throttle.Instant) {
		f.Waited, f.Flying = true, 16
		s.Receive(Message{Fact: &f}.Append(nil), granted, at)
	}
	for range 3 {
		receive(Fact{Departed: first, Landed: first, Refused: true, Until: first.Add(time.Second)}, 10, first.Add(time.Millisecond))
	}
	for range 13 {
		receive(Fact{Departed: first, Landed: first.Add(5 * time.Millisecond)}, 24, first.Add(10*time.Millisecond))
	}
	at := first.Add(time.Second)
	receive(Fact{Ordinal: 25, Departed: at, Landed: at.Add(5 * time.Millisecond)}, 25, at.Add(6*time.Millisecond))
	if s.Mode != Rate || s.Episode || s.W > 1000 {
		t.Errorf("learned %v, want a rate of 1,000/s at most", &s)
	}
}

// A second that is asked for is mostly its rounding, so searches that take equally long from one such
// silence to the next show no window: each measures the rate anew.
func TestRoundedSilencesShowNoWindow(t *testing.T) {
	s := New(Setting{Shared: true})
	s.toRate()
	s.W, s.U, s.R, s.RTT, s.Measured, s.Burst, s.B = 860, 0.5, 430, 0.006, true, 7, 7
	now, ordinal := throttle.InstantOf(time.Unix(1_700_000_000, 0)), int64(0)
	s.End = Mark{0, now}
	leave := func(refused bool) {
		ordinal++
		f := Fact{Departed: now, Landed: now.Add(5 * time.Millisecond), Ordinal: ordinal, Granted: ordinal, Flying: 4, Waited: true, Refused: refused}
		if refused {
			f.Until = f.Landed.Add(time.Second)
		}
		s.Observe(&f, f.Landed)
	}
	for range 6 { // a bucket of 20 that gains 200/s, full after each second, is called at 430/s
		for range 37 {
			now = now.Add(2325 * time.Microsecond)
			leave(false)
		}
		leave(true)
		now = now.Add(1010 * time.Millisecond)
	}
	if s.W > 500 || s.windows() {
		t.Errorf("learned %v with a period of %v s, want 500/s at most, and not in windows", &s, s.P)
	}
}

// Processes share a bucket of 200/s burst 20, whose burst was counted as 41. A search that
// rose from 188 to 450/s within half a second was served 110 calls: 200/s, not 300.
func TestBurstThatWasCountedTooHighIsCorrected(t *testing.T) {
	began := throttle.InstantOf(time.Unix(1_700_000_000, 0))
	refused := Mark{Ordinal: 110, At: began.Add(530 * time.Millisecond)}
	r := Search{W: 280, U: 0.32, X: 2.6, R: 450, B: 41, Burst: 41, Measured: true}
	for i, ordinal := range []int64{20, 45, 70, 95} {
		r.Marks[i], r.Rates[i] = Mark{ordinal, began.Add(time.Duration(ordinal) * 5 * time.Millisecond)}, 280
	}
	m := sample{began: Mark{0, began}, refused: refused, rate: 420, burst: 108, n: 110, t: 0.55, silence: 0.02, rtt: 0.06, rough: true}
	if r.measure(&m); r.W < 195 || r.W > 215 || r.U > 0.05 {
		t.Errorf("estimate %.0f/s, give or take %.3f of it, want 200/s and narrow", r.W, r.U)
	}
}

// Processes share a bucket of 200/s burst 20, and knew of its first refusal 0.15 s late: so it served
// 50 at first, 30 of which fell due meanwhile. A search from 98 to 320/s exceeded 200/s for the last
// 0.8 s, and was served 180 calls in them.
func TestWhatFellDueDuringTheBurstIsNoBurst(t *testing.T) {
	began := throttle.InstantOf(time.Unix(1_700_000_000, 0))
	r := Search{W: 196, U: 0.5, X: 1.7, R: 320, B: 50, Burst: 50, Spent: 0.15, Measured: true}
	r.Marks[0], r.Rates[0] = Mark{186, began.Add(1500 * time.Millisecond)}, 200
	m := sample{began: Mark{0, began}, refused: Mark{367, began.Add(2300 * time.Millisecond)}, rate: 320, burst: 365, n: 367, t: 3.3, silence: 1, covered: 1, asked: true, rtt: 0.04}
	if r.measure(&m); r.W < 195 || r.W > 215 || r.U > 0.08 {
		t.Errorf("estimate %.0f/s, give or take %.3f of it, want 200/s", r.W, r.U)
	}
}
