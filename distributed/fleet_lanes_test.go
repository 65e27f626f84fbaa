package distributed_test

import (
	"cmp"
	"log/slog"
	"os"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/weirgo/weir/distributed"
	"github.com/weirgo/weir/internal/redistest"
	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// A crowd is the many lanes of one replica.
type crowd struct {
	t      *testing.T
	store  *distributed.Store
	lanes  []throttle.Limiter
	queues []*shaping.Queue
}

func newCrowd(t *testing.T, addr string, lanes int, limit throttle.Limit) *crowd {
	t.Helper()
	given := place{Addrs: []string{addr}}.client()
	t.Cleanup(func() { given.Close() })
	c := &crowd{t: t, store: distributed.New(given, "crowd")}
	c.store.Logger = slog.New(slog.DiscardHandler)
	c.store.Replicas = 1
	c.store.Deadline, c.store.MaxDeadline = patience, patience // no loss without a fault
	t.Cleanup(func() { c.store.Close() })
	for i := range lanes {
		l, err := c.store.Limiter("lane"+strconv.Itoa(i), limit)
		if err != nil {
			t.Fatal(err)
		}
		c.lanes, c.queues = append(c.lanes, l), append(c.queues, shaping.NewQueue(l))
	}
	return c
}

// each runs goroutines that together call once in each of the first lanes.
func (c *crowd) each(lanes, goroutines int) {
	c.t.Helper()
	var calling sync.WaitGroup
	for g := range goroutines {
		calling.Go(func() {
			for i := g; i < lanes; i += goroutines {
				if err := c.queues[i].Wait(c.t.Context()); err != nil {
					c.t.Errorf("lane %d: %v", i, err)
				}
			}
		})
	}
	calling.Wait()
}

// states returns how many lanes have lost the store, and how many calls failed.
func (c *crowd) states() (lost int, failures uint64) {
	for i, l := range c.lanes {
		s := l.State(c.queues[i].Now()).Store
		failures += s.Failures
		if s.Lost {
			lost++
		}
	}
	return lost, failures
}

// lanesOf returns how many lanes a crowd has: with WEIR_LONG the most that a replica may have, or
// the number in WEIR_LANES.
func lanesOf(short int) int {
	n, _ := strconv.Atoi(os.Getenv("WEIR_LANES"))
	if n == 0 && long {
		n = 100_000
	}
	return cmp.Or(n, short)
}

// An outage costs a replica with many lanes no more than one with a single lane. Once Redis is
// back, lanes with waiting callers recover one after another, and the rest at once.
func TestAnOutageCostsNothingPerLane(t *testing.T) {
	lanes := lanesOf(orShort(2000, 500))
	server := redistest.Start(t)
	c := newCrowd(t, server.Addr(), lanes, throttle.TokenBucket(1000, time.Second, 2))
	began := time.Now()
	c.each(lanes, 64)
	_, before := c.states()
	t.Logf("%d lanes, each called once in %v, %d calls failed, %d goroutines", lanes, time.Since(began), before, runtime.NumGoroutine())

	server.Kill()
	began = time.Now()
	c.each(lanes, 64) // each lane detects the outage
	lost, _ := c.states()
	t.Logf("all called in the outage in %v, %d have lost the store", time.Since(began), lost)
	busy, idle := processorTime(), time.Second
	if long {
		idle = 5 * time.Second
	}
	most := 0
	for end := time.Now().Add(idle); time.Now().Before(end); time.Sleep(time.Millisecond) {
		most = max(most, runtime.NumGoroutine())
	}
	busy = processorTime() - busy
	t.Logf("the outage takes %.3f processors and %d goroutines at most", busy.Seconds()/idle.Seconds(), most)

	if most > 200 {
		t.Errorf("%d goroutines in the outage, without callers", most)
	}

	// Callers wait in some lanes when Redis is back.
	waiting := min(lanes, 1000)
	var calling sync.WaitGroup
	for range 3 {
		calling.Go(func() { c.each(waiting, waiting) })
	}
	server.Restart()
	_, failures := c.states()
	took := await(t, "all lanes to be back", func() bool { lost, _ := c.states(); return lost == 0 })
	calling.Wait()
	_, after := c.states()
	t.Logf("back after %v, %d calls failed", took, after-failures)
	if after > failures+3 { // a probe, and the calls that were under way
		t.Errorf("%d calls failed after Redis was back", after-failures)
	}
	began = time.Now()
	c.each(lanes, 64)
	_, final := c.states()
	t.Logf("each called once more in %v, %d calls failed", time.Since(began), final-after)
	if final != after {
		t.Errorf("%d calls failed though Redis was there", final-after)
	}
}
