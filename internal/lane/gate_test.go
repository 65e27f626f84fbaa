package lane

import (
	"errors"
	"testing"
	"time"

	"github.com/weirgo/weir/throttle"
)

// gateOf returns a gate in front of limits, of a lane that learns nothing.
func gateOf(t testing.TB, maxPause time.Duration, limits ...throttle.Limit) *gate {
	t.Helper()
	limiter, err := throttle.Local{}.Limiter("test", limits...)
	if err != nil {
		t.Fatal(err)
	}
	return newGate(limiter, nil, maxPause)
}

// dawn is when the histories begin.
const dawn throttle.Instant = 1_767_225_600_000_000_000

// After it was closed a gate lets one call go at a time, each known by its ID,
// until a good answer.
func TestGateCountsAProbeOnce(t *testing.T) {
	g := gateOf(t, time.Minute)
	g.closeTo(dawn + 1)
	now := dawn + 10
	one, two := throttle.Request{N: 1, ID: 1}, throttle.Request{N: 1, ID: 2}
	take := func(r throttle.Request, want bool) {
		t.Helper()
		if at, err := g.Take(now, r); err != nil || (at <= now) != want {
			t.Errorf("Take of call %d = %v, %v, want it to go: %v", r.ID, at-dawn, err, want)
		}
	}
	take(one, true)
	take(two, false)
	g.landed(t.Context(), now, &Answer{ID: 3, Served: true}) // it was in flight before
	take(two, false)
	g.Refund(now, now, two) // it never went
	take(two, false)
	g.Refund(now, now, one)
	take(two, true)
	g.landed(t.Context(), now, &Answer{ID: 1, Served: true}) // it was taken back
	take(one, false)
	g.landed(t.Context(), now, &Answer{ID: 2})
	take(one, true)
	now = now.Add(unanswered)
	take(two, true) // nobody knows whether the first will be answered
	g.landed(t.Context(), now, &Answer{ID: 2, Served: true})
	for id := range uint64(10) {
		take(throttle.Request{N: 1, ID: 10 + id}, true)
	}
}

func TestGateIsNotWholeWhileItRestrains(t *testing.T) {
	g := gateOf(t, time.Minute)
	if !g.State(dawn).Whole {
		t.Error("a new gate is not whole")
	}
	g.closeTo(dawn + 1) // its limiter was told nothing
	if g.State(dawn + 10).Whole {
		t.Error("a gate that waits for a good answer is whole")
	}
}

func TestGateIsNeverClosedForLess(t *testing.T) {
	g := gateOf(t, time.Minute, throttle.LeakyBucket(1, time.Second))
	g.closeTo(dawn.Add(time.Hour))
	g.closeTo(dawn.Add(time.Minute))
	if left := g.closedFor(dawn); left != time.Hour {
		t.Errorf("closed for %v, want the hour that was asked first", left)
	}
	if _, err := g.Take(dawn.Add(30*time.Minute), throttle.Request{N: 1}); !errors.Is(err, ErrPaused) {
		t.Errorf("Take within the hour = %v, want %v", err, ErrPaused)
	}
}
