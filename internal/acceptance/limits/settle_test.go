package limits_test

import (
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/acceptance/harness"
	"github.com/weirgo/weir/internal/testserver"
	"github.com/weirgo/weir/throttle"
)

// tokenRig has a limit of 100 tokens a second, and each call is estimated at a hundred.
func tokenRig(t *testing.T) *harness.Rig {
	tokens := throttle.TokenBucket(100, time.Second, 100).Of("tokens")
	return harness.PipeRig(t, &testserver.Vendor{}, &weir.Transport{
		Limits: []throttle.Limit{throttle.TokenBucket(1000, time.Second, 1000), tokens},
		Cost: func(_ *http.Request, l throttle.Limit) int {
			if l.Unit == "tokens" {
				return 100
			}
			return 1
		},
	})
}

func TestSettleCorrectsTheEstimate(t *testing.T) {
	for name, tt := range map[string]struct {
		cost int
		next time.Duration
	}{
		"as estimated": {100, time.Second},
		"underspend":   {20, 200 * time.Millisecond},
		"nothing":      {0, 0},
		"overspend":    {250, 2500 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := tokenRig(t)
				if err := weir.Settle(r.Call(), "tokens", tt.cost); err != nil {
					t.Errorf("Settle = %v", err)
				}
				r.Call()
				harness.WantEqual(t, "arrivals", harness.Instants(r.Vendor.Arrivals()), []time.Duration{0, tt.next})
			})
		})
	}
}

func TestSettleRefusesWhatItCannotSettle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := tokenRig(t)
		resp := r.Call()
		for name, err := range map[string]error{
			"negative cost":       weir.Settle(resp, "tokens", -1),
			"unknown unit":        weir.Settle(resp, "points", 1),
			"nil response":        weir.Settle(nil, "tokens", 1),
			"response of nobody":  weir.Settle(new(http.Response), "tokens", 1),
			"response of another": weir.Settle(&http.Response{Request: r.Request(t.Context(), "a")}, "tokens", 1),
		} {
			if err == nil {
				t.Errorf("Settle with %s = nil, want an error", name)
			}
		}
		if err := weir.Settle(resp, "tokens", 10); err != nil {
			t.Errorf("Settle = %v", err)
		}
		if err := weir.Settle(resp, "tokens", 10); err == nil {
			t.Error("second Settle = nil, want an error")
		}
	})
}

func TestSettleIsDoneOnceByMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		resp := tokenRig(t).Call()
		var wg sync.WaitGroup
		done := make(chan bool, 10)
		for range cap(done) {
			wg.Go(func() { done <- weir.Settle(resp, "tokens", 10) == nil })
		}
		wg.Wait()
		close(done)
		n := 0
		for ok := range done {
			if ok {
				n++
			}
		}
		if n != 1 {
			t.Errorf("settled %d times, want once", n)
		}
	})
}

// No series of settlements allows more than the limit.
func TestSettleKeepsTheBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := tokenRig(t)
		start, spent := time.Now(), 0
		for i := range 50 {
			cost := i * 37 % 200
			if err := weir.Settle(r.Call(), "tokens", cost); err != nil {
				t.Fatal(err)
			}
			spent += cost
		}
		if most := 100 + 100*time.Since(start).Seconds() + 200; float64(spent) > most {
			t.Errorf("spent %d tokens in %v, want %.0f at most", spent, time.Since(start), most)
		}
	})
}

// A limiter settles the request that it let go: one that spent what is reserved did so as an urgent
// one.
func TestSettlePassesTheUrgentRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		settled := &settling{}
		r := harness.PipeRig(t, &testserver.Vendor{}, &weir.Transport{
			Limits: []throttle.Limit{throttle.TokenBucket(1, time.Hour, 2).Reserving("50%")},
			Store: harness.StoreFunc(func(key string, limits ...throttle.Limit) (l throttle.Limiter, err error) {
				settled.Limiter, err = throttle.Local{}.Limiter(key, limits...)
				return settled, err
			}),
		})
		for _, priority := range []weir.Priority{weir.PriorityNormal, weir.PriorityHigh} {
			resp, err := r.Transport.RoundTrip(r.Request(weir.WithPriority(t.Context(), priority), "a"))
			if err != nil {
				t.Fatal(err)
			}
			if err := weir.Settle(resp, "requests", 1); err != nil {
				t.Error(err)
			}
			resp.Body.Close()
			if settled.of.N != 1 || settled.of.Urgent != (priority == weir.PriorityHigh) {
				t.Errorf("priority %v: settled %+v", priority, settled.of)
			}
		}
		harness.WantEqual(t, "arrivals", harness.Instants(r.Vendor.Arrivals()), []time.Duration{0, 0})
	})
}

// settling keeps the request that was settled last.
type settling struct {
	throttle.Limiter
	of throttle.Request
}

func (s *settling) Settle(now throttle.Instant, g throttle.Grant, of, actual throttle.Request) {
	s.of = of
	s.Limiter.Settle(now, g, of, actual)
}
