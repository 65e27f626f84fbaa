package shaping_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// A stamped limiter marks its grants, and notes the marks of those that come back.
type stamped struct {
	throttle.Limiter
	stamp int64
	back  int64
}

func (s *stamped) Take(now throttle.Instant, r throttle.Request) (throttle.Grant, error) {
	g, err := s.Limiter.Take(now, r)
	g.Ref.Ordinal = s.stamp
	return g, err
}

func (s *stamped) Refund(now throttle.Instant, g throttle.Grant, r throttle.Request) {
	s.back = g.Ref.Ordinal
	s.Limiter.Refund(now, g, r)
}

// Each limiter gets its own grant back, however many there are.
func TestEachLimiterGetsItsGrantBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var junction shaping.Junction
		limiters := make([]*stamped, shaping.MaxRosters)
		rosters := make([]*shaping.Roster, len(limiters))
		for i := range limiters {
			limiters[i] = &stamped{Limiter: newLimiter(t, throttle.TokenBucket(1, time.Hour, 1)), stamp: int64(i + 1)}
			rosters[i] = junction.NewRoster(fmt.Sprint(i), shaping.NewQueue(limiters[i]))
		}
		q := junction.NewQueue(rosters...)
		for round := range 2 { // the second time all permits have come back
			turn := &shaping.Turn{N: 1}
			if err := q.WaitTurn(t.Context(), turn); err != nil {
				t.Fatal(err)
			}
			for i, l := range limiters {
				if got := q.Part(turn.Departure(), i).Grant.Ref.Ordinal; got != l.stamp {
					t.Errorf("round %d: part %d has the grant of %d", round, i, got-1)
				}
			}
			q.Return(turn)
			for i, l := range limiters {
				if l.back != l.stamp {
					t.Errorf("round %d: limiter %d got the grant of %d back", round, i, l.back-1)
				}
			}
		}
	})
}

// Needed twice, a limiter of which one permit is at hand would let the queue ask again without end.
func TestQueueNeedsEachRosterOnce(t *testing.T) {
	var junction shaping.Junction
	q := newQueue(t, throttle.TokenBucket(1, time.Second, 1))
	roster := junction.NewRoster("a", q)
	defer func() {
		if p, want := recover(), `shaping: NewQueue with roster "a" twice`; p != want {
			t.Errorf("NewQueue panicked with %v, want %s", p, want)
		}
		if err := q.Wait(t.Context()); err != nil {
			t.Errorf("Wait() = %v, want the roster as it was", err)
		}
	}()
	junction.NewQueue(roster, roster)
}
