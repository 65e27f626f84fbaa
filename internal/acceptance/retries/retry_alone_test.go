package retries_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/headers"
	"github.com/weirgo/weir/internal/acceptance/harness"
	"github.com/weirgo/weir/internal/testserver"
)

// A request refused three times while others of its lane pass is itself the cause: it is delayed
// alone.

// Twice may be chance, at an unknown limit: the reported time pauses the lane.
func TestRequestRefusedTwiceWhileOthersPassPausesLane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t,
			&testserver.Vendor{Faults: []testserver.Fault{
				harness.Answered(1, testserver.Fault{}),
				harness.Answered(3, testserver.Fault{Header: harness.Hints("5")}),
			}},
			&weir.Transport{Learn: weir.LearnOff, Retry: harness.After(4 * time.Second)})
		odd := r.Start("odd")
		time.Sleep(time.Second)
		r.Want("GET in between", r.Get(t.Context(), "between"), 200)
		time.Sleep(3500 * time.Millisecond)
		r.Want("GET after the second refusal", r.Get(t.Context(), "after"), 200)
		r.Want("odd GET", <-odd, 200)
		want := []time.Duration{0, time.Second, 4 * time.Second, 9 * time.Second, 9 * time.Second}
		harness.WantEqual(t, "arrivals", harness.Instants(r.Vendor.Arrivals()), want)
	})
}

// It counts whether others passed since its first refusal.
func TestRequestRefusedThriceWhileOthersPassedOnceIsDelayedAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t,
			&testserver.Vendor{Faults: []testserver.Fault{
				harness.Answered(1, testserver.Fault{}),
				harness.Answered(3, testserver.Fault{}),
				harness.Answered(4, testserver.Fault{Header: harness.Hints("5")}),
			}},
			&weir.Transport{Retry: harness.After(4 * time.Second)})
		odd := r.Start("odd")
		time.Sleep(time.Second)
		r.Want("GET in between", r.Get(t.Context(), "between"), 200)
		time.Sleep(8 * time.Second)
		r.Want("GET after the third refusal", r.Get(t.Context(), "after"), 200)
		r.Want("odd GET", <-odd, 200)
		want := []time.Duration{0, time.Second, 4 * time.Second, 8 * time.Second, 9 * time.Second, 13 * time.Second}
		harness.WantEqual(t, "arrivals", harness.Instants(r.Vendor.Arrivals()), want)
	})
}

func TestRequestRefusedTwiceWithNobodyPassingPausesLane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.ObeyingRig(t,
			&testserver.Vendor{Faults: []testserver.Fault{
				harness.Answered(1, testserver.Fault{}),
				harness.Answered(2, testserver.Fault{Header: harness.Hints("5")}),
			}},
			&weir.Transport{Retry: harness.After(4 * time.Second)})
		odd := r.Start("odd")
		time.Sleep(4500 * time.Millisecond)
		r.Want("GET after the second refusal", r.Get(t.Context(), "after"), 200)
		r.Want("odd GET", <-odd, 200)
		want := []time.Duration{0, 4 * time.Second, 9 * time.Second, 9 * time.Second}
		harness.WantEqual(t, "arrivals", harness.Instants(r.Vendor.Arrivals()), want)
	})
}

func TestRequestRefusedAloneLeavesRateAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.ObeyingRig(t,
			&testserver.Vendor{Faults: []testserver.Fault{harness.Answered(1, testserver.Fault{}), harness.Answered(3, testserver.Fault{})}},
			&weir.Transport{Limits: harness.Every(time.Second), Retry: harness.After(4 * time.Second)})
		odd := r.Start("odd")
		time.Sleep(2 * time.Second)
		r.Want("GET in between", r.Get(t.Context(), "between"), 200)
		r.Want("odd GET", <-odd, 200)
		r.Callers(t.Context(), 3).Wait()
		want := []time.Duration{0, 2 * time.Second, 4 * time.Second, 8 * time.Second, 9 * time.Second, 10 * time.Second, 11 * time.Second}
		harness.WantEqual(t, "arrivals", harness.Instants(r.Vendor.Arrivals()), want)
	})
}

// An answer to a call from before the refusal, however late, does not hide that others have passed
// since.
func TestLateOldAnswerDoesNotHideThatOthersPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t,
			&testserver.Vendor{Faults: []testserver.Fault{
				{First: 1, Last: 1, Do: testserver.SlowHeaders, Delay: 3500 * time.Millisecond},
				harness.Answered(2, testserver.Fault{}),
				harness.Answered(4, testserver.Fault{}),
				harness.Answered(5, testserver.Fault{Header: harness.Hints("60")}),
			}},
			&weir.Transport{Retry: harness.After(4 * time.Second)})
		old := r.Start("old")
		odd := r.Start("odd")
		time.Sleep(time.Second)
		r.Want("GET in between", r.Get(t.Context(), "between"), 200)
		<-old // at 3.5s
		time.Sleep(5 * time.Second)
		r.Want("GET after the third refusal", r.Get(t.Context(), "after"), 200)
		if got := r.Now(); got != 8500*time.Millisecond {
			t.Errorf("GET after the third refusal answered at %v, want 8.5s", got)
		}
		<-odd
	})
}

// A vendor may report that a refusal concerns the request alone.
func TestRefusalOfRequestScopeDelaysItAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t,
			&testserver.Vendor{Faults: []testserver.Fault{harness.Answered(1, testserver.Fault{Header: harness.Hints("5")})}},
			&weir.Transport{Dialect: &headers.Dialect{Scope: headers.ScopeRequest}, Retry: harness.After(time.Second)})
		odd := r.Start("odd")
		r.Want("other GET", r.Get(t.Context(), "other"), 200)
		r.Want("odd GET", <-odd, 200)
		harness.WantEqual(t, "arrivals", harness.Instants(r.Vendor.Arrivals()), []time.Duration{0, 0, 5 * time.Second})
	})
}
