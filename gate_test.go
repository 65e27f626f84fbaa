package weir

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirgo/weir/throttle"
)

// gateOf returns a gate in a lane of so many requests.
func gateOf(t testing.TB, requests int64, maxPause time.Duration, limits ...throttle.Limit) *gate {
	t.Helper()
	limiter, err := throttle.Local{}.Limiter("test", limits...)
	if err != nil {
		t.Fatal(err)
	}
	in := new(atomic.Int64)
	in.Store(requests)
	return newGate(limiter, len(limits), in, maxPause)
}

// dawn is when the histories begin.
const dawn throttle.Instant = 1_767_225_600_000_000_000

func (g *gate) refuse(now, until throttle.Instant) {
	g.Reconcile(now, throttle.Fact{Departed: now - 1, Refused: true, Until: until})
}

// depart lets calls with the next IDs go until one is held, and returns how many
// went, at most 1000.
func (g *gate) depart(t *testing.T, now throttle.Instant, next *uint64) (n int) {
	t.Helper()
	for n < 1000 {
		at, err := g.Take(now, throttle.Request{N: 1, ID: *next + 1})
		if err != nil {
			t.Fatal(err)
		}
		if at > now {
			return n
		}
		*next++
		n++
	}
	return n
}

func wantNumbers(t *testing.T, what string, got []int, want ...int) {
	t.Helper()
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%s = %v, want %v", what, got, want)
			return
		}
	}
}

// After a told time twice as many go in each round of good answers, until the
// lane has room for twice its requests: then any number.
func TestGateDoublesAfterAPause(t *testing.T) {
	g := gateOf(t, 8, time.Minute)
	g.refuse(dawn, dawn+1)
	var id uint64
	var rounds []int
	for round := range throttle.Instant(6) {
		first := id + 1
		rounds = append(rounds, g.depart(t, dawn+10+round, &id))
		for ; first <= id && g.restrained.Load(); first++ {
			g.landed(first, true)
		}
	}
	wantNumbers(t, "rounds", rounds, 1, 2, 4, 8, 16, 1000)
}

// After refusals without a time one more goes in each round.
func TestGateGrowsByOneAfterACut(t *testing.T) {
	g := gateOf(t, 10, time.Minute)
	g.refuse(dawn, 0)
	g.refuse(dawn+10, 0)
	var id uint64
	var rounds []int
	for round := range throttle.Instant(4) {
		first := id + 1
		rounds = append(rounds, g.depart(t, dawn+20+round, &id))
		for ; first <= id; first++ {
			g.landed(first, true)
		}
	}
	wantNumbers(t, "rounds", rounds, 4, 5, 6, 7) // 10 * 0.7 * 0.7 = 4.9, 5.7, 6.6, 7.5
}

func TestGateCountsAFlightOnce(t *testing.T) {
	g := gateOf(t, 8, time.Minute)
	g.refuse(dawn, dawn+1)
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
	g.landed(3, true) // it was in flight before
	take(two, false)
	g.Refund(now, now, two) // it never went
	take(two, false)
	g.Refund(now, now, one)
	take(two, true)
	g.landed(1, true) // it was taken back
	take(one, false)
	g.landed(2, false)
	take(one, true)
}

func TestGateIsNotWholeWhileItRestrains(t *testing.T) {
	g := gateOf(t, 8, time.Minute)
	if !g.State(dawn).Whole {
		t.Error("a new gate is not whole")
	}
	g.closeTo(dawn + 1) // its limiter was told nothing
	if g.State(dawn + 10).Whole {
		t.Error("a gate that waits for a good answer is whole")
	}
}

func TestGateIsNeverClosedForLess(t *testing.T) {
	g := gateOf(t, 8, time.Minute, throttle.LeakyBucket(1, time.Second))
	g.closeTo(dawn.Add(time.Hour))
	g.closeTo(dawn.Add(time.Minute))
	if left := g.closedFor(dawn); left != time.Hour {
		t.Errorf("closed for %v, want the hour that was asked first", left)
	}
	if _, err := g.Take(dawn.Add(30*time.Minute), throttle.Request{N: 1}); !errors.Is(err, ErrPaused) {
		t.Errorf("Take within the hour = %v, want %v", err, ErrPaused)
	}
}

// The limits cut the rate then, and calls in flight are not held down.
func TestGateThatWasGivenLimitsIsNotFree(t *testing.T) {
	g := gateOf(t, 8, time.Minute)
	if err := g.Tune(dawn, throttle.TokenBucket(1000, time.Second, 1000)); err != nil {
		t.Fatal(err)
	}
	g.refuse(dawn+10, 0)
	if g.restrained.Load() {
		t.Error("calls in flight are held down beside a rate that was cut")
	}
	if cut := g.State(dawn + 10).Cut; cut != throttle.Cut {
		t.Errorf("share of the rate = %v, want %v", cut, throttle.Cut)
	}
}

// A deadline that has passed bounds the wait, as zero would not.
func TestPastDeadlineIsABound(t *testing.T) {
	c := call{ctx: past{t.Context()}}
	if within := c.within(); within != 1 {
		t.Errorf("within = %v, want the least bound, 1ns", within)
	}
}

// past is a context that has not noticed yet that its deadline has passed.
type past struct{ context.Context }

func (past) Deadline() (time.Time, bool) { return time.Unix(0, 0), true }
