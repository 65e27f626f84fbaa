package course_test

import (
	"testing"
	"time"

	"github.com/weirgo/weir/internal/course"
	"github.com/weirgo/weir/internal/learn"
	"github.com/weirgo/weir/throttle"
)

// A timer that fires late delays one call and no others: the learned rate is kept.
func TestLateTimersDoNotSlowALearnedRate(t *testing.T) {
	r := rideOf(t, learn.Setting{})
	r.Recall(dawn, learn.Memory{Version: 1, Rate: 200, Width: 0.03})
	n := 0
	for now := dawn; now < dawn.Add(10*time.Second); {
		granted, err := r.gate.Take(now, throttle.Request{N: 1, Since: dawn, ID: uint64(n + 1)})
		if err != nil {
			t.Fatal(err)
		}
		if granted.At > now {
			now = granted.At.Add(700 * time.Microsecond)
			continue
		}
		n++
	}
	if n < 1990 || n > 2010 {
		t.Errorf("%d calls left in ten seconds at 200/s", n)
	}
}

// A call that waits for the answer to a probe is not late: the rate counts from the answer on, and
// does not allow several at once.
func TestCallsHeldForAnAnswerAreNotLate(t *testing.T) {
	r := rideOf(t, learn.Setting{})
	r.Recall(dawn, learn.Memory{Version: 1, Rate: 100, Width: 0.5})
	now, id := dawn, uint64(0)
	leave := func() (a course.Answer, ok bool) {
		id++
		granted, err := r.gate.Take(now, throttle.Request{N: 1, Since: dawn, ID: id})
		if err != nil {
			t.Fatal(err)
		}
		return course.Answer{ID: id, Seen: r.Look(), Departed: now, Others: true, Served: true}, granted.At <= now
	}
	refused, _ := leave()
	now = now.Add(500 * time.Millisecond) // as slow as an answer may be, so the probe passes later
	refused.Served, refused.Refused = false, true
	r.Observe(t.Context(), now, &refused)
	refused.Refused = false
	r.Landed(t.Context(), now, &refused)
	var probe course.Answer
	for ok := false; !ok; now = now.Add(time.Millisecond) {
		probe, ok = leave()
	}
	for range 500 { // the calls wait for its answer
		if _, ok := leave(); ok {
			t.Fatal("a call left beside a probe")
		}
		now = now.Add(time.Millisecond)
	}
	r.Landed(t.Context(), now, &probe)
	n := 0
	for end := now.Add(30 * time.Millisecond); now < end; now = now.Add(100 * time.Microsecond) {
		if _, ok := leave(); ok {
			n++
		}
	}
	if n > 2 { // at 50/s
		t.Errorf("%d calls left within 30 ms of the answer, want two", n)
	}
}

// A caller gives up as it departs, and the learned rate gets its permit back: the next call waits no
// longer than it would have without that one.
func TestALearnedRateGetsAPermitBack(t *testing.T) {
	r := rideOf(t, learn.Setting{})
	r.Recall(dawn, learn.Memory{Version: 1, Rate: 10, Width: 0.03})
	take := func(now throttle.Instant, id uint64) throttle.Grant {
		granted, err := r.gate.Take(now, throttle.Request{N: 1, Since: now, ID: id})
		if err != nil {
			t.Fatal(err)
		}
		return granted
	}
	for id, left := uint64(1), false; !left; id++ { // the saved permits
		left = take(dawn, id).At > dawn
	}
	next := take(dawn, 100).At
	given := take(next, 101)
	if given.At > next {
		t.Fatalf("the next call departs at %v, not at %v", given.At, next)
	}
	r.gate.Refund(next, given, throttle.Request{N: 1, Since: next, ID: 101})
	if at := take(next, 102).At; at > next {
		t.Errorf("after a permit came back, the next call departs %v later", at.Sub(next))
	}
}

// A departure that is taken back, because a store grants no permit yet, leaves the plan as it was:
// nothing of what the vendor reported is spent, and the next call waits for no answer to it.
func TestADepartureTakenBackChangesNoPlan(t *testing.T) {
	for left, waits := range map[float64]bool{60: false, 10: true} {
		r, now := rideOf(t, learn.Setting{}), dawn
		call := func(id uint64) (given throttle.Grant) {
			given, err := r.gate.Take(now, throttle.Request{N: 1, Since: now, ID: id})
			if err != nil {
				t.Fatal(err)
			}
			return given
		}
		for range 2 {
			a, ok := r.depart(now)
			if !ok {
				t.Fatal("a call is held")
			}
			a.Quotas = []learn.Quota{{Limit: 100, Remaining: left, HasLimit: true, HasRemaining: true}}
			now += 1000
			r.Landed(t.Context(), now, &a)
		}
		for id := uint64(1000); waits; id++ { // the last one that departs has no answer for long
			given := call(id)
			if given.At > now {
				now = given.At
				break
			}
		}
		for id := uint64(2000); id < 2200; id++ {
			given := call(id)
			if given.At > now {
				t.Fatalf("with %v left, after %d departures that were taken back the next one is held for %v", left, id-2000, given.At.Sub(now))
			}
			r.gate.Refund(now, given, throttle.Request{N: 1, Since: now, ID: id})
			now += 1000
		}
	}
}
