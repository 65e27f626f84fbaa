package peerbench

import (
	"context"
	"testing"
	"time"

	"github.com/failsafe-go/failsafe-go/ratelimiter"
	uber "go.uber.org/ratelimit"
	"golang.org/x/time/rate"

	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// evenly returns the decision of a contender that spaces its callers evenly: x/time/rate with a
// burst of one, and the others' equivalents. uber's has its default slack, with which it makes up
// for late departures.
func evenly(who string, permits int, per time.Duration) decision {
	switch who {
	case "weir", "weir-precise":
		q := weirQueue(throttle.LeakyBucket(permits, per))
		q.MaxWaiting, q.PrecisePacing = 1<<30, who == "weir-precise"
		return q.Wait
	case "xtime":
		return rate.NewLimiter(rate.Limit(float64(permits)/per.Seconds()), 1).Wait
	case "failsafe":
		return ratelimiter.NewSmooth[any](uint(permits), per).AcquirePermit
	case "uber":
		l := uber.New(permits, uber.Per(per))
		return func(context.Context) error { l.Take(); return nil }
	}
	panic("nobody is called " + who)
}

// weirQueue returns a queue over the local store.
func weirQueue(limits ...throttle.Limit) *shaping.Queue {
	limiter, err := throttle.Local{}.Limiter("bench", limits...)
	if err != nil {
		panic(err)
	}
	return shaping.NewQueue(limiter)
}

func TestEvenlyDecides(t *testing.T) {
	for _, who := range []string{"weir", "xtime", "failsafe", "uber"} {
		decide := evenly(who, 1000, time.Second)
		for i := range 3 {
			if err := decide(t.Context()); err != nil {
				t.Errorf("%s, call %d: %v", who, i, err)
			}
		}
	}
}
