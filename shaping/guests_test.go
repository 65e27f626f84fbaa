package shaping_test

import (
	"context"
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

// A hall is a limiter with places in flight. It notes how many callers it is shown.
type hall struct {
	throttle.Limiter
	silent
	full  atomic.Bool
	dated atomic.Bool // no permit is due for an hour
	shown atomic.Int64
}

func (h *hall) Held(throttle.Instant, throttle.Request) throttle.Instant {
	if h.full.Load() {
		return throttle.Never
	}
	return 0
}

func (h *hall) Forecast(now throttle.Instant, r throttle.Request) throttle.Forecast {
	f := h.Limiter.Forecast(now, r)
	switch {
	case h.dated.Load():
		f.At, f.Reason = now.Add(time.Hour), throttle.ReasonRate
	case h.full.Load():
		f.Reason = throttle.ReasonConcurrency
	}
	return f
}

func (h *hall) Take(now throttle.Instant, r throttle.Request) (throttle.Grant, error) {
	if h.full.Load() {
		return throttle.Grant{At: throttle.Never}, nil
	}
	return h.Limiter.Take(now, r)
}

func (h *hall) Fetch(_ throttle.Instant, n int, _ iter.Seq[throttle.Request]) {
	h.shown.Store(int64(n))
}

// A caller of two full lanes waits for the first of them by name, in whatever order they stand, and keeps a
// place there while it waits for the other one. Processes that keep places in two orders block each other.
func TestPlacesAreTakenInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, halls, rosters := new(shaping.Junction), [2]*hall{}, [2]*shaping.Roster{}
		for i, name := range []string{"b", "a"} {
			halls[i] = &hall{Limiter: newLimiter(t, throttle.TokenBucket(100, time.Second, 100))}
			halls[i].full.Store(true)
			rosters[i] = n.NewRoster(name, shaping.NewQueue(halls[i]))
		}
		queue := n.NewQueue(rosters[1])
		defer queue.Close()
		for _, order := range [][2]int{{0, 1}, {1, 0}} {
			q := n.NewQueue(rosters[order[0]], rosters[order[1]])
			shows := func(when string, b, a int64) {
				t.Helper()
				synctest.Wait()
				if halls[0].shown.Load() != b || halls[1].shown.Load() != a {
					t.Errorf("%v, %s: b is shown %d callers and a %d, want %d and %d", order, when, halls[0].shown.Load(), halls[1].shown.Load(), b, a)
				}
			}
			ctx, cancel := context.WithCancel(t.Context())
			go func() { _ = q.Wait(ctx) }()
			shows("both are full", 0, 1)
			halls[1].full.Store(false)
			halls[1].wake()
			shows("b is full", 1, 1)
			halls[0].dated.Store(true)
			halls[0].wake()
			shows("b is full, and has no permit either", 1, 1)
			halls[0].dated.Store(false)
			halls[1].full.Store(true) // its place went to another process
			alone, leave := context.WithCancel(t.Context())
			go func() { _ = queue.Wait(alone) }()
			shows("another caller waits for a", 1, 2)
			leave()
			shows("it has left", 1, 1)
			halls[0].wake()
			shows("both are full again", 0, 1)
			halls[0].full.Store(false)
			halls[0].wake()
			shows("a is full", 0, 1)
			cancel()
			shows("the caller has left", 0, 0)
			halls[0].full.Store(true)
			_ = q.Close()
		}
	})
}

// A sharedHall is a hall that two processes share.
type sharedHall struct{ hall }

func (h *sharedHall) State(now throttle.Instant) throttle.State {
	all := h.Limiter.State(now)
	all.Store = &throttle.StoreState{Replicas: 2}
	return all
}

// Two callers wait for a place in flight. The second one keeps its turn elsewhere, where the first one is behind
// it. The first one departs once a place is free, whether the other one stays or leaves.
func TestTheFirstBehindAKeptTurnDeparts(t *testing.T) {
	for offset := 80; offset < 190; offset += 14 { // milliseconds, in which the turn is kept
		for _, leaves := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				a := &sharedHall{hall{Limiter: newLimiter(t, throttle.TokenBucket(1000, time.Second, 1000))}}
				b := &sharedHall{hall{Limiter: newLimiter(t, throttle.TokenBucket(5, time.Second, 1))}}
				n := new(shaping.Junction)
				ra, rb := n.NewRoster("a", shaping.NewQueue(a)), n.NewRoster("b", shaping.NewQueue(b))
				crowd, low, high := n.NewQueue(rb), n.NewQueue(ra, rb), n.NewQueue(ra, rb)
				for _, q := range []*shaping.Queue{crowd, low, high} {
					q.LowPriorityShare = 0.4
					defer q.Close()
				}
				a.full.Store(true)
				a.wake()
				b.wake()
				var calling sync.WaitGroup
				call := func(ctx context.Context, q *shaping.Queue, p shaping.Priority) {
					calling.Go(func() { _ = q.WaitTurn(ctx, &shaping.Turn{N: 1, Priority: p}) })
				}
				for range 30 {
					call(t.Context(), crowd, shaping.PriorityHigh)
				}
				synctest.Wait()
				ctx, leave := context.WithCancel(t.Context())
				defer leave()
				call(ctx, low, shaping.PriorityLow)
				for range 6 {
					time.Sleep(270 * time.Millisecond)
					a.wake()
				}
				time.Sleep(time.Duration(offset) * time.Millisecond)
				call(t.Context(), high, shaping.PriorityHigh)
				time.Sleep(5 * time.Millisecond)
				if leaves {
					leave()
				}
				time.Sleep(5 * time.Millisecond)
				a.full.Store(false)
				a.wake()
				departed := make(chan struct{})
				go func() { calling.Wait(); close(departed) }()
				select {
				case <-departed:
				case <-time.After(20 * time.Second):
					t.Errorf("a caller waits 20 s after a place was free; the other one left: %v", leaves)
					a.wake()
					<-departed
				}
			})
		}
	}
}
