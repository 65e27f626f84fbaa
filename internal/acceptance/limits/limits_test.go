package limits_test

import (
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/acceptance/harness"
	"github.com/weirgo/weir/internal/testserver"
	"github.com/weirgo/weir/throttle"
)

// Limits that change while in use.

func TestSetLimitsTimesWaitersAnew(t *testing.T) {
	ms := time.Millisecond
	for name, tt := range map[string]struct {
		from, to time.Duration
		want     []time.Duration
	}{
		// At 1.5 s half an interval is still to be earned: 50 ms of the new.
		"faster": {time.Second, 100 * ms, []time.Duration{0, 1000 * ms, 1550 * ms, 1650 * ms, 1750 * ms}},
		// The permit of 2 s becomes due half a new interval later.
		"slower": {time.Second, 4000 * ms, []time.Duration{0, 1000 * ms, 3500 * ms, 7500 * ms, 11500 * ms}},
		"same":   {time.Second, time.Second, harness.Spaced(0, time.Second, 5)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := harness.PipeRig(t, &testserver.Vendor{}, &weir.Transport{Limits: harness.Every(tt.from)})
				callers := r.Callers(t.Context(), 5)
				time.Sleep(1500 * ms)
				if err := r.Transport.SetLimits(harness.Every(tt.to)...); err != nil {
					t.Errorf("SetLimits = %v", err)
				}
				callers.Wait()
				harness.WantEqual(t, "arrivals", harness.Instants(r.Vendor.Arrivals()), tt.want)
			})
		})
	}
}

func TestSetLimitsHoldsForLanesToCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t, &testserver.Vendor{}, new(weir.Transport))
		if err := r.Transport.SetLimits(harness.Every(time.Second)...); err != nil {
			t.Fatal(err)
		}
		r.Callers(t.Context(), 3).Wait()
		harness.WantEqual(t, "arrivals", harness.Instants(r.Vendor.Arrivals()), harness.Spaced(0, time.Second, 3))
	})
}

func TestSetLimitsChangesNothingWhereOneIsBad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t, &testserver.Vendor{}, &weir.Transport{Limits: harness.Every(time.Second)})
		r.Spend()
		if err := r.Transport.SetLimits(throttle.TokenBucket(10, time.Second, 1), throttle.Limit{Permits: -1}); err == nil {
			t.Error("SetLimits of a bad limit = nil, want an error")
		}
		r.Want("GET", r.Get(t.Context(), "a"), 200)
		harness.WantEqual(t, "arrivals", harness.Instants(r.Vendor.Arrivals()), harness.Spaced(0, time.Second, 2))
	})
}

func TestSetLimitsNamesLaneThatCannotBeTuned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t, &testserver.Vendor{}, &weir.Transport{
			Limits: harness.Every(time.Second),
			Store:  harness.StoreFunc(func(string, ...throttle.Limit) (throttle.Limiter, error) { return harness.Once(), nil }),
		})
		r.Spend()
		if err := r.Transport.SetLimits(harness.Every(time.Minute)...); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("SetLimits = %v, want errors.ErrUnsupported", err)
		}
	})
}

func TestReloadAsksLimitsForAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		interval := time.Second
		r := harness.PipeRig(t, &testserver.Vendor{}, &weir.Transport{LimitsFor: func(string) []throttle.Limit { return harness.Every(interval) }})
		callers := r.Callers(t.Context(), 4)
		time.Sleep(1500 * time.Millisecond)
		interval = 100 * time.Millisecond
		if err := r.Transport.SetLimits(harness.Every(time.Hour)...); err != nil { // remain those of LimitsFor
			t.Fatal(err)
		}
		if err := r.Transport.Reload(); err != nil {
			t.Fatal(err)
		}
		callers.Wait()
		want := []time.Duration{0, time.Second, 1550 * time.Millisecond, 1650 * time.Millisecond}
		harness.WantEqual(t, "arrivals", harness.Instants(r.Vendor.Arrivals()), want)
	})
}

// Changed limits do not end a vendor's pause.
func TestSetLimitsKeepsPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t, &testserver.Vendor{Faults: []testserver.Fault{{Last: 1, Do: testserver.Answer, Header: harness.Hints("5")}}}, &weir.Transport{Limits: harness.Every(time.Second)})
		got := r.Start("a")
		time.Sleep(time.Second)
		r.Transport.SetLimits(harness.Every(time.Millisecond)...)
		r.Want("GET", <-got, 200)
		harness.WantEqual(t, "arrivals", harness.Instants(r.Vendor.Arrivals()), []time.Duration{0, 5 * time.Second})
	})
}

// Costs follow their limits, even if those change places while a request waits.
func TestSetLimitsKeepsCostsWithTheirUnits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tokens := throttle.TokenBucket(1000, time.Second, 1000).Of("tokens")
		requests := throttle.TokenBucket(1, time.Second, 1)
		r := harness.PipeRig(t, &testserver.Vendor{}, &weir.Transport{
			Limits: []throttle.Limit{tokens, requests},
			Cost: func(_ *http.Request, l throttle.Limit) int {
				if l.Unit == "tokens" {
					return 500
				}
				return 1
			},
		})
		callers := r.Callers(t.Context(), 3)
		time.Sleep(500 * time.Millisecond)
		if err := r.Transport.SetLimits(requests, tokens); err != nil {
			t.Fatal(err)
		}
		for _, got := range callers.Wait() {
			r.Want("GET", got, 200)
		}
		harness.WantEqual(t, "arrivals", harness.Instants(r.Vendor.Arrivals()), harness.Spaced(0, time.Second, 3))
	})
}
