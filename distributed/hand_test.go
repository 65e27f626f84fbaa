package distributed_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// behindALeaver starts a caller for five permits of 100/s when none is left. It is cancelled before
// they are due, 50 ms plus a round trip after the start. Other callers wait behind it, for one
// permit each. It returns when those depart.
func behindALeaver(t *testing.T, f *bubbleFleet, others int) []time.Duration {
	q := f.queues[0]
	if err := q.WaitTurn(t.Context(), &shaping.Turn{N: 5}); err != nil {
		t.Fatal(err)
	}
	ctx, leave := context.WithCancel(t.Context())
	f.wg.Go(func() {
		if err := q.WaitTurn(ctx, &shaping.Turn{N: 5}); err != context.Canceled {
			t.Errorf("WaitTurn() = %v, want context.Canceled", err)
		}
	})
	left := make([]time.Duration, others)
	for i := range left {
		synctest.Wait()
		f.wg.Go(func() {
			if err := q.Wait(t.Context()); err != nil {
				t.Errorf("Wait() = %v", err)
			}
			left[i] = time.Since(f.start)
		})
	}
	time.Sleep(20 * time.Millisecond)
	leave()
	f.wg.Wait()
	return left
}

const afterALeaver = 51 * time.Millisecond

// Callers behind a cancelled one depart at the instant promised to it, one for each of its permits.
func TestPermitsOfACancelledCallerServeTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newBubbleFleet(t, 1, time.Millisecond, throttle.TokenBucket(100, time.Second, 5))
		f.meet()
		left := behindALeaver(t, f, 6)
		want := []time.Duration{afterALeaver, afterALeaver, afterALeaver, afterALeaver, afterALeaver, afterALeaver + 10*time.Millisecond}
		if !slices.Equal(left, want) {
			t.Errorf("left at %v, want %v", left, want)
		}
	})
}
