package lanes_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/acceptance/harness"
	"github.com/weirgo/weir/internal/testserver"
	"github.com/weirgo/weir/throttle"
)

// Answers to requests with several keys are reported and counted in each lane.

// A refuser refuses the first request that has an id, with a problem document.
type refuser struct {
	http.RoundTripper
	id, violated string
	mu           sync.Mutex
	refused      bool
}

func (f *refuser) RoundTrip(req *http.Request) (*http.Response, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.refused || !strings.HasPrefix(req.Header.Get(testserver.DefaultIDHeader), f.id) {
		return f.RoundTripper.RoundTrip(req)
	}
	f.refused = true
	body := `{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","violated-policies":[` + f.violated + `]}`
	return &http.Response{
		StatusCode: http.StatusTooManyRequests, Request: req, ProtoMajor: 1, ContentLength: int64(len(body)),
		Header: http.Header{"Retry-After": {"60"}, "Content-Type": {"application/problem+json"}},
		Body:   io.NopCloser(strings.NewReader(body)),
	}, nil
}

// A problem document names the refusing lanes, by their limits or their keys.
func TestViolatedPoliciesNameTheLanes(t *testing.T) {
	for _, test := range []struct {
		name, violated string
		want           map[string]time.Duration // pause of each lane
	}{
		{"limit", `"plan"`, map[string]time.Duration{"a": time.Minute}},
		{"key", `"route"`, map[string]time.Duration{"route": time.Minute}},
		{"both", `"plan","route"`, map[string]time.Duration{"a": time.Minute, "route": time.Minute}},
		{"none that is known", `"other"`, map[string]time.Duration{"account": time.Minute}},
		{"one that is known", `"other","plan"`, map[string]time.Duration{"a": time.Minute}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				plan := throttle.TokenBucket(100, time.Second, 5)
				plan.Name = "plan"
				transport := &weir.Transport{Keys: fromHeader, LimitsFor: limitsOf(map[string]throttle.Limit{"a": plan})}
				r := harness.ObeyingRig(t, &testserver.Vendor{}, transport)
				transport.Base = &refuser{RoundTripper: transport.Base, id: "refused", violated: test.violated}
				var wg sync.WaitGroup
				send(r, &wg, "refused", "a route account", 1)
				for _, s := range r.Transport.Snapshot() {
					if s.Paused != test.want[s.Key] {
						t.Errorf("lane %q is paused for %v, want %v", s.Key, s.Paused, test.want[s.Key])
					}
				}
				wg.Wait()
				harness.WantEqual(t, "arrivals", harness.Instants(r.Vendor.Arrivals()), []time.Duration{time.Minute})
			})
		})
	}
}

// Each lane counts the outcome of a turn.
func TestEachLaneCountsItsTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.ObeyingRig(t, &testserver.Vendor{Faults: []testserver.Fault{{First: 4, Last: 4, Do: testserver.Answer, Status: 500}}}, &weir.Transport{
			Keys: fromHeader, Line: weir.Line{MaxWaiting: 2},
			Limits:    []throttle.Limit{throttle.TokenBucket(1000, time.Second, 100)},
			LimitsFor: limitsOf(map[string]throttle.Limit{"slow": throttle.LeakyBucket(1, time.Minute)}),
		})
		var wg sync.WaitGroup
		send(r, &wg, "slow", "slow account", 3)
		r.Do(with(r, "one too many", "slow account"))
		r.Do(with(r, "oversized", "quick account").WithContext(weir.WithCost(t.Context(), 101)))
		wg.Wait()
		r.Want("retried", r.Do(with(r, "retried", "quick account")), 200)
		want := map[string]weir.Counts{
			"account": {Admitted: 5, Retried: 1},
			"quick":   {Admitted: 2, Rejected: 1, Retried: 1},
			"slow":    {Admitted: 1, Held: 2, Rejected: 1, Waited: 3 * time.Minute},
		}
		for _, s := range r.Transport.Snapshot() {
			if s.Counts != want[s.Key] {
				t.Errorf("lane %q counted %+v, want %+v", s.Key, s.Counts, want[s.Key])
			}
		}
	})
}

// A report names the lane that delayed the call, and its limit.
func TestReportNamesTheLaneThatHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.ObeyingRig(t, &testserver.Vendor{}, &weir.Transport{
			Keys: fromHeader, LimitsFor: limitsOf(map[string]throttle.Limit{
				"slow": throttle.LeakyBucket(1, time.Minute), "account": throttle.LeakyBucket(10, time.Second),
			}),
		})
		for _, want := range []weir.Report{
			{Lane: "account"},
			{Lane: "slow", Waited: time.Minute, Reason: throttle.ReasonRate, Limit: "leaky 1/m"},
		} {
			resp, err := r.Transport.RoundTrip(with(r, "a", "slow account"))
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			want.Attempts = 1
			got, _ := weir.ReportOf(resp)
			if got.Signal = want.Signal; fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("ReportOf = %+v, want %+v", got, want)
			}
		}
	})
}

// A forecast of a request with several keys counts the calls before it in line.
func TestForecastOfSeveralLanes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.ObeyingRig(t, &testserver.Vendor{}, &weir.Transport{
			Keys: fromHeader, Line: weir.Line{MaxForecast: time.Minute},
			LimitsFor: limitsOf(map[string]throttle.Limit{"account": throttle.LeakyBucket(1, 10*time.Second)}),
		})
		if f, err := r.Transport.Forecast(with(r, "nobody", "a account")); f != (weir.Forecast{}) || err != nil {
			t.Errorf("Forecast with no lane = %+v, %v, want the zero value", f, err)
		}
		var wg sync.WaitGroup
		send(r, &wg, "a", "a account", 5)
		send(r, &wg, "b", "b account", 1)
		for _, test := range []struct {
			keys     string
			expected time.Duration
			waiting  int
		}{
			{"a account", 60 * time.Second, 5}, // four of its own, and the other
			{"b account", 40 * time.Second, 3}, // one of its own, and two of the other
			{"c account", 30 * time.Second, 2}, // one of each of the others
		} {
			f, err := r.Transport.Forecast(with(r, "forecast", test.keys))
			if f.Limit = ""; err != nil {
				t.Errorf("Forecast of %q = %v", test.keys, err)
			}
			want := weir.Forecast{Wait: 10 * time.Second, Expected: test.expected, Lane: "account", Reason: throttle.ReasonRate, Waiting: test.waiting}
			if f != want {
				t.Errorf("Forecast of %q = %+v, want %+v", test.keys, f, want)
			}
		}
		send(r, &wg, "b", "b account", 1)
		got := r.Do(with(r, "too long", "a account"))
		if e, ok := errors.AsType[*weir.Error](got.Err); !ok || !errors.Is(e, weir.ErrQueueFull) || e.Lane != "account" || e.Before != 6 {
			t.Errorf("call that is expected to wait for 70s = %v, want ErrQueueFull of lane account behind 6", got.Err)
		}
		if f, err := r.Transport.Forecast(with(r, "forecast", "a account")); !errors.Is(err, weir.ErrQueueFull) || f.Expected != 70*time.Second {
			t.Errorf("Forecast of such a call = %+v, %v, want ErrQueueFull and 1m10s", f, err)
		}
		wg.Wait()
	})
}

// A call of a closed lane is rejected, although its limits would hold it for longer than the pause.
func TestAClosedLaneRejectsCallsOfSeveralPermits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t, &testserver.Vendor{}, &weir.Transport{
			Limits: []throttle.Limit{throttle.TokenBucket(2, time.Second, 4)},
			Keys:   func(*http.Request) []string { return []string{"customer", "account"} },
		})
		if err := r.Transport.Pause("customer", 3*time.Minute); err != nil {
			t.Fatal(err)
		}
		req := r.Request(weir.WithCost(t.Context(), 2), "a")
		_, foreseen := r.Transport.Forecast(req)
		got := r.Do(req)
		harness.WantPaused(t, "GET of two permits", got, 3*time.Minute)
		if fmt.Sprint(foreseen) != fmt.Sprint(got.Err) || got.At != 0 {
			t.Errorf("Forecast = %v, want %v, at once", foreseen, got.Err)
		}
	})
}

// A call is rejected as soon as one of its lanes is closed, although it stands behind others in
// another lane.
func TestAClosedLaneRejectsCallsBehindOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t, &testserver.Vendor{}, &weir.Transport{
			Keys: fromHeader, LimitsFor: limitsOf(map[string]throttle.Limit{"account": throttle.LeakyBucket(1, 10*time.Second)}),
		})
		var wg sync.WaitGroup
		send(r, &wg, "a", "a account", 3)
		stood := make(chan harness.Answer, 1)
		go func() { stood <- r.Do(with(r, "b", "b account")) }()
		synctest.Wait()
		time.Sleep(time.Second)
		if err := r.Transport.Pause("b", 3*time.Minute); err != nil {
			t.Fatal(err)
		}
		for what, got := range map[string]harness.Answer{"GET in line": <-stood, "later GET": r.Do(with(r, "b", "b account"))} {
			if harness.WantPaused(t, what, got, 3*time.Minute); got.At != time.Second {
				t.Errorf("%s was rejected at %v, want 1s", what, got.At)
			}
		}
		wg.Wait()
	})
}
