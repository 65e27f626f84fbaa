package course_test

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirgo/weir/internal/course"
	"github.com/weirgo/weir/internal/gate"
	"github.com/weirgo/weir/internal/learn"
	"github.com/weirgo/weir/throttle"
)

// dawn is the start of the histories.
const dawn throttle.Instant = 1_767_225_600_000_000_000

// A ride is a course behind a gate, in front of a limiter of its own.
type ride struct {
	*testing.T
	*course.Course
	gate *gate.Gate
	ids  uint64
}

// Landed lands a call.
func (r *ride) Landed(ctx context.Context, now throttle.Instant, a *course.Answer) {
	r.gate.Landed(ctx, func() throttle.Instant { return now }, a)
}

func rideOf(t *testing.T, set learn.Setting) *ride {
	t.Helper()
	limiter, err := throttle.Local{}.Limiter("")
	if err != nil {
		t.Fatal(err)
	}
	c := course.NewCourse(set, nil)
	return &ride{T: t, Course: c, gate: gate.NewGate(&counter{Limiter: limiter}, c, nil, time.Hour)}
}

// A counter counts the departures, as a store does.
type counter struct {
	throttle.Limiter
	ordinal atomic.Int64
}

func (c *counter) Take(now throttle.Instant, r throttle.Request) (throttle.Grant, error) {
	granted, err := c.Limiter.Take(now, r)
	if err == nil && granted.At <= now {
		granted.Ref.Ordinal = c.ordinal.Add(1)
	}
	return granted, err
}

// depart lets one call depart, and returns its entry; ok is false if it is held.
func (r *ride) depart(now throttle.Instant) (a course.Answer, ok bool) {
	r.Helper()
	r.ids++
	granted, err := r.gate.Take(now, throttle.Request{N: 1, ID: r.ids})
	if err != nil {
		r.Fatal(err)
	}
	return course.Answer{ID: r.ids, Seen: r.Look(), Departed: now, Others: true, Served: true}, granted.At <= now
}

// burst lets calls depart until one is held.
func (r *ride) burst(now throttle.Instant) (flying []course.Answer) {
	r.Helper()
	for len(flying) < 100 {
		a, ok := r.depart(now)
		if !ok {
			break
		}
		flying = append(flying, a)
	}
	return flying
}

func TestCallsInFlightGrowFromOne(t *testing.T) {
	r := rideOf(t, learn.Setting{})
	var rounds []int
	for round := range throttle.Instant(5) {
		now := dawn + round*10_000_000
		flying := r.burst(now)
		rounds = append(rounds, len(flying))
		for i := range flying {
			r.Landed(r.Context(), now+5_000_000, &flying[i])
		}
	}
	want := []int{1, 2, 4, 7, 9}
	for i := range want {
		if rounds[i] != want[i] {
			t.Fatalf("rounds = %v, want %v", rounds, want)
		}
	}
}

// A call that was taken back, or that never answered, is no longer counted.
func TestFlightIsCountedOnce(t *testing.T) {
	r := rideOf(t, learn.Setting{})
	a, _ := r.depart(dawn)
	if _, ok := r.depart(dawn); ok {
		t.Error("a second call goes beside the first")
	}
	r.gate.Refund(dawn, throttle.Grant{At: dawn}, throttle.Request{N: 1, ID: a.ID})
	b, ok := r.depart(dawn)
	if !ok {
		t.Error("no call goes after the first was taken back")
	}
	b.Served = false
	r.Landed(r.Context(), dawn+1, &b)
	if _, ok := r.depart(dawn + 1); !ok {
		t.Error("no call goes after one that failed")
	}
}

func TestSlowAnswersLetMoreGo(t *testing.T) {
	r := rideOf(t, learn.Setting{})
	flying := len(r.burst(dawn))
	for i := range throttle.Instant(5) {
		flying += len(r.burst(dawn + (i+1)*100_000_000))
	}
	if flying != 32 {
		t.Errorf("%d calls fly after half a second without an answer, want 32", flying)
	}
}

func TestConfiguredLaneIsNotRestrained(t *testing.T) {
	r := rideOf(t, learn.Setting{Configured: 100, Burst: 10})
	if n := len(r.burst(dawn)); n != 100 {
		t.Errorf("%d calls fly in a lane with a configured limit, want all 100", n)
	}
}

// Whatever is reported and refused, no call departs before a requested instant, and one departs
// within seconds after it.
func TestRetryTimeIsObeyed(t *testing.T) {
	for _, set := range []learn.Setting{{}, {Configured: 50, Burst: 5}, {Configured: math.Inf(1)}} {
		r := rideOf(t, set)
		flying := r.burst(dawn)
		a := flying[0]
		a.Served, a.Refused, a.Until = false, true, dawn.Add(2*time.Second)
		r.Observe(r.Context(), dawn+1, &a)
		for i := range flying {
			flying[i].Served = false
			r.Landed(r.Context(), dawn+1, &flying[i])
		}
		for at := dawn + 2; at < a.Until; at = at.Add(99 * time.Millisecond) {
			if _, ok := r.depart(at); ok {
				t.Fatalf("%+v: a call left %v before the time that was asked for", set, a.Until.Sub(at))
			}
		}
		if _, ok := r.depart(a.Until.Add(time.Second)); !ok {
			t.Errorf("%+v: nothing leaves a second after the time that was asked for", set)
		}
	}
}

func TestForgetAndResumeLetGo(t *testing.T) {
	for name, open := range map[string]func(*ride){
		"Forget": func(r *ride) { r.Forget() },
		"Resume": func(r *ride) { r.Resume(dawn + 2) },
	} {
		r := rideOf(t, learn.Setting{})
		a, _ := r.depart(dawn)
		a.Served, a.Refused, a.Until = false, true, dawn.Add(time.Hour)
		r.Observe(r.Context(), dawn+1, &a)
		a.Refused = false
		r.Landed(r.Context(), dawn+1, &a)
		open(r)
		if _, ok := r.depart(dawn + 3); !ok {
			t.Errorf("nothing leaves after %s", name)
		}
	}
}

func TestCourseIsSafeForConcurrentUse(t *testing.T) {
	r := rideOf(t, learn.Setting{})
	var wg sync.WaitGroup
	for w := range uint64(8) {
		wg.Go(func() {
			for i := range uint64(500) {
				now := dawn + throttle.Instant(i)*1_000_000
				q := throttle.Request{N: 1, ID: w<<32 + i + 1}
				granted, err := r.gate.Take(now, q)
				if err != nil || granted.At > now {
					continue
				}
				a := course.Answer{ID: q.ID, Seen: r.Look(), Departed: now, Others: i%3 == 0, Served: i%50 != 0}
				if !a.Served {
					refused := a
					refused.Refused = true
					r.Observe(r.Context(), now, &refused)
				}
				r.Landed(r.Context(), now, &a)
			}
		})
	}
	wg.Wait()
	for i := range throttle.Instant(100) {
		if _, ok := r.depart(dawn.Add(time.Minute) + i*1_000_000_000); ok {
			return
		}
	}
	t.Error("nothing leaves any more")
}

// A call without a wait or a refusal allocates nothing.
func BenchmarkCourse(b *testing.B) {
	limiter, _ := throttle.Local{}.Limiter("")
	c := course.NewCourse(learn.Setting{}, nil)
	g := gate.NewGate(limiter, c, nil, time.Hour)
	b.ReportAllocs()
	for i := range uint64(b.N) {
		now := dawn + throttle.Instant(i)*1000
		_, _ = g.Take(now, throttle.Request{N: 1, ID: i + 1})
		a := course.Answer{ID: i + 1, Seen: c.Look(), Departed: now, Served: true}
		g.Landed(b.Context(), func() throttle.Instant { return now }, &a)
	}
}

// Without its configured limits a lane searches for the vendor's, from the calls in flight on. As
// many again depart, because there was no answer for a while.
func TestUnconfiguredLaneSearchesFromTheCallsInFlight(t *testing.T) {
	r := rideOf(t, learn.Setting{Configured: 100, Burst: 10})
	for range 50 {
		r.depart(dawn)
	}
	r.Configure(dawn, nil)
	if n := len(r.burst(dawn)); n != 50 {
		t.Errorf("%d calls depart beside 50 in flight, want 50", n)
	}
}
