package limits_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/acceptance/harness"
	"github.com/weirgo/weir/internal/testserver"
	"github.com/weirgo/weir/throttle"
)

// Transport.Shadow's decisions, counted exactly.

// Each algorithm simulates its line: a delayed request departs later in the shadow, and requests
// that come meanwhile wait behind it.
func TestShadowPlaysItsLineThrough(t *testing.T) {
	day := throttle.FixedWindow(4, 24*time.Hour)
	day.Align = throttle.AlignDay("Europe/Berlin")
	ms := time.Millisecond
	for name, tt := range map[string]struct {
		limit          throttle.Limit
		arrivals       []time.Duration
		admitted, held uint64
	}{
		// Departures at 0, 100, 200 and 300 ms: the line is empty at 300 ms.
		"bucket": {throttle.TokenBucket(10, time.Second, 1), []time.Duration{0, 0, 0, 150 * ms, 400 * ms}, 2, 3},
		"burst":  {throttle.TokenBucket(10, time.Second, 3), []time.Duration{0, 0, 0, 0, 150 * ms, 400 * ms}, 4, 2},
		"leaky":  {throttle.LeakyBucket(10, time.Second), []time.Duration{0, 50 * ms, 250 * ms}, 2, 1},
		// Two depart at 0, two at 1 s, and the fifth, which comes at 1.5 s, at 2 s.
		"fixed":   {throttle.FixedWindow(2, time.Second), []time.Duration{0, 0, 0, 0, 1500 * ms, 3500 * ms}, 3, 3},
		"log":     {throttle.SlidingLog(2, time.Second), []time.Duration{0, 0, 0, 0, 1500 * ms, 3500 * ms}, 3, 3},
		"sliding": {throttle.SlidingWindow(2, time.Second), []time.Duration{0, 0, 0, 5 * time.Second}, 3, 1},
		"day":     {day, []time.Duration{0, 0, 0, 0, time.Hour, 48 * time.Hour}, 5, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := harness.PipeRig(t, &testserver.Vendor{}, &weir.Transport{Shadow: []throttle.Limit{tt.limit}})
				r.At(tt.arrivals...)
				harness.WantEqual(t, "arrivals", harness.Instants(r.Vendor.Arrivals()), tt.arrivals)
				r.WantCounted(
					weir.ShadowCount{Live: weir.Admitted, Candidate: weir.Admitted, Requests: tt.admitted},
					weir.ShadowCount{Live: weir.Admitted, Candidate: weir.Held, Requests: tt.held},
				)
			})
		})
	}
}

// Equal limits give equal outcomes, whatever arrives when.
func TestShadowOfSameLimitsAgrees(t *testing.T) {
	for seed := range uint64(10) {
		synctest.Test(t, func(t *testing.T) {
			limits := []throttle.Limit{throttle.TokenBucket(10, time.Second, 4), throttle.SlidingLog(40, 10*time.Second)}
			r := harness.PipeRig(t, &testserver.Vendor{}, &weir.Transport{Limits: limits, Shadow: limits})
			random := rand.New(rand.NewPCG(seed, 2))
			arrivals := make([]time.Duration, 300)
			for i := range arrivals {
				arrivals[i] = arrivals[max(i-1, 0)] + time.Duration(random.ExpFloat64()*float64(200*time.Millisecond))
			}
			r.At(arrivals...)
			total := uint64(0)
			for _, c := range r.Counted() {
				if total += c.Requests; c.Live != c.Candidate {
					t.Errorf("seed %d: %d requests are %v live and %v in the shadow, want 0", seed, c.Requests, c.Live, c.Candidate)
				}
			}
			if total != uint64(len(arrivals)) {
				t.Errorf("seed %d: counted %d, want %d", seed, total, len(arrivals))
			}
		})
	}
}

// A looser candidate shows the cost of the enforced limits.
func TestLooserShadowAdmitsWhatIsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t, &testserver.Vendor{}, &weir.Transport{
			Limits: harness.Every(time.Second),
			Shadow: []throttle.Limit{throttle.TokenBucket(10, time.Second, 5)},
		})
		r.At(make([]time.Duration, 6)...)
		r.WantCounted(
			weir.ShadowCount{Live: weir.Admitted, Candidate: weir.Admitted, Requests: 1},
			weir.ShadowCount{Live: weir.Held, Candidate: weir.Admitted, Requests: 4},
			weir.ShadowCount{Live: weir.Held, Candidate: weir.Held, Requests: 1},
		)
	})
}

// Each shadow limit has its own cost, which may differ from an enforced limit's.
func TestShadowLimitsHaveTheirOwnCost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t, &testserver.Vendor{}, &weir.Transport{
			Shadow: []throttle.Limit{
				throttle.TokenBucket(100, time.Second, 100),
				harness.Named(throttle.TokenBucket(100, time.Second, 100), "tokens"),
			},
			Cost: func(req *http.Request, l throttle.Limit) int {
				if l.Unit == "tokens" {
					return len(req.URL.Path)
				}
				return 1
			},
		})
		for _, length := range []int{50, 50, 40, 101} {
			req := r.Request(t.Context(), "a")
			req.URL.Path = "/" + string(make([]byte, length-1))
			r.Want("GET", r.Do(req), 200)
		}
		r.WantCounted(
			weir.ShadowCount{Live: weir.Admitted, Candidate: weir.Admitted, Requests: 2},
			weir.ShadowCount{Live: weir.Admitted, Candidate: weir.Held, Requests: 1},
			weir.ShadowCount{Live: weir.Admitted, Candidate: weir.Rejected, Requests: 1},
		)
	})
}

// A free request still waits in line.
func TestShadowLineLetsNobodyOvertake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t, &testserver.Vendor{}, &weir.Transport{Shadow: harness.Every(time.Second), Cost: func(req *http.Request, _ throttle.Limit) int {
			return len(req.URL.Path) - 1
		}})
		for _, path := range []string{"/1", "/1", "/"} {
			r.Want("GET", r.Do(r.Path(path)), 200)
		}
		r.WantCounted(
			weir.ShadowCount{Live: weir.Admitted, Candidate: weir.Admitted, Requests: 1},
			weir.ShadowCount{Live: weir.Admitted, Candidate: weir.Held, Requests: 2},
		)
	})
}

// The shadow's line is as long as a real one: beyond it requests are rejected, and the line
// continues when it is shorter.
func TestShadowLineIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t, &testserver.Vendor{}, &weir.Transport{Line: weir.Line{MaxWaiting: 3}, Shadow: harness.Every(time.Second)})
		// One departs and three wait; at 2.5 s one still does.
		r.At(append(make([]time.Duration, 10), 2500*time.Millisecond, 2500*time.Millisecond, 2500*time.Millisecond)...)
		r.WantCounted(
			weir.ShadowCount{Live: weir.Admitted, Candidate: weir.Admitted, Requests: 1},
			weir.ShadowCount{Live: weir.Admitted, Candidate: weir.Held, Requests: 5},
			weir.ShadowCount{Live: weir.Admitted, Candidate: weir.Rejected, Requests: 7},
		)
	})
}

// A request refused here is counted once, and its retries are not counted.
func TestShadowCountsEachRequestOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t,
			&testserver.Vendor{Faults: []testserver.Fault{{Last: 2, Do: testserver.Answer, Status: 500}}},
			&weir.Transport{Limits: harness.Every(time.Second), Shadow: harness.Every(time.Millisecond), Retry: harness.After(time.Minute)})
		r.Want("GET", r.Get(t.Context(), "a"), 200)
		if got := r.Get(weir.WithCost(t.Context(), 2), "b"); got.Err == nil {
			t.Errorf("GET of cost 2 = %d, want an error", got.Status)
		}
		r.WantCounted(
			weir.ShadowCount{Live: weir.Admitted, Candidate: weir.Admitted, Requests: 1},
			weir.ShadowCount{Live: weir.Rejected, Candidate: weir.Rejected, Requests: 1},
		)
	})
}

// A call that was held and gave up was held, not rejected; one whose context was over was neither.
func TestShadowCountsWhoGaveUpAsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t, &testserver.Vendor{}, &weir.Transport{Limits: harness.Every(time.Second), Shadow: harness.Every(time.Second)})
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second/2, cancel)
		r.Want("GET", r.Get(ctx, "a"), 200)
		for _, id := range []string{"b", "c"} { // c arrives too late
			if got := r.Get(ctx, id); !errors.Is(got.Err, context.Canceled) {
				t.Errorf("GET = %v, want %v", got.Err, context.Canceled)
			}
		}
		r.WantCounted(
			weir.ShadowCount{Live: weir.Admitted, Candidate: weir.Admitted, Requests: 1},
			weir.ShadowCount{Live: weir.Held, Candidate: weir.Held, Requests: 1},
		)
	})
}

func TestBadShadowIsAnErrorOfEveryRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t, &testserver.Vendor{}, &weir.Transport{Shadow: []throttle.Limit{{Permits: -5}}})
		if got := r.Get(t.Context(), "a"); got.Err == nil || len(r.Vendor.Arrivals()) != 0 {
			t.Errorf("GET = %d, %v, want an error and nothing sent", got.Status, got.Err)
		}
	})
}

func TestOutcomesAreWords(t *testing.T) {
	for outcome, want := range map[weir.Outcome]string{
		weir.Admitted: "admitted", weir.Held: "held", weir.Rejected: "rejected", 7: "outcome(7)",
	} {
		if got := outcome.String(); got != want {
			t.Errorf("String() = %q, want %q", got, want)
		}
	}
}
