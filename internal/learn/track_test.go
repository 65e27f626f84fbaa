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

// Calls that left before processes learned together have no ordinal: they count as the
// latest that was let go, and some of those are to come. The first call that has one says
// where the level is, and the next how fast it rises.
func TestGuessedOrdinalsHideNoRise(t *testing.T) {
	s := New(Setting{Shared: true})
	now := throttle.InstantOf(time.Unix(1_700_000_000, 0))
	answer := func(ordinal, granted int64, left float64) *Track {
		f := Fact{Departed: now.Add(-6 * time.Millisecond), Landed: now.Add(-time.Millisecond), Ordinal: ordinal, Flying: 1, Waited: true}
		f.Quotas = []Quota{{Limit: 200, Remaining: left, Reset: time.Second, HasLimit: true, HasRemaining: true, HasReset: true}}
		s.Hear(AppendFact(nil, &f), granted, now)
		return &s.Tracks[0]
	}
	for i := range int64(8) {
		answer(0, 8+2*i, float64(19-i)) // the store lets others go meanwhile
	}
	now = now.Add(10 * time.Millisecond)
	if got := answer(9, 24, 11); got.V != 20 || got.Slope > 0 {
		t.Errorf("the level runs out at %.1f and rises by %.0f/s, want 20 and not", got.V, got.Slope)
	}
	now = now.Add(60 * time.Millisecond)
	if got := answer(10, 24, 19); got.Slope < 50 {
		t.Errorf("a level that gained nine permits in 60 ms is believed to rise by %.0f/s, want 50 at least", got.Slope)
	}
}

// A level that the first call with an ordinal finds higher than those without did has not
// risen: it was not known.
func TestGuessedOrdinalsShowNoRise(t *testing.T) {
	s := New(Setting{Shared: true})
	now := throttle.InstantOf(time.Unix(1_700_000_000, 0))
	for i, left := range []float64{12, 14, 13, 12, 11} {
		f := Fact{Departed: now.Add(-6 * time.Millisecond), Landed: now.Add(-time.Millisecond), Flying: 1, Waited: true}
		granted := int64(1)
		if i == 4 {
			f.Ordinal, granted = 9, 9
		}
		f.Quotas = []Quota{{Limit: 20, Remaining: left, Reset: time.Second, HasLimit: true, HasRemaining: true, HasReset: true}}
		s.Hear(AppendFact(nil, &f), granted, now)
		now = now.Add(12 * time.Millisecond)
	}
	if got := s.Tracks[0]; got.V != 20 || got.Slope > 0 {
		t.Errorf("the level runs out at %.1f and rises by %.0f/s, want 20 and not", got.V, got.Slope)
	}
}

// If a bucket's policy is told as a rate, its burst is the most that was left as soon as
// a level that rises has come back to it.
func TestBurstIsKnownOnceTheLevelCameBack(t *testing.T) {
	s := New(Setting{})
	now := throttle.InstantOf(time.Unix(1_700_000_000, 0))
	for i, left := range []float64{19, 15, 11, 19} {
		f := Fact{Departed: now, Landed: now.Add(5 * time.Millisecond), Ordinal: int64(1 + 4*i), Granted: int64(1 + 4*i), Flying: 1, Waited: true}
		f.Quotas = []Quota{{Limit: 200, Remaining: left, Reset: time.Second, HasLimit: true, HasRemaining: true, HasReset: true}}
		s = Observe(s, &f, f.Landed)
		want := 200.0
		if i == 3 {
			want = 19
		}
		if got := s.Tracks[0].size(); got != want {
			t.Errorf("after reading %d, slope %.0f/s, at most %.0f are believed to be left, want %.0f", i, s.Tracks[0].Slope, got, want)
		}
		now = now.Add(20 * time.Millisecond)
		if i == 2 {
			now = now.Add(100 * time.Millisecond)
		}
	}
}
