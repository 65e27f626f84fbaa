package hostlocal_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirgo/weir/distributed/hostlocal"
	"github.com/weirgo/weir/throttle"
	"github.com/weirgo/weir/throttle/limitertest"
)

// fresh returns a factory of limiters, each of a lane of its own, and of a number of processes that
// decide in turn.
func fresh(t *testing.T, processes int) limitertest.Factory {
	dir := private(t)
	var lanes atomic.Int64
	var mu sync.Mutex
	var open []throttle.Limiter
	return func(limits ...throttle.Limit) throttle.Limiter {
		key := fmt.Sprint(lanes.Add(1))
		all := &turns{}
		for range processes {
			all.limiters = append(all.limiters, hostlocal.NewAt(dir, key, limits...))
		}
		mu.Lock()
		defer mu.Unlock()
		open = append(open, all.limiters...)
		for len(open) > 64 { // descriptors are limited
			_ = open[0].(io.Closer).Close()
			open = open[1:]
		}
		return all
	}
}

// private returns a directory that others cannot write to.
func private(t testing.TB) string { return t.TempDir() + "/weir" }

// A turns is the limiters of one lane, each of which takes one decision in turn.
type turns struct {
	limiters []throttle.Limiter
	i        int
}

func (s *turns) next() throttle.Limiter {
	s.i++
	return s.limiters[s.i%len(s.limiters)]
}

func (s *turns) Take(now throttle.Instant, r throttle.Request) (throttle.Grant, error) {
	return s.next().Take(now, r)
}

func (s *turns) Forecast(now throttle.Instant, r throttle.Request) throttle.Forecast {
	return s.next().Forecast(now, r)
}

func (s *turns) Refund(now throttle.Instant, g throttle.Grant, r throttle.Request) {
	s.next().Refund(now, g, r)
}

func (s *turns) Settle(now throttle.Instant, g throttle.Grant, r, actual throttle.Request) {
	s.next().Settle(now, g, r, actual)
}

func (s *turns) Reconcile(now throttle.Instant, f throttle.Fact) { s.next().Reconcile(now, f) }

func (s *turns) State(now throttle.Instant) throttle.State { return s.next().State(now) }

func (s *turns) Tolerance() time.Duration { return s.limiters[0].Tolerance() }

// Tune gives the limits to all processes at the same instant.
func (s *turns) Tune(now throttle.Instant, limits ...throttle.Limit) error {
	for _, l := range s.limiters {
		if err := l.Tune(now, limits...); err != nil {
			return err
		}
	}
	return nil
}

// Limiters over files pass the rules of every limiter.
func TestFilesDecideByTheRules(t *testing.T) {
	limitertest.Suite{Make: fresh(t, 1), Histories: histories(10)}.Decisions(t)
}

// Three processes that take turns over one file decide as one limiter without a file, in every
// random history. Changes of limits are left out: those of one process are in force beside the
// limits of the others.
func TestProcessesDecideAsOneLimiter(t *testing.T) {
	sets := [][]throttle.Limit{
		{throttle.TokenBucket(3, time.Second, 5)},
		{throttle.LeakyBucket(7, time.Second)},
		{throttle.FixedWindow(9, 3*time.Second), throttle.GCRA(5, time.Second, 2)},
		{throttle.SlidingLog(6, 2*time.Second)},
		{throttle.SlidingWindow(8, 5*time.Second), throttle.TokenBucket(100, time.Minute, 9).Keeping("20%").Reserving("2")},
	}
	files := fresh(t, 3)
	for seed := range uint64(histories(20) * len(sets)) {
		limits := sets[seed%uint64(len(sets))]
		alone, err := throttle.Local{Wall: func(now throttle.Instant) throttle.Instant { return now }}.Limiter("", limits...)
		if err != nil {
			t.Fatal(err)
		}
		if text := differ(alone, files(limits...), rand.New(rand.NewPCG(seed, 1))); text != "" {
			t.Fatalf("history %d of %v: %s", seed, limits, text)
		}
	}
}

// differ runs one random history on two limiters, and returns where they differ.
func differ(a, b throttle.Limiter, random *rand.Rand) string {
	type granted struct{ a, b throttle.Grant }
	last, now := granted{}, midnight
	for step := range 100 {
		now = now.Add(time.Duration(random.Int64N(4)) * time.Duration(random.Int64N(int64(400*time.Millisecond))))
		r := throttle.Request{N: 1 + random.IntN(2), Urgent: random.IntN(4) == 0}
		switch random.IntN(8) {
		case 0:
			a.Refund(now, last.a, r)
			b.Refund(now, last.b, r)
		case 1:
			actual := throttle.Request{N: random.IntN(3)}
			a.Settle(now, last.a, r, actual)
			b.Settle(now, last.b, r, actual)
		case 2:
			f := throttle.Fact{Until: now.Add(time.Duration(random.Int64N(int64(time.Second))))}
			a.Reconcile(now, f)
			b.Reconcile(now, f)
		default:
			x, errA := a.Take(now, r)
			y, errB := b.Take(now, r)
			if x.At != y.At || (errA == nil) != (errB == nil) {
				return fmt.Sprintf("step %d: Take(%v, %d) = %v, %v over files, want %v, %v", step, now, r.N, y.At, errB, x.At, errA)
			}
			if x.At <= now {
				last = granted{x, y}
			}
		}
	}
	return ""
}

func histories(n int) int {
	if testing.Short() {
		return n / 10
	}
	return n
}

// Callers in a queue over a file depart at exact instants.
func TestCallersWaitByTheRules(t *testing.T) {
	limitertest.Waiting{Store: func(t *testing.T) throttle.Store { return &hostlocal.Store{Dir: private(t)} }}.Run(t)
}
