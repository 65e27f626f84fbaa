package shaping

import (
	"context"
	"testing"
	"time"
	"unsafe"

	"github.com/weirgo/weir/throttle"
)

// A deadline from a file or a message has no monotonic reading. It is measured by the wall clock
// now, whatever it showed when the queue was made.
func TestDeadlineHoldsAcrossAStepOfTheWallClock(t *testing.T) {
	q := lateQueue(t, 0, throttle.LeakyBucket(1, time.Second))
	const step = time.Hour
	// As if the wall clock had been set forward since: the queue was made an hour earlier by the
	// wall clock, and just now by the monotonic clock.
	monotonic := (*struct {
		wall uint64
		ext  int64
	})(unsafe.Pointer(&q.started))
	q.started = q.started.Add(-step)
	monotonic.ext += int64(step)
	if since := time.Since(q.started); since > time.Minute {
		t.Fatalf("the queue was made %v ago by the monotonic clock, want now", since)
	}
	ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(10*time.Second).Round(0))
	defer cancel()
	if left := q.deadline(ctx, 0, 0).Sub(q.Now()); left > 10*time.Second || left < 5*time.Second {
		t.Errorf("a deadline in 10s is %v away", left)
	}
}
