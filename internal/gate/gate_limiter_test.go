package gate

import (
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/distributed"
	"github.com/weirgo/weir/internal/course"
	"github.com/weirgo/weir/internal/redispipe"
	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
	"github.com/weirgo/weir/throttle/limitertest"
)

// openGates makes gates in front of the limiters of a store, of lanes that learn nothing and whose
// callers wait through every pause: each decides as its limiter.
type openGates struct {
	throttle.Store
	asks bool // every call asks the vetoes: there is a bound, and quotas
}

func (g openGates) Limiter(key string, limits ...throttle.Limit) (throttle.Limiter, error) {
	inner, err := g.Store.Limiter(key, limits...)
	if err != nil {
		return nil, err
	}
	if !g.asks {
		return NewGate(inner, nil, nil, math.MaxInt64-pauseLag), nil
	}
	gate := NewGate(inner, nil, course.NewLedgers(nil, limits, true, false), math.MaxInt64-pauseLag)
	gate.Bind(Bound{Most: math.MaxInt})
	return gate, nil
}

func TestGateDecides(t *testing.T) {
	for _, asks := range []bool{false, true} {
		gates := openGates{throttle.Local{Wall: func(now throttle.Instant) throttle.Instant { return now }}, asks}
		gateOf := func(limits ...throttle.Limit) throttle.Limiter {
			g, err := gates.Limiter("", limits...)
			if err != nil {
				panic(err)
			}
			return g
		}
		limitertest.Suite{Make: gateOf, Histories: 300, Tick: time.Nanosecond}.Decisions(t)
	}
}

func TestWaitingOverAGate(t *testing.T) {
	for _, asks := range []bool{false, true} {
		limitertest.Waiting{Store: func(*testing.T) throttle.Store { return openGates{throttle.Local{}, asks} }}.Run(t)
	}
}

func TestWaitingOverAGateOfRedis(t *testing.T) {
	limitertest.Waiting{
		Store: func(t *testing.T) throttle.Store {
			store := distributed.New(redispipe.Start(t, 0).Client(t), "waiting")
			t.Cleanup(func() { store.Close() })
			return openGates{store, true}
		},
		Tick:   time.Microsecond,
		Shared: true,
	}.Run(t)
}

// Urgent calls of 1 leave calls of 10 their share, over a gate too, even with room in flight for
// only one of them.
func TestAGateOfRedisKeepsThePermitsOfOthers(t *testing.T) {
	for _, most := range []int{0, 1} {
		synctest.Test(t, func(t *testing.T) {
			store := distributed.New(redispipe.Start(t, time.Millisecond).Client(t), "holder")
			store.Logger = slog.New(slog.DiscardHandler)
			defer store.Close()
			limiter, err := openGates{Store: store}.Limiter("lane", throttle.TokenBucket(300, time.Second, 10))
			if err != nil {
				t.Fatal(err)
			}
			g := limiter.(*Gate)
			g.Bind(Bound{Most: most})
			q, used, calls := shaping.NewQueue(limiter), new(atomic.Int64), new(atomic.Uint64)
			call := func(turn shaping.Turn, every time.Duration) {
				for {
					turn = shaping.Turn{ID: calls.Add(1), N: turn.N, Priority: turn.Priority}
					if q.WaitTurn(t.Context(), &turn) != nil {
						return
					}
					used.Add(int64(turn.N))
					if most > 0 {
						time.Sleep(10 * time.Millisecond)
						g.Vacate()
					}
					time.Sleep(every)
				}
			}
			var wg sync.WaitGroup
			wg.Go(func() { call(shaping.Turn{N: 1, Priority: shaping.PriorityHigh}, 100*time.Millisecond) })
			for range 20 {
				wg.Go(func() { call(shaping.Turn{N: 10}, 0) })
			}
			time.Sleep(5 * time.Second)
			q.Close()
			wg.Wait()
			if n := used.Load(); n < 1470 {
				t.Errorf("most in flight %d: %d permits were used in 5s, want 1470 of 1500 at least", most, n)
			}
		})
	}
}
