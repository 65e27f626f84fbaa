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
