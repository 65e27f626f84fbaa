package shaping_test

import (
	"testing"
	"time"

	"github.com/weirgo/weir/distributed"
	"github.com/weirgo/weir/internal/redispipe"
	"github.com/weirgo/weir/throttle"
	"github.com/weirgo/weir/throttle/limitertest"
)

func TestWaitingOverLocal(t *testing.T) {
	limitertest.Waiting{Store: func(*testing.T) throttle.Store { return throttle.Local{} }}.Run(t)
}

func TestWaitingOverRedis(t *testing.T) {
	limitertest.Waiting{
		Store: func(t *testing.T) throttle.Store {
			return distributed.New(redispipe.Start(t, 0).Client(t), "waiting")
		},
		Tick:   time.Microsecond,
		Shared: true,
	}.Run(t)
}
