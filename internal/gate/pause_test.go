package gate

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/internal/course"
	"github.com/weirgo/weir/internal/learn"
	"github.com/weirgo/weir/internal/store"
	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// A closed gate rejects all calls until the pause ends. Then one call departs at a time: the next
// one when the previous has landed, or after a second without an answer. After a good answer all
// depart.
func TestOneProbeGoesAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := lineOf(t, func(*Gate) {})
		before := l.want(0)
		l.CloseTo(l.Now().Add(2 * time.Minute))
		var rejected *shaping.Error
		if _, at, err := l.depart(t.Context()); !errors.Is(err, ErrPaused) || !errors.As(err, &rejected) || rejected.Wait != 2*time.Minute || at != 0 {
			t.Errorf("rejected after %v with %v, want at once, for two minutes", at, err)
		}
		time.Sleep(2*time.Minute - 1)
		if _, _, err := l.depart(t.Context()); !errors.Is(err, ErrPaused) {
			t.Errorf("a nanosecond before the end: %v, want %v", err, ErrPaused)
		}
		time.Sleep(time.Nanosecond)
		first := l.want(2 * time.Minute)
		l.land(before, true) // it proves nothing about the time after the pause
		second := l.want(2*time.Minute + time.Second)
		time.AfterFunc(300*time.Millisecond, func() { l.land(second, false) })
		third := l.want(2*time.Minute + 1300*time.Millisecond)
		time.AfterFunc(200*time.Millisecond, func() { l.land(first, true) })
		for range 5 {
			l.want(2*time.Minute + 1500*time.Millisecond)
		}
		l.land(third, true)
		if n := l.flights.Kept(); n != 0 || l.pause.shut.Load() {
			t.Errorf("%d entries, shut: %v", n, l.pause.shut.Load())
		}
	})
}

// A watched limiter lets a test look at its gate just before each Reconcile.
type watched struct {
	throttle.Limiter
	look func()
}

func (l *watched) Reconcile(now throttle.Instant, f throttle.Fact) {
	l.look()
	l.Limiter.Reconcile(now, f)
}

// A call that looks at the gate while a pause is ended by hand does not close it again.
func TestALookDoesNotProlongAPause(t *testing.T) {
	g := gateOf(t, time.Minute)
	limiter := &watched{Limiter: g.Limiter, look: func() {}}
	g.Limiter = limiter
	g.CloseTo(dawn.Add(time.Hour))
	g.Reconcile(dawn, throttle.Fact{Until: dawn.Add(time.Hour)})
	limiter.look = func() {
		if left := g.ClosedFor(dawn); left != time.Hour {
			t.Errorf("closed for %v before the pause ended, want 1h", left)
		}
	}
	g.Reconcile(dawn, throttle.Fact{Resumed: true})
	if left := g.ClosedFor(dawn); left != 0 {
		t.Errorf("closed for %v after the pause ended, want 0", left)
	}
}

// A herald is a replicator that counts calls to the store.
type herald struct{ calls int }

func (*herald) Replicate(store.Learner) {}
func (h *herald) Flush()                { h.calls++ }

// Other processes ask what was learned as soon as the limiter publishes that a pause is over. So
// the course sends that to the store before.
func TestTheEndOfAPauseIsSentBeforeItIsPublished(t *testing.T) {
	news := new(herald)
	learns := course.NewCourse(learn.Setting{}, nil)
	learns.Share(news, true, nil)
	sent := -1
	limiter := &watched{Limiter: gateOf(t, time.Minute).Limiter, look: func() { sent = news.calls }}
	NewGate(limiter, learns, nil, time.Minute).Reconcile(dawn, throttle.Fact{Resumed: true})
	if sent != 1 {
		t.Errorf("the course had called the store %d times when the limiter published the end, want once", sent)
	}
}
