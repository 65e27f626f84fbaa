package learn

import (
	"testing"
	"time"

	"github.com/weirgo/weir/throttle"
)

// A bucket of 40/s and a burst of 4 is full after each told second, and is emptied
// within 20 ms. Its level being full then does not say that it rises faster.
func TestFullLevelAfterAPauseRaisesNothing(t *testing.T) {
	s := New(Setting{})
	now := throttle.InstantOf(time.Unix(1_700_000_000, 0))
	ordinal := int64(0)
	answer := func(left float64, refused bool) {
		ordinal++
		f := Fact{Departed: now, Landed: now.Add(5 * time.Millisecond), Ordinal: ordinal, Granted: ordinal, Flying: 1, Waited: true, Refused: refused}
		f.Quotas = []Quota{{Limit: 4, Remaining: left, Reset: time.Second, HasLimit: true, HasRemaining: true, HasReset: true}}
		if refused {
			f.Until = f.Landed.Add(time.Second)
		}
		s = Observe(s, &f, f.Landed)
	}
	// It is paced by the level, at 40/s.
	for range 200 {
		answer(2, false)
		now = now.Add(25 * time.Millisecond)
	}
	for range 10 {
		for left := range 4 {
			answer(float64(3-left), false)
			now = now.Add(5 * time.Millisecond)
		}
		answer(0, true)
		now = now.Add(time.Second)
	}
	for _, track := range s.Tracks {
		if track.Key != 0 && track.Slope > 50 {
			t.Errorf("the level is believed to rise by %.0f/s after ten pauses, want about 40", track.Slope)
		}
	}
}

// A refusal that tells another quota alone says nothing against a track that said that
// enough was left. One that tells none, or that one, does.
func TestTrackIsStruckByItsOwnRefusals(t *testing.T) {
	second := Quota{Name: "second", Limit: 20, Remaining: 19, HasLimit: true, HasRemaining: true, HasReset: true, Reset: time.Second}
	minute := Quota{Name: "minute", Limit: 300, HasLimit: true, HasRemaining: true, HasReset: true, Reset: 30 * time.Second}
	tests := map[string]struct {
		told []Quota
		want int
	}{
		"none":        {nil, 1},
		"its own":     {[]Quota{second}, 1},
		"another one": {[]Quota{minute}, 0},
	}
	for name, test := range tests {
		s := hundred()
		s.Setting = Setting{}
		for range 10 {
			s.answer(false, second)
		}
		s.answer(true, test.told...)
		for _, track := range s.Tracks {
			if track.Key == second.Key() && track.Strikes != test.want {
				t.Errorf("a refusal that tells %s strikes %d times, want %d", name, track.Strikes, test.want)
			}
		}
	}
}

// Calls of several processes leave in another order than a store numbered them. Who
// leaves late with an early number has not found fewer permits left.
func TestLateDepartureOfAnEarlyOrdinalLowersNoLevel(t *testing.T) {
	s := New(Setting{Shared: true})
	now := throttle.InstantOf(time.Unix(1_700_000_000, 0))
	answer := func(ordinal int64, left float64) {
		now = now.Add(time.Millisecond)
		f := Fact{Departed: now, Landed: now.Add(5 * time.Millisecond), Ordinal: ordinal, Granted: 20, Flying: 1, Waited: true}
		f.Quotas = []Quota{{Limit: 100, Remaining: left, HasLimit: true, HasRemaining: true}}
		s = Observe(s, &f, f.Landed)
	}
	for ordinal := int64(2); ordinal <= 20; ordinal++ {
		answer(ordinal, float64(101-ordinal))
	}
	answer(1, 80)
	if left := s.Tracks[0].left(now, 20); left < 79 || left > 82 {
		t.Errorf("%v are left, want 80", left)
	}
}

// A bucket that is full for a while gains nothing, so that shows no slower rise.
func TestFullLevelDuringAPauseLowersNothing(t *testing.T) {
	s := New(Setting{})
	now := throttle.InstantOf(time.Unix(1_700_000_000, 0))
	ordinal, left, at := int64(0), 20.0, now
	answer := func(after time.Duration, calls int64) { // to the last of calls at once, by 200/s and a burst of 20
		now = now.Add(after)
		left, at = min(left+200*now.Sub(at).Seconds(), 20)-float64(calls), now
		ordinal += calls
		f := Fact{Departed: now, Landed: now.Add(5 * time.Millisecond), Ordinal: ordinal, Granted: ordinal, Flying: 1, Waited: true}
		f.Quotas = []Quota{{Limit: 20, Remaining: float64(int(left)), Reset: time.Second, HasLimit: true, HasRemaining: true, HasReset: true}}
		s = Observe(s, &f, f.Landed)
	}
	for range 16 {
		answer(time.Millisecond, 1)
	}
	for range 200 {
		answer(5*time.Millisecond, 1)
	}
	before := s.Tracks[0].Slope
	answer(time.Second, 4)
	for range 20 {
		answer(2*time.Millisecond, 1)
	}
	if after := s.Tracks[0].Slope; before < 150 || after < 150 || after > 260 {
		t.Errorf("a rise of 200/s was measured as %v before a pause and %v after it", before, after)
	}
}
