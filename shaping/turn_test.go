package shaping_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// A turn arrives once, however often it departs.
func TestTurnHasWhenItArrivedAndDeparted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, throttle.LeakyBucket(1, time.Second))
		turn := shaping.Turn{N: 1}
		if turn.Arrived() != 0 || turn.Departed() != 0 {
			t.Errorf("a new turn arrived at %d and departed at %d, want zero", turn.Arrived(), turn.Departed())
		}
		start := q.Now()
		for i := range 3 {
			if err := q.WaitTurn(t.Context(), &turn); err != nil {
				t.Fatal(err)
			}
			if after := turn.Departed().Sub(start); turn.Arrived() != start || after != time.Duration(i)*time.Second {
				t.Errorf("visit %d: arrived %v and departed %v after the start", i, turn.Arrived().Sub(start), after)
			}
		}
	})
}
