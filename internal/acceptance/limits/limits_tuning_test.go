package limits_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/acceptance/harness"
	"github.com/weirgo/weir/internal/testserver"
	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// Changes of limits must not grant, lose or mix up permits.

// Frequent changes of limits grant nothing.
func TestSetLimitsGrantsNothingForTheChange(t *testing.T) {
	second := func(permits, burst int) throttle.Limit { return throttle.TokenBucket(permits, time.Second, burst) }
	for name, limits := range map[string][2]throttle.Limit{
		"rates":      {second(1, 1), second(2, 1)},
		"bursts":     {second(1, 1), second(1, 5)},
		"algorithms": {throttle.FixedWindow(2, 2*time.Second), throttle.SlidingLog(2, 2*time.Second)},
		"windows":    {throttle.FixedWindow(2, 2*time.Second), throttle.FixedWindow(4, 4*time.Second)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := harness.PipeRig(t, &testserver.Vendor{}, &weir.Transport{Limits: limits[:1]})
				callers := r.Callers(t.Context(), 20)
				for i := range 50 {
					time.Sleep(10 * time.Millisecond)
					if err := r.Transport.SetLimits(limits[(i+1)%2]); err != nil {
						t.Error(err)
					}
				}
				first := limits[0]
				most := max(first.Burst, 1)
				if first.Burst == 0 {
					most = first.Permits
				}
				// Half a second at no more than two a second is worth one.
				if got := len(r.Vendor.Arrivals()); got > most+1 {
					t.Errorf("departures in 0.5s of changes = %d, want %d at most", got, most+1)
				}
				callers.Wait()
			})
		})
	}
}

// No request was priced in limits that do not validate, so others may count other units.
func TestSetLimitsReplacesLimitsThatDoNotValidate(t *testing.T) {
	transport := &weir.Transport{
		Limits: []throttle.Limit{{Permits: -1, Per: time.Second, Unit: "points"}}, Base: harness.Stub{},
		Cost: func(*http.Request, throttle.Limit) int { return 1 },
	}
	defer transport.Close()
	if _, err := transport.RoundTrip(harness.GetOf("vendor.test")); err == nil {
		t.Error("RoundTrip with -1/s = nil, want an error")
	}
	if err := transport.SetLimits(throttle.TokenBucket(1, time.Second, 1)); err != nil {
		t.Errorf("SetLimits = %v", err)
	}
	resp, err := transport.RoundTrip(harness.GetOf("vendor.test"))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
}

// The slice is the caller's.
func TestSetLimitsKeepsNoSliceOfTheCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t, &testserver.Vendor{}, new(weir.Transport))
		limits := harness.Every(time.Second)
		if err := r.Transport.SetLimits(limits...); err != nil {
			t.Fatal(err)
		}
		limits[0].Per = time.Hour
		r.Callers(t.Context(), 3).Wait()
		harness.WantEqual(t, "arrivals", harness.Instants(r.Vendor.Arrivals()), harness.Spaced(0, time.Second, 3))
	})
}

func TestErrorOfSetLimitsNamesThePart(t *testing.T) {
	transport := &weir.Transport{Base: harness.Stub{}}
	defer transport.Close()
	for want, limits := range map[string][]throttle.Limit{
		"permits -3 are not positive":  {throttle.TokenBucket(1, time.Second, 1), {Permits: -3, Per: time.Second}},
		"per 0s is not positive":       {{Permits: 1}},
		"burst -1 is negative":         {throttle.TokenBucket(1, time.Second, -1)},
		`two limits are named "twice"`: {{Permits: 1, Per: 1, Name: "twice"}, {Permits: 2, Per: 2, Name: "twice"}},
	} {
		if err := transport.SetLimits(limits...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("SetLimits(%v) = %v, want %q", limits, err, want)
		}
	}
}

// A lane whose new limits are invalid keeps its own; the others change.
func TestReloadChangesTheOthersWhereOneIsBad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reloaded atomic.Bool
		r := harness.PipeRig(t, &testserver.Vendor{}, &weir.Transport{LimitsFor: func(key string) []throttle.Limit {
			switch {
			case !reloaded.Load():
				return harness.Every(time.Second)
			case key == "bad.test":
				return []throttle.Limit{{Permits: 1}}
			default:
				return harness.Every(100 * time.Millisecond)
			}
		}})
		r.To("bad.test")
		r.To("good.test")
		reloaded.Store(true)
		err := r.Transport.Reload()
		if err == nil || !strings.Contains(err.Error(), `"bad.test"`) || strings.Contains(err.Error(), "good") {
			t.Errorf("Reload = %v, want an error that names bad.test", err)
		}
		if got := r.To("good.test"); got.At != 100*time.Millisecond {
			t.Errorf("GET of good.test answered at %v, want 100ms", got.At)
		}
		if got := r.To("bad.test"); got.At != time.Second {
			t.Errorf("GET of bad.test answered at %v, want 1s", got.At)
		}
	})
}

// An error does not list a million lanes.
func TestErrorOfReloadIsShort(t *testing.T) {
	const lanes = 100
	transport := &weir.Transport{Base: harness.Stub{}, Store: harness.StoreFunc(func(string, ...throttle.Limit) (throttle.Limiter, error) { return harness.Free(), nil })}
	defer transport.Close()
	for i := range lanes {
		if _, err := transport.RoundTrip(harness.GetOf(fmt.Sprintf("h%d.test", i))); err != nil {
			t.Fatal(err)
		}
	}
	err := transport.SetLimits(harness.Every(time.Second)...)
	if !errors.Is(err, errors.ErrUnsupported) || len(err.Error()) > 2000 || !strings.Contains(err.Error(), "90 more lanes") {
		t.Errorf("SetLimits = %v, want errors.ErrUnsupported of ten lanes and of 90 more lanes", err)
	}
}

// A lane made while limits change gets the new ones, although LimitsFor had answered with the old.
func TestLaneMadeWhileTuningHasTheNewLimits(t *testing.T) {
	for name, key := range map[string]string{"of a key": "a.test", "shared": ""} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var per atomic.Int64
				per.Store(int64(time.Hour))
				answered, reloaded := make(chan bool), make(chan bool)
				var once sync.Once
				r := harness.PipeRig(t, &testserver.Vendor{Service: 10 * time.Second}, &weir.Transport{MaxLanes: 1, LimitsFor: func(k string) []throttle.Limit {
					limits := harness.Every(time.Duration(per.Load()))
					if k == key {
						once.Do(func() {
							close(answered)
							<-reloaded
						})
					}
					return limits
				}})
				if key == "" {
					go r.To("fills.test")
					synctest.Wait()
				}
				go r.To("a.test")
				<-answered
				per.Store(int64(time.Second))
				if err := r.Transport.Reload(); err != nil {
					t.Error(err)
				}
				close(reloaded)
				synctest.Wait()
				if got := r.To("a.test"); got.At != 11*time.Second {
					t.Errorf("second GET answered at %v, want 11s: %+v", got.At, got.Err)
				}
				time.Sleep(time.Minute)
			})
		})
	}
}

// If changes overlap, the last to begin applies to every lane.
func TestCrossingReloadsLeaveTheLatestLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var per atomic.Int64
		per.Store(int64(time.Second))
		var slow atomic.Bool
		r := harness.PipeRig(t, &testserver.Vendor{}, &weir.Transport{LimitsFor: func(string) []throttle.Limit {
			limits := harness.Every(time.Duration(per.Load()))
			if slow.CompareAndSwap(true, false) {
				time.Sleep(time.Minute)
			}
			return limits
		}})
		r.Spend()
		per.Store(int64(time.Hour))
		slow.Store(true)
		var wg sync.WaitGroup
		wg.Go(func() { r.Transport.Reload() }) // has read an hour, and is slow
		synctest.Wait()
		per.Store(int64(2 * time.Second))
		if err := r.Transport.Reload(); err != nil {
			t.Error(err)
		}
		wg.Wait()
		if got := r.Transport.Snapshot()[0].Limits[0].Limit.Per; got != 2*time.Second {
			t.Errorf("limit after both = 1/%v, want 1/2s", got)
		}
	})
}

// Tiers that share limits are tuned separately.
func TestSetLimitsLeavesTiersAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t, &testserver.Vendor{}, &weir.Transport{Limits: harness.Every(time.Second), LimitsFor: func(key string) []throttle.Limit {
			if key == "tier.test" {
				return harness.Every(time.Second)
			}
			return nil
		}})
		r.To("tier.test")
		r.To("other.test")
		r.Transport.SetLimits(harness.Every(3 * time.Second)...)
		per := map[string]time.Duration{}
		for _, lane := range r.Transport.Snapshot() {
			per[lane.Key] = lane.Limits[0].Limit.Per
		}
		if per["tier.test"] != time.Second || per["other.test"] != 3*time.Second {
			t.Errorf("intervals = %v, want tier.test as before and other.test at 3s", per)
		}
	})
}

// Unchanged limits are not replaced: an estimate can still be given back.
func TestReloadOfSameLimitsChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := tokenRig(t)
		resp := r.Call()
		if err := r.Transport.Reload(); err != nil {
			t.Fatal(err)
		}
		if err := weir.Settle(resp, "tokens", 20); err != nil {
			t.Fatal(err)
		}
		r.Call()
		harness.WantEqual(t, "arrivals", harness.Instants(r.Vendor.Arrivals()), []time.Duration{0, 200 * time.Millisecond})
	})
}

// The same limits in another order, as from a map, change nothing for waiting calls, whose costs
// have the earlier order.
func TestSetLimitsInAnotherOrderChangesNothing(t *testing.T) {
	cost := func(_ *http.Request, l throttle.Limit) int {
		if l.Per == time.Second {
			return 100
		}
		return 1
	}
	for name, c := range map[string]struct {
		names [2]string
		cost  func(*http.Request, throttle.Limit) int
	}{"named": {[2]string{"big", "small"}, cost}, "nameless": {[2]string{}, cost}, "one named": {[2]string{"", "small"}, cost}, "no costs": {}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				big, small := throttle.LeakyBucket(100, time.Second), throttle.LeakyBucket(2000, 2*time.Second)
				big.Name, small.Name = c.names[0], c.names[1]
				r := harness.PipeRig(t, &testserver.Vendor{}, &weir.Transport{Limits: []throttle.Limit{big, small}, Cost: c.cost})
				callers := r.Callers(t.Context(), 5)
				before := fmt.Sprint(r.Transport.Snapshot()[0].Limits)
				for range 3 {
					if err := r.Transport.SetLimits(small, big); err != nil {
						t.Fatal(err)
					}
				}
				if after := fmt.Sprint(r.Transport.Snapshot()[0].Limits); after != before {
					t.Errorf("limits = %s, want %s as before", after, before)
				}
				callers.Wait()
				interval := 10 * time.Millisecond
				if c.cost != nil {
					interval = time.Second
				}
				harness.WantEqual(t, "arrivals", harness.Instants(r.Vendor.Arrivals()), harness.Spaced(0, interval, 5))
			})
		})
	}
}

// All changes of lanes at once: the race detector judges, and each call must end.
func TestLanesChangeAndEndTogether(t *testing.T) {
	for range 3 {
		transport := &weir.Transport{Base: harness.Stub{}, MaxLanes: 8, Shadow: harness.Every(time.Millisecond),
			Limits: []throttle.Limit{throttle.TokenBucket(1_000_000, time.Second, 1000)},
			Cost:   func(*http.Request, throttle.Limit) int { return 1 }}
		var calls, others sync.WaitGroup
		over := make(chan bool)
		act := func(do func(i int)) {
			others.Go(func() {
				for i := 0; ; i++ {
					select {
					case <-over:
						return
					default:
						do(i)
					}
				}
			})
		}
		act(func(i int) { transport.SetLimits(throttle.TokenBucket(1_000_000+i%3, time.Second, 1000)) })
		act(func(int) { transport.Reload() })
		act(func(int) { transport.Snapshot() })
		for worker := range 4 {
			calls.Go(func() {
				for i := range 300 {
					resp, err := transport.RoundTrip(harness.GetOf(fmt.Sprintf("h%d.test", (i*7+worker)%24)))
					if err != nil {
						if !errors.Is(err, shaping.ErrClosed) {
							t.Error(err)
						}
						continue
					}
					weir.Settle(resp, "requests", i%3)
					resp.Body.Close()
					if worker == 0 && i == 250 {
						transport.Close()
					}
				}
			})
		}
		calls.Wait()
		close(over)
		others.Wait()
		if got := len(transport.Snapshot()); got > 9 {
			t.Errorf("lanes = %d, want 8 and the shared one at most", got)
		}
	}
}

func TestSetLimitsMendsBadLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t, &testserver.Vendor{}, &weir.Transport{Limits: []throttle.Limit{{Permits: -1}}})
		if got := r.Get(t.Context(), "a"); got.Err == nil {
			t.Errorf("GET = %d, want an error", got.Status)
		}
		if err := r.Transport.SetLimits(harness.Every(time.Second)...); err != nil {
			t.Fatal(err)
		}
		r.Want("GET", r.Get(t.Context(), "a"), 200)
	})
}
