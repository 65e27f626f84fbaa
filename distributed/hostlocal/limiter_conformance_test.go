package hostlocal_test

import (
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirgo/weir/distributed/hostlocal"
	"github.com/weirgo/weir/throttle"
	"github.com/weirgo/weir/throttle/limitertest"
)

// fresh returns a factory of limiters, each of a lane of its own, and of so many
// processes that decide in turn.
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
		for len(open) > 64 { // files are few
			_ = open[0].(io.Closer).Close()
			open = open[1:]
		}
		return all
	}
}

// private returns a directory that others cannot write to.
func private(t testing.TB) string { return t.TempDir() + "/weir" }

// A turns is the limiters of one lane, of which each decision takes the next.
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

// Limiters over files decide by the rules.
func TestFilesDecideByTheRules(t *testing.T) {
	limitertest.Suite{Make: fresh(t, 1), Histories: histories(10)}.Decisions(t)
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
