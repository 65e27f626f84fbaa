package course_test

import (
	"testing"
	"time"

	"github.com/weirgo/weir/internal/course"
	"github.com/weirgo/weir/internal/learn"
)

// A caller that sends one call at a time never waits, so no state is kept. The first refusal is
// nevertheless set against the pace of the calls before it, also in a sub-lane that is made for it.
func TestFirstRefusalKnowsThePace(t *testing.T) {
	lane, sublane := rideOf(t, learn.Setting{}), rideOf(t, learn.Setting{})
	now := dawn
	for range 40 {
		now = now.Add(100 * time.Millisecond)
		a, _ := lane.depart(now)
		a.Others = false
		lane.Landed(t.Context(), now.Add(5*time.Millisecond), &a)
	}
	sublane.Follow(lane.Course)
	for name, r := range map[string]*ride{"lane": lane, "sub-lane": sublane} {
		r.Observe(t.Context(), now.Add(105*time.Millisecond), &course.Answer{Departed: now.Add(100 * time.Millisecond), Refused: true})
		s, _ := r.Learned()
		between, calls := s.Pace[1].At.Sub(s.Pace[0].At), s.Pace[1].Ordinal-s.Pace[0].Ordinal
		if calls == 0 || between != time.Duration(calls)*100*time.Millisecond {
			t.Errorf("%s: %d calls in %v before the refusal, want one each 100ms", name, calls, between)
		}
	}
}

// The learner knows when all calls in flight are answered, in whatever order: then what they report
// is left for sure, and what earlier ones reported is no longer of interest.
func TestLearnerKnowsThatAllAreAnswered(t *testing.T) {
	r := rideOf(t, learn.Setting{})
	now, calls := dawn, 0.0
	for range 10 {
		for _, a := range r.burst(now) {
			r.Landed(t.Context(), now, &a)
			calls++
		}
	}
	for _, end := range []float64{calls + 20, calls + 24} { // the vendor grants calls up to then: four permits are added
		now = now.Add(time.Second)
		var flying [3]course.Answer
		for i := range flying {
			flying[i], _ = r.depart(now)
		}
		for i := 2; i >= 0; i-- { // they arrive as they departed
			a := flying[i]
			a.Quotas = []learn.Quota{{Limit: 20, HasLimit: true, Remaining: end - float64(a.Seen.Ordinal()), HasRemaining: true}}
			r.Landed(t.Context(), now.Add(time.Duration(10-i)*time.Millisecond), &a)
		}
		if s, _ := r.Learned(); s.Ceilings[0].C != end {
			t.Errorf("calls up to %.0f are granted, want %.0f", s.Ceilings[0].C, end)
		}
	}
}
