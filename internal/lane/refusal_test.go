package lane

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/internal/course"
	"github.com/weirgo/weir/internal/learn"
	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// Calls that land are no longer in flight, whether or not their answers are looked at.
func TestLandedCallsAreNotInFlight(t *testing.T) {
	for _, test := range []struct {
		name   string
		limits []throttle.Limit
	}{
		{"no limit", nil},
		{"a limit", []throttle.Limit{throttle.TokenBucket(1000, time.Second, 1000)}},
	} {
		t.Run(test.name, func(t *testing.T) {
			lanes := newLanes()
			lanes.settings.Limits = func(string) []throttle.Limit { return test.limits }
			l, err := lanes.Enter("api.example.com")
			if err != nil {
				t.Fatal(err)
			}
			for call := range uint64(24) {
				turn := shaping.Turn{N: 1, ID: call + 1}
				if err := l.Queue.WaitTurn(t.Context(), &turn); err != nil {
					t.Fatal(err)
				}
				seen := l.Course.Look()
				if flying := l.Course.Look().Flying(); flying != 1 {
					t.Fatalf("call %d: %d in flight after it departed, want 1", call, flying)
				}
				l.Landed(t.Context(), &course.Answer{ID: turn.ID, Seen: seen, Departed: turn.Departed(), Served: call%2 == 0})
				if flying := l.Course.Look().Flying(); flying != 0 {
					t.Fatalf("call %d: %d in flight after it landed, want none", call, flying)
				}
			}
		})
	}
}

// counting is an observer that counts pauses.
type counting struct {
	deaf
	paused int
}

func (c *counting) Paused(time.Duration, time.Duration) { c.paused++ }

// All calls in flight report one pause, in whole seconds: it is counted once. One that ends
// later is another.
func TestOnePauseIsCountedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c := newLanes(), new(counting)
		defer s.Close()
		s.settings.Observe = func(string) Observer { return c }
		l := call(t, s, "a")
		refuse := func(asked time.Duration, paused bool, want int) {
			t.Helper()
			if got := l.Refused(t.Context(), &Answer{ID: 9}, asked); got != paused || c.paused != want {
				t.Errorf("Refused for %v = %v, %d pauses, want %v, %d", asked, got, c.paused, paused, want)
			}
		}
		refuse(0, false, 0)
		refuse(2*time.Second, true, 1)
		time.Sleep(time.Second)
		refuse(2*time.Second, true, 1) // a second later: the same
		refuse(2*time.Second+1, true, 2)
		time.Sleep(time.Minute)
		refuse(time.Second, true, 3)
		refuse(2*time.Minute, false, 4) // longer than callers wait through
		turn := shaping.Turn{N: 1, ID: 10}
		if err := l.Queue.WaitTurn(t.Context(), &turn); !errors.Is(err, ErrPaused) {
			t.Errorf("Wait = %v, want %v", err, ErrPaused)
		}
		if l.Line.CouldTake(t.Context(), &turn, 2*time.Minute-1) || !l.Line.CouldTake(t.Context(), &turn, 2*time.Minute) {
			t.Error("the lane does not open after two minutes")
		}
	})
}

// A refusal that closes the lane is in doubt until another route of the key is refused for
// as long, while the first one still is.
func TestRefusalOfARouteIsInDoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newLanes()
		defer s.Close()
		l := call(t, s, "a")
		want := func(key, route string, doubtful bool) {
			t.Helper()
			if got := l.Doubtful(key, route, time.Minute); got != doubtful {
				t.Errorf("Doubtful(%s, %s) = %v, want %v", key, route, got, doubtful)
			}
		}
		want("a", "one", true)
		want("a", "one", true)
		want("a", "two", false)
		want("other", "two", true)
		want("a", "one", true)
		time.Sleep(time.Minute)
		want("a", "two", true)
	})
}

// A request is refused for its own sake if a call that departed since was served.
func TestRefusedAloneIfOthersAreServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newLanes()
		defer s.Close()
		l := call(t, s, "a")
		l.Refused(t.Context(), &Answer{ID: 9}, 0)
		at := l.Now()
		l.Landed(t.Context(), &Answer{ID: 8, Departed: at, Served: true})
		if l.Alone(at) {
			t.Error("a call that departed before the refusal makes it one of the request alone")
		}
		l.Landed(t.Context(), &Answer{ID: 8, Departed: at + 1})
		if l.Alone(at) {
			t.Error("a call that failed makes it one of the request alone")
		}
		l.Landed(t.Context(), &Answer{ID: 8, Departed: at + 1, Served: true})
		if !l.Alone(at) {
			t.Error("a call that was served later does not make it one of the request alone")
		}
	})
}

// A quota that is spent, and whose reset is exact, pauses the lane as a refusal would, but
// not a lane that keys share.
func TestSpentQuotaPausesTheLane(t *testing.T) {
	for _, shared := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s, c := newLanes(), new(counting)
			defer s.Close()
			s.settings.WaitResets = true
			s.settings.Observe = func(string) Observer { return c }
			l := call(t, s, "a")
			l.Shared = shared
			l.Landed(t.Context(), &Answer{ID: 1, Served: true, Departed: l.Now(), Quotas: []learn.Quota{
				{Limit: 10, Remaining: 0, Reset: 40 * time.Second, HasLimit: true, HasRemaining: true, HasReset: true},
			}})
			want := 1
			if shared {
				want = 0
			}
			if c.paused != want || (l.Queue.State().Paused > 0) == shared {
				t.Errorf("shared %v: %d pauses, paused for %v, want %d", shared, c.paused, l.Queue.State().Paused, want)
			}
		})
	}
}
