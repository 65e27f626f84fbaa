package shaping_test

import (
	"iter"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
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

// A shared is a limiter that two processes share. It notes for when permits are asked for.
type shared struct {
	throttle.Limiter
	silent
	latest atomic.Int64 // an Instant; the junction's goroutine fetches, too
}

func (s *shared) State(now throttle.Instant) throttle.State {
	all := s.Limiter.State(now)
	all.Store = &throttle.StoreState{Replicas: 2}
	return all
}

func (s *shared) Fetch(_ throttle.Instant, _ int, line iter.Seq[throttle.Request]) {
	for r := range line {
		s.latest.Store(max(s.latest.Load(), int64(r.Since))) // one at a time
	}
}

// A permit is asked for ahead if it is known when the caller departs: not if callers of another queue
// wait in its roster, who may take that turn.
func TestPermitsAreAskedForAheadForWhoIsAlone(t *testing.T) {
	for _, queues := range []int{1, 2} {
		synctest.Test(t, func(t *testing.T) {
			a := &shared{Limiter: newLimiter(t, throttle.LeakyBucket(1, time.Second))}
			b := &shared{Limiter: newLimiter(t, throttle.LeakyBucket(5, time.Second))}
			n := new(shaping.Junction)
			ra, rb := n.NewRoster("a", shaping.NewQueue(a)), n.NewRoster("b", shaping.NewQueue(b))
			alone := n.NewQueue(rb)
			defer alone.Close()
			for range 2 { // the second one waits, so that the rate is known
				if err := alone.Wait(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			a.wake()
			b.wake()
			time.Sleep(time.Second)
			var calling sync.WaitGroup
			for range queues {
				q := n.NewQueue(ra, rb)
				defer q.Close()
				for range 2 {
					calling.Go(func() { _ = q.Wait(t.Context()) })
					synctest.Wait()
				}
			}
			start := throttle.InstantOf(time.Now())
			b.latest.Store(0)
			a.wake()
			synctest.Wait()
			if ahead, want := b.latest.Load() > int64(start), queues == 1; ahead != want {
				t.Errorf("%d queues: a permit is asked for ahead: %v, want %v", queues, ahead, want)
			}
			calling.Wait()
		})
	}
}
