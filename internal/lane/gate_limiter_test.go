package lane

import (
	"math"
	"testing"
	"time"

	"github.com/weirgo/weir/distributed"
	"github.com/weirgo/weir/internal/redispipe"
	"github.com/weirgo/weir/throttle"
	"github.com/weirgo/weir/throttle/limitertest"
)

// openGates makes gates in front of the limiters of a store, of lanes that learn
// nothing and whose callers wait through every pause: each decides as its limiter.
type openGates struct{ throttle.Store }

func (g openGates) Limiter(key string, limits ...throttle.Limit) (throttle.Limiter, error) {
	inner, err := g.Store.Limiter(key, limits...)
	if err != nil {
		return nil, err
	}
	return newGate(inner, nil, math.MaxInt64-newsLag), nil
}

func TestGateDecides(t *testing.T) {
	gates := openGates{throttle.Local{Wall: func(now throttle.Instant) throttle.Instant { return now }}}
	gateOf := func(limits ...throttle.Limit) throttle.Limiter {
		g, err := gates.Limiter("", limits...)
		if err != nil {
			panic(err)
		}
		return g
	}
	limitertest.Suite{Make: gateOf, Histories: 300, Tick: time.Nanosecond}.Decisions(t)
}

func TestWaitingOverAGate(t *testing.T) {
	limitertest.Waiting{Store: func(*testing.T) throttle.Store { return openGates{throttle.Local{}} }}.Run(t)
}

func TestWaitingOverAGateOfRedis(t *testing.T) {
	limitertest.Waiting{
		Store: func(t *testing.T) throttle.Store {
			store := distributed.New(redispipe.Start(t, 0).Client(t), "waiting")
			t.Cleanup(func() { store.Close() })
			return openGates{store}
		},
		Tick:   time.Microsecond,
		Shared: true,
	}.Run(t)
}
