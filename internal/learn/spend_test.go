package learn

import (
	"testing"
	"time"

	"github.com/weirgo/weir/throttle"
)

// A level that is blamed for every refusal, whatever the vendor really counts, does
// not slow a lane to a stop.
func TestBlameDoesNotEndALevelsRise(t *testing.T) {
	now := throttle.Instant(1_700_000_000_000_000_000)
	s := New(Setting{})
	s.Tracks[0] = Track{Key: 1, Limit: 20, Seen: true, Agree: 3, Readings: 1, Slope: 100, At: now}
	for n := int64(1); n <= 2000; n++ { // 100 calls a second
		now = now.Add(10 * time.Millisecond)
		f := Fact{Departed: now, Landed: now, Ordinal: n, Granted: n, Flying: 1, Waited: true, Refused: n%20 == 0}
		s.meet(&f, now.Add(5*time.Millisecond))
		s.Last = Mark{n, now}
		track := &s.Tracks[0]
		track.Last, track.V, track.At = s.Last, float64(n), now
		if f.Refused && !s.blames(&f, now) {
			t.Fatal("an empty level does not explain a refusal")
		}
	}
	if got := s.Tracks[0].Slope; got < 20 {
		t.Errorf("after a hundred refusals the level rises by %.3g/s, calls leave at 100/s", got)
	}
}

// A window that has just begun has most of its permits left. That is no reason to go
// faster than it bears.
func TestFullWindowRaisesNoRate(t *testing.T) {
	now := throttle.Instant(1_700_000_000_000_000_000)
	s := New(Setting{})
	s.Mode, s.W, s.U, s.R, s.P, s.RTT = Rate, 80, 0.4, 60, 1, 0.01
	for n := int64(1); n <= 39; n++ {
		now = now.Add(time.Second / 60)
		f := Fact{Departed: now, Landed: now.Add(5 * time.Millisecond), Ordinal: n, Granted: n, Flying: 1, Waited: true}
		f.Quotas = []Quota{{Limit: 80, Remaining: float64(80 - n), HasLimit: true, HasRemaining: true}}
		s = Observe(s, &f, f.Landed)
	}
	if s.R > 120 {
		t.Errorf("half of 80 in a second is left, and calls go at %.0f/s: %v", s.R, &s)
	}
}

// An estimate that is a tenth of what a told window bears is left behind within twenty
// calls, and no rate above what the window bears is.
func TestFarTooLowRateRisesByToldQuotas(t *testing.T) {
	now := throttle.Instant(1_700_000_000_000_000_000)
	s := New(Setting{})
	s.Mode, s.W, s.U, s.R, s.RTT = Rate, 0.3, 0.1, 0.3, 0.01
	for n := int64(1); n <= 20; n++ {
		now = now.Add(time.Second)
		f := Fact{Departed: now, Landed: now.Add(5 * time.Millisecond), Ordinal: n, Granted: n, Flying: 1, Waited: true}
		f.Quotas = []Quota{{Limit: 62, Remaining: 58, Reset: 10 * time.Second, HasLimit: true, HasRemaining: true, HasReset: true}}
		s = Observe(s, &f, f.Landed)
	}
	if s.R < 2.5 || s.R > 12 {
		t.Errorf("calls go at %.2f/s after twenty, 58 are left for ten seconds: %v", s.R, &s)
	}
}
