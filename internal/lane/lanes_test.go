package lane

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/weirgo/weir/internal/store"

	"github.com/weirgo/weir/backoff"
	"github.com/weirgo/weir/internal/learn"
	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// newLanes returns lanes without limits, of an owner that ignores events.
func newLanes() *Lanes {
	return New(Settings{
		MaxPause: time.Minute,
		MaxLanes: 100,
		Learn:    true,
		Store:    throttle.Local{},
		Limits:   func(string) []throttle.Limit { return nil },
		Budget:   new(backoff.Policy).NewBudget,
		Logger:   func() *slog.Logger { return slog.New(slog.DiscardHandler) },
		Observe:  func(string) Observer { return deaf{} },
		Opened:   func(string, bool) {},
	})
}

// The queue of a lane has the fields of the owner's line.
func TestQueueHasTheOwnersLine(t *testing.T) {
	s := newLanes()
	defer s.Close()
	s.settings.Line = shaping.Line{MaxWaiting: 7, MaxWait: 2 * time.Second, PrecisePacing: true}
	l, err := s.Enter("a.test")
	if err != nil {
		t.Fatal(err)
	}
	if l.Queue.Line != s.settings.Line {
		t.Errorf("the queue has the line %+v, want %+v", l.Queue.Line, s.settings.Line)
	}
}

// A request whose lane is reported by a panicking function is no longer counted.
func TestPanicOfOpenedLeavesTheLane(t *testing.T) {
	s := newLanes()
	defer s.Close()
	s.settings.Opened = func(key string, _ bool) {
		if n := s.keyed.find(key).Requests(); n != 1 {
			t.Errorf("%d requests while the lane is reported, want the one that opens it", n)
		}
		panic("opened")
	}
	func() {
		defer func() { _ = recover() }()
		_, _ = s.Enter("a.test")
		t.Error("Enter returned")
	}()
	if l := s.keyed.find("a.test"); l.Requests() != 0 || !l.listed.Load() {
		t.Errorf("%d requests, listed as idle: %v, want 0, true", l.Requests(), l.listed.Load())
	}
}

// A deaf observer ignores all events.
type deaf struct{}

func (deaf) Waits(context.Context, shaping.Wait, *throttle.StoreState) func(error) { return nil }

func (deaf) Paused(time.Duration, time.Duration) {}

func (deaf) Learned(context.Context, learn.Known) {}

func (deaf) Closed(*throttle.StoreState) {}

func (deaf) Called(store.Call) {}

func (deaf) Strayed(store.Event) {}
