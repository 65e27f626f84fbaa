package shaping_test

import (
	"testing"
	"time"

	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// A described counts how often its state is read.
type described struct {
	throttle.Limiter
	silent
	reads int
}

func (d *described) State(now throttle.Instant) throttle.State {
	d.reads++
	return d.Limiter.State(now)
}

// Who wakes a limiter that has no store, as the lane of one process, does not read its state
// again to count processes.
func TestProcessesAreCountedOnlyInAStore(t *testing.T) {
	junction, limiter := new(shaping.Junction), &described{Limiter: newLimiter(t, throttle.TokenBucket(10, time.Second, 1))}
	q := junction.NewQueue(junction.NewRoster("account", shaping.NewQueue(limiter)))
	defer q.Close()
	limiter.wake()
	before := limiter.reads
	for range 10 {
		limiter.wake()
	}
	if limiter.reads > before {
		t.Errorf("the state was read %d times", limiter.reads-before)
	}
}
