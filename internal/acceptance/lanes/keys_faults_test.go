package lanes_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/acceptance/harness"
	"github.com/weirgo/weir/internal/testserver"
	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// Faults of requests with several keys while they wait.

// A pause by hand rejects waiting calls that it outlasts.
func TestPauseByHandRejectsCallsOfSeveralLanes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.ObeyingRig(t, &testserver.Vendor{}, &weir.Transport{
			Keys: fromHeader, LimitsFor: limitsOf(map[string]throttle.Limit{"a": throttle.LeakyBucket(1, time.Minute)}),
		})
		r.Want("first", r.Do(with(r, "first", "a account")), 200)
		answer := make(chan harness.Answer, 1)
		go func() { answer <- r.Do(with(r, "second", "a account")) }()
		synctest.Wait()
		if err := r.Transport.Pause("account", 10*time.Minute); err != nil {
			t.Fatal(err)
		}
		got := <-answer
		if e, ok := errors.AsType[*weir.Error](got.Err); !ok || !errors.Is(e, weir.ErrPaused) || e.Lane != "account" || got.At != 0 {
			t.Errorf("waiting call = %v at %v, want ErrPaused of lane account at once", got.Err, got.At)
		}
	})
}

// Close also rejects calls whose lanes had other limits when they arrived.
func TestCloseRejectsCallsOfEarlierLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		limits := []throttle.Limit{throttle.LeakyBucket(1, time.Minute)}
		r := harness.ObeyingRig(t, &testserver.Vendor{}, &weir.Transport{Keys: fromHeader, LimitsFor: func(string) []throttle.Limit {
			mu.Lock()
			defer mu.Unlock()
			return limits
		}})
		r.Want("first", r.Do(with(r, "first", "a account")), 200)
		answers := make(chan harness.Answer, 2)
		go func() { answers <- r.Do(with(r, "second", "a account")) }()
		synctest.Wait()
		mu.Lock()
		limits = append(limits, throttle.LeakyBucket(1, 2*time.Minute))
		mu.Unlock()
		if err := r.Transport.Reload(); err != nil {
			t.Fatal(err)
		}
		go func() { answers <- r.Do(with(r, "third", "a account")) }()
		synctest.Wait()
		r.Transport.Close()
		for range 2 {
			if got := <-answers; !errors.Is(got.Err, shaping.ErrClosed) || got.At != 0 {
				t.Errorf("waiting call = %v at %v, want ErrClosed at once", got.Err, got.At)
			}
		}
	})
}

// The next attempt waits in all lanes again, and is charged in each.
func TestRetryIsInAllLanesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.ObeyingRig(t,
			&testserver.Vendor{Faults: []testserver.Fault{{Last: 1, Do: testserver.Answer, Status: 500}}},
			&weir.Transport{Keys: fromHeader, LimitsFor: limitsOf(map[string]throttle.Limit{
				"customer": throttle.TokenBucket(1, time.Hour, 2), "account": throttle.TokenBucket(1, time.Hour, 5),
			})})
		r.Want("call", r.Do(with(r, "call", "customer account")), 200)
		for i, want := range []float64{3, 0} { // in the order of keys
			if got := r.Transport.Snapshot()[i].Limits[0].Headroom; got < want || got > want+0.01 {
				t.Errorf("lane %q has %v permits left, want %v", r.Transport.Snapshot()[i].Key, got, want)
			}
		}
	})
}

// Shutdown lets calls in several lanes depart, and then ends.
func TestShutdownLetsCallsOfSeveralLanesGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.ObeyingRig(t, &testserver.Vendor{}, &weir.Transport{
			Keys: fromHeader, LimitsFor: limitsOf(map[string]throttle.Limit{"account": throttle.LeakyBucket(1, time.Second)}),
		})
		var wg sync.WaitGroup
		send(r, &wg, "a", "a account", 2)
		send(r, &wg, "b", "b account", 2)
		if err := r.Transport.Shutdown(t.Context()); err != nil {
			t.Errorf("Shutdown = %v", err)
		}
		if got := r.Now(); got < 3*time.Second || got > 3100*time.Millisecond {
			t.Errorf("Shutdown ended after %v, want 3s, when the last call was answered", got)
		}
		wg.Wait()
	})
}

// Requests that name the same lanes in another order share them.
func TestKeysInAnotherOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.ObeyingRig(t, &testserver.Vendor{}, &weir.Transport{
			Keys: fromHeader, LimitsFor: limitsOf(map[string]throttle.Limit{
				"a": throttle.LeakyBucket(10, time.Second), "b": throttle.LeakyBucket(10, time.Second),
			}),
		})
		var wg sync.WaitGroup
		for range 5 {
			send(r, &wg, "ab", "a b", 1)
			send(r, &wg, "ba", "b a", 1)
		}
		wg.Wait()
		harness.WantEqual(t, "arrivals", harness.Instants(r.Vendor.Arrivals()), harness.Spaced(0, 100*time.Millisecond, 10))
	})
}

// A lane with waiting calls is never removed, however many keys come.
func TestLaneOfWaitingCallsStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.ObeyingRig(t, &testserver.Vendor{}, &weir.Transport{
			Keys: fromHeader, MaxLanes: 4, LimitsFor: limitsOf(map[string]throttle.Limit{"slow": throttle.LeakyBucket(1, time.Hour)}),
		})
		var wg sync.WaitGroup
		send(r, &wg, "slow", "slow account", 2)
		for _, customer := range strings.Split("bcdefghijk", "") {
			r.Want("GET", r.Do(with(r, customer, customer+" account")), 200)
			time.Sleep(time.Minute)
		}
		wg.Wait()
		if got := r.Now(); got != time.Hour {
			t.Errorf("the second call ended at %v, want 1h", got)
		}
	})
}
