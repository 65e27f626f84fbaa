package lanes_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
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

// Requests with several keys.

// fromHeader returns the keys in a request's field Keys.
func fromHeader(req *http.Request) []string { return strings.Split(req.Header.Get("Keys"), " ") }

// limitsOf returns a function for Transport.LimitsFor.
func limitsOf(limits map[string]throttle.Limit) func(string) []throttle.Limit {
	return func(key string) []throttle.Limit {
		if l, ok := limits[key]; ok {
			return []throttle.Limit{l}
		}
		return nil
	}
}

// with returns a GET with keys.
func with(r *harness.Rig, id, keys string) *http.Request {
	req := r.Request(r.Context(), id)
	req.Header.Set("Keys", keys)
	return req
}

// send sends requests of one kind, each from a goroutine of its own, in a bubble.
func send(r *harness.Rig, wg *sync.WaitGroup, id, keys string, n int) {
	for i := range n {
		wg.Go(func() { r.Want(id, r.Do(with(r, fmt.Sprint(id, i), keys)), 200) })
		synctest.Wait()
	}
}

// A vendor counts searches in one limit and every call in another: a waiting search delays no other
// call.
func TestSearchDelaysNoOtherCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.ObeyingRig(t, &testserver.Vendor{}, &weir.Transport{
			Keys: fromHeader,
			LimitsFor: limitsOf(map[string]throttle.Limit{
				"search": throttle.LeakyBucket(30, time.Minute),
				"core":   throttle.TokenBucket(5000, time.Hour, 8),
			}),
		})
		var wg sync.WaitGroup
		send(r, &wg, "search", "search core", 3)
		send(r, &wg, "core", "core", 7)
		wg.Wait()
		var want []time.Duration
		want = append(want, slices.Repeat([]time.Duration{0}, 8)...) // a search and seven others
		want = append(want, 2*time.Second, 4*time.Second)
		harness.WantEqual(t, "arrivals", harness.Instants(r.Vendor.Arrivals()), want)
	})
}

func TestSearchDelaysNoOtherCallOverSockets(t *testing.T) {
	r := harness.SocketRig(t, &testserver.Vendor{}, &weir.Transport{
		Keys: fromHeader,
		LimitsFor: limitsOf(map[string]throttle.Limit{
			"search": throttle.LeakyBucket(1, time.Second),
			"core":   throttle.TokenBucket(500, time.Second, 100),
		}),
	})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() { r.Want("search", r.Do(with(r, "search", "search core")), 200) })
		for range 20 {
			wg.Go(func() { r.Want("core", r.Do(with(r, "core", "core")), 200) })
		}
	}
	wg.Wait()
	arrivals := r.Vendor.Arrivals()
	core := arrivals.Filter(func(a testserver.Arrival) bool { return a.ID == "core" })
	search := arrivals.Filter(func(a testserver.Arrival) bool { return a.ID == "search" })
	if last, third := core[len(core)-1].At, search[2].At; last > third {
		t.Errorf("the last of %d core calls arrived at %v, after the third search at %v", len(core), last, third)
	}
	if d := search[3].At - search[0].At; d < 2*time.Second { // a busy machine may delay the first one
		t.Errorf("four searches arrived within %v, want 3 s", d)
	}
}

// Customers share the account in turn, whatever their numbers of calls.
func TestCustomersShareTheAccountInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.ObeyingRig(t, &testserver.Vendor{}, &weir.Transport{
			Keys:      fromHeader,
			LimitsFor: limitsOf(map[string]throttle.Limit{"account": throttle.LeakyBucket(10, time.Second)}),
		})
		var wg sync.WaitGroup
		send(r, &wg, "greedy", "greedy account", 50)
		for i := range 10 {
			send(r, &wg, "small", fmt.Sprint("small", i, " account"), 1)
		}
		wg.Wait()
		last := 0
		for i, id := range harness.IDs(r.Vendor.Arrivals()) {
			if id == "small0" {
				last = i
			}
		}
		if last > 11 {
			t.Errorf("the last single call was number %d, want 12 at most", last+1)
		}
		if got := r.Vendor.Arrivals()[59].At; got != 5900*time.Millisecond {
			t.Errorf("60 calls at 10/s took %v, want 5.9 s", got)
		}
	})
}

// A customer waiting for its own limit spends nothing of the account.
func TestHeldCustomerSpendsNothingOfTheAccount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.ObeyingRig(t, &testserver.Vendor{}, &weir.Transport{
			Keys: fromHeader,
			LimitsFor: limitsOf(map[string]throttle.Limit{
				"slow":    throttle.LeakyBucket(1, time.Minute),
				"account": throttle.LeakyBucket(10, time.Second),
			}),
		})
		var wg sync.WaitGroup
		send(r, &wg, "slow", "slow account", 3)
		send(r, &wg, "quick", "quick account", 3)
		wg.Wait()
		want := []time.Duration{0, 100 * time.Millisecond, 200 * time.Millisecond, 300 * time.Millisecond, time.Minute, 2 * time.Minute}
		harness.WantEqual(t, "arrivals", harness.Instants(r.Vendor.Arrivals()), want)
	})
}

func TestFullLineOfACustomerIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.ObeyingRig(t, &testserver.Vendor{}, &weir.Transport{
			Keys:      fromHeader,
			Line:      weir.Line{MaxWaiting: 2},
			LimitsFor: limitsOf(map[string]throttle.Limit{"slow": throttle.LeakyBucket(1, time.Minute)}),
		})
		var wg sync.WaitGroup
		send(r, &wg, "slow", "slow account", 3)
		got := r.Do(with(r, "one too many", "slow account"))
		e, ok := errors.AsType[*weir.Error](got.Err)
		if !ok || !errors.Is(e, weir.ErrQueueFull) || e.Lane != "slow" {
			t.Errorf("a call too many = %v, want ErrQueueFull of lane slow", got.Err)
		}
		r.Want("call of another customer", r.Do(with(r, "quick", "quick account")), 200)
		for _, s := range r.Transport.Snapshot() {
			if want := map[string]int{"slow": 2}[s.Key]; s.Waiting != want {
				t.Errorf("lane %q has %d waiting, want %d", s.Key, s.Waiting, want)
			}
		}
		wg.Wait()
	})
}

// An error names the lane and the limit that would have delayed the call for too long.
func TestDeadlineNamesTheLaneThatHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := throttle.LeakyBucket(1, time.Minute)
		slow.Name = "plan"
		r := harness.ObeyingRig(t, &testserver.Vendor{}, &weir.Transport{
			Keys: fromHeader, Line: weir.Line{MaxWait: time.Second},
			LimitsFor: limitsOf(map[string]throttle.Limit{"slow": slow, "account": throttle.LeakyBucket(10, time.Second)}),
		})
		r.Want("first", r.Do(with(r, "first", "slow account")), 200)
		e, ok := errors.AsType[*weir.Error](r.Do(with(r, "second", "slow account")).Err)
		if !ok || e.Lane != "slow" || e.Limit != "plan" || e.Wait != time.Minute {
			t.Errorf("call that waits for too long = %v, want lane slow, limit plan, 1m", e)
		}
	})
}

// A cancelled call returns its permits in each lane.
func TestCancelledCallGivesAllBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.ObeyingRig(t, &testserver.Vendor{}, &weir.Transport{
			Keys: fromHeader,
			LimitsFor: limitsOf(map[string]throttle.Limit{
				"customer": throttle.LeakyBucket(1, time.Second),
				"account":  throttle.LeakyBucket(1, time.Second),
			}),
		})
		r.Want("first", r.Do(with(r, "first", "customer account")), 200)
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		for range 3 {
			go r.Do(with(r, "given up", "customer account").WithContext(ctx))
		}
		synctest.Wait()
		var wg sync.WaitGroup
		send(r, &wg, "next", "customer account", 2)
		wg.Wait()
		harness.WantEqual(t, "arrivals", harness.Instants(r.Vendor.Arrivals()), harness.Spaced(0, time.Second, 3))
	})
}

// A refusal pauses the widest lane, unless it names another.
func TestRefusalConcernsTheLaneThatItNames(t *testing.T) {
	for _, test := range []struct {
		name   string
		header http.Header
		other  time.Duration // when a call of another customer is answered
	}{
		{"of nobody", harness.Hints("60"), time.Minute},
		{"of a quota", http.Header{"Retry-After": {"60"}, "Ratelimit": {`"plan";r=0;t=60`}}, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				plan := throttle.LeakyBucket(100, time.Second)
				plan.Name = "plan"
				r := harness.ObeyingRig(t,
					&testserver.Vendor{Faults: []testserver.Fault{{Last: 1, Do: testserver.Answer, Header: test.header}}},
					&weir.Transport{Keys: fromHeader, LimitsFor: limitsOf(map[string]throttle.Limit{"a": plan})})
				var wg sync.WaitGroup
				send(r, &wg, "refused", "a account", 1)
				if got := r.Do(with(r, "other", "b account")); got.Err != nil || got.At != test.other {
					t.Errorf("call of another customer = %v at %v, want %v", got.Err, got.At, test.other)
				}
				wg.Wait()
				if last := r.Vendor.Arrivals(); last[len(last)-1].At < time.Minute {
					t.Errorf("the last call arrived at %v, want a minute after the refusal", last[len(last)-1].At)
				}
			})
		})
	}
}

// The cost of a call is corrected in each lane that has a limit of the unit.
func TestSettleCorrectsEachLane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tokens := func(burst int) throttle.Limit {
			l := throttle.TokenBucket(10, time.Second, burst)
			l.Unit = "tokens"
			return l
		}
		r := harness.ObeyingRig(t, &testserver.Vendor{}, &weir.Transport{
			Keys:      fromHeader,
			LimitsFor: limitsOf(map[string]throttle.Limit{"customer": tokens(100), "account": tokens(200)}),
			Cost:      func(*http.Request, throttle.Limit) int { return 10 },
		})
		resp, err := r.Transport.RoundTrip(with(r, "estimated", "customer account"))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if err := weir.Settle(resp, "tokens", 60); err != nil {
			t.Error(err)
		}
		for i, want := range []float64{140, 40} { // in the order of keys
			if got := r.Transport.Snapshot()[i].Limits[0].Headroom; got != want {
				t.Errorf("lane %q has %v tokens left, want %v", r.Transport.Snapshot()[i].Key, got, want)
			}
		}
		if err := weir.Settle(resp, "tokens", 60); err == nil {
			t.Error("a second Settle of the unit = nil, want an error")
		}
	})
}

// A call is in flight in each of its lanes.
func TestCallIsInFlightInEachLane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.ObeyingRig(t, &testserver.Vendor{Service: time.Second}, &weir.Transport{
			Keys: fromHeader, InFlight: weir.InFlight{Max: 2},
		})
		var wg sync.WaitGroup
		send(r, &wg, "a", "a account", 3)
		send(r, &wg, "b", "b account", 1)
		for _, s := range r.Transport.Snapshot() {
			if want := map[string]int{"a": 2, "account": 2}[s.Key]; s.InFlight != want {
				t.Errorf("lane %q has %d in flight, want %d", s.Key, s.InFlight, want)
			}
		}
		wg.Wait()
		harness.WantEqual(t, "arrivals", harness.Instants(r.Vendor.Arrivals()), []time.Duration{0, 0, time.Second, time.Second})
		for _, s := range r.Transport.Snapshot() {
			if s.InFlight != 0 || s.Requests != 0 {
				t.Errorf("lane %q has %d in flight of %d requests, want none", s.Key, s.InFlight, s.Requests)
			}
		}
	})
}

func TestKeysThatAreLeftOut(t *testing.T) {
	for _, test := range []struct {
		keys  []string
		lanes []string
		err   string
	}{
		{nil, []string{"fallback"}, ""},
		{[]string{""}, []string{"fallback"}, ""},
		{[]string{"", "a", "a", "b"}, []string{"a", "b"}, ""},
		{strings.Split("123456789", ""), nil, "request has 9 keys, want 8 at most"},
	} {
		t.Run(fmt.Sprint(test.keys), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := harness.ObeyingRig(t, &testserver.Vendor{}, &weir.Transport{
					Keys: func(*http.Request) []string { return test.keys },
					Key:  func(*http.Request) string { return "fallback" },
				})
				got := r.Get(t.Context(), "")
				if test.err == "" && got.Err != nil || test.err != "" && (got.Err == nil || !strings.Contains(got.Err.Error(), test.err)) {
					t.Errorf("call with keys %q = %v, want %q", test.keys, got.Err, test.err)
				}
				harness.WantEqual(t, "lanes", r.Keys(), test.lanes)
			})
		})
	}
}

// A limit added while calls wait delays them and later ones. Costs keep their places.
func TestLimitIsAddedWhileCallsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		limits := []throttle.Limit{throttle.LeakyBucket(1, time.Second)}
		r := harness.ObeyingRig(t, &testserver.Vendor{}, &weir.Transport{
			Keys: fromHeader,
			LimitsFor: func(key string) []throttle.Limit {
				mu.Lock()
				defer mu.Unlock()
				if key == "customer" {
					return limits
				}
				return []throttle.Limit{throttle.TokenBucket(1000, time.Second, 100)}
			},
			Cost: func(*http.Request, throttle.Limit) int { return 1 },
		})
		var wg sync.WaitGroup
		send(r, &wg, "before", "customer account", 2)
		mu.Lock()
		limits = append(limits, throttle.LeakyBucket(1, 10*time.Second))
		mu.Unlock()
		if err := r.Transport.Reload(); err != nil {
			t.Fatal(err)
		}
		send(r, &wg, "after", "customer account", 1)
		wg.Wait()
		want := []time.Duration{0, 10 * time.Second, 20 * time.Second} // permits used before count in the new limit
		if got := harness.Instants(r.Vendor.Arrivals()); !slices.Equal(got, want) {
			t.Errorf("arrivals at %v, want %v", got, want)
		}
	})
}

// Lanes leave with their groups, and come back.
func TestLanesOfGroupsGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.ObeyingRig(t, &testserver.Vendor{}, &weir.Transport{Keys: fromHeader, MaxLanes: 3})
		for range 2 {
			for _, customer := range []string{"a", "b", "c", "d"} {
				r.Want("GET", r.Do(with(r, customer, customer+" account")), 200)
				time.Sleep(time.Second)
			}
		}
		harness.WantEqual(t, "lanes", r.Keys(), []string{"account", "c", "d"})
	})
}

func TestCloseRejectsCallsOfSeveralLanes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.ObeyingRig(t, &testserver.Vendor{}, &weir.Transport{
			Keys: fromHeader, LimitsFor: limitsOf(map[string]throttle.Limit{"account": throttle.LeakyBucket(1, time.Minute)}),
		})
		r.Want("first", r.Do(with(r, "first", "a account")), 200)
		answer := make(chan harness.Answer, 1)
		go func() { answer <- r.Do(with(r, "second", "a account")) }()
		synctest.Wait()
		r.Transport.Close()
		if got := <-answer; !errors.Is(got.Err, shaping.ErrClosed) {
			t.Errorf("waiting call after Close = %v, want ErrClosed", got.Err)
		}
	})
}

// While lanes learn, a customer that waits for the account still keeps its own permits.
func TestLearningLaneKeepsThePermitsOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		vendor := &testserver.Vendor{
			Service: time.Millisecond,
			Limits:  []testserver.Limit{testserver.TokenBucket(30, time.Second, 8)},
			Styles:  []testserver.Style{testserver.XRateLimitDelta},
		}
		r := harness.PipeRig(t, vendor, &weir.Transport{
			Keys: fromHeader,
			LimitsFor: limitsOf(map[string]throttle.Limit{
				"small":   throttle.TokenBucket(10, time.Second, 3),
				"account": throttle.TokenBucket(30, time.Second, 6),
			}),
		})
		var wg sync.WaitGroup
		send(r, &wg, "busy", "busy account", 60)
		send(r, &wg, "small", "small account", 10)
		wg.Wait()
		small := r.Vendor.Arrivals().Filter(func(a testserver.Arrival) bool { return strings.HasPrefix(a.ID, "small") })
		if last := small[9].At; last > time.Second {
			t.Errorf("ten calls at 10/s ended at %v, want a second at most", last)
		}
	})
}
