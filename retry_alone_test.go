package weir_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/headers"
	"github.com/weirgo/weir/internal/testserver"
)

// A request that is refused twice while others of its lane pass is refused for
// itself: it is delayed alone.

// answered answers the request of that number alone.
func answered(number int, f testserver.Fault) testserver.Fault {
	f.First, f.Last, f.Do = number, number, testserver.Answer
	return f
}

// start sends a GET in the background and returns where its answer comes.
func (r *rig) start(id string) <-chan answer {
	done := make(chan answer, 1)
	go func() { done <- r.get(r.Context(), id) }()
	synctest.Wait()
	return done
}

func TestRequestRefusedTwiceWhileOthersPassIsDelayedAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := pipeRig(t,
			&testserver.Vendor{Faults: []testserver.Fault{
				answered(1, testserver.Fault{}),
				answered(3, testserver.Fault{Header: hints("5")}),
			}},
			&weir.Transport{Retry: after(4 * time.Second)})
		odd := r.start("odd")
		time.Sleep(time.Second)
		r.want("GET in between", r.get(t.Context(), "between"), 200)
		time.Sleep(3500 * time.Millisecond)
		r.want("GET after the second refusal", r.get(t.Context(), "after"), 200)
		r.want("odd GET", <-odd, 200)
		want := []time.Duration{0, time.Second, 4 * time.Second, 4500 * time.Millisecond, 9 * time.Second}
		wantEqual(t, "arrivals", instants(r.vendor.Arrivals()), want)
	})
}

// What counts is whether others passed since it was refused first.
func TestRequestRefusedThriceWhileOthersPassedOnceIsDelayedAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := pipeRig(t,
			&testserver.Vendor{Faults: []testserver.Fault{
				answered(1, testserver.Fault{}),
				answered(3, testserver.Fault{}),
				answered(4, testserver.Fault{Header: hints("5")}),
			}},
			&weir.Transport{Retry: after(4 * time.Second)})
		odd := r.start("odd")
		time.Sleep(time.Second)
		r.want("GET in between", r.get(t.Context(), "between"), 200)
		time.Sleep(8 * time.Second)
		r.want("GET after the third refusal", r.get(t.Context(), "after"), 200)
		r.want("odd GET", <-odd, 200)
		want := []time.Duration{0, time.Second, 4 * time.Second, 8 * time.Second, 9 * time.Second, 13 * time.Second}
		wantEqual(t, "arrivals", instants(r.vendor.Arrivals()), want)
	})
}

func TestRequestRefusedTwiceWithNobodyPassingPausesLane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := obeyingRig(t,
			&testserver.Vendor{Faults: []testserver.Fault{
				answered(1, testserver.Fault{}),
				answered(2, testserver.Fault{Header: hints("5")}),
			}},
			&weir.Transport{Retry: after(4 * time.Second)})
		odd := r.start("odd")
		time.Sleep(4500 * time.Millisecond)
		r.want("GET after the second refusal", r.get(t.Context(), "after"), 200)
		r.want("odd GET", <-odd, 200)
		want := []time.Duration{0, 4 * time.Second, 9 * time.Second, 9 * time.Second}
		wantEqual(t, "arrivals", instants(r.vendor.Arrivals()), want)
	})
}

func TestRequestRefusedAloneLeavesRateAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := obeyingRig(t,
			&testserver.Vendor{Faults: []testserver.Fault{answered(1, testserver.Fault{}), answered(3, testserver.Fault{})}},
			&weir.Transport{Limits: every(time.Second), Retry: after(4 * time.Second)})
		odd := r.start("odd")
		time.Sleep(2 * time.Second)
		r.want("GET in between", r.get(t.Context(), "between"), 200)
		r.want("odd GET", <-odd, 200)
		r.callers(t.Context(), 3).wait()
		want := []time.Duration{0, 2 * time.Second, 4 * time.Second, 8 * time.Second, 9 * time.Second, 10 * time.Second, 11 * time.Second}
		wantEqual(t, "arrivals", instants(r.vendor.Arrivals()), want)
	})
}

// An answer of a call from before the refusal, however late, does not hide that
// others have passed since.
func TestLateOldAnswerDoesNotHideThatOthersPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := pipeRig(t,
			&testserver.Vendor{Faults: []testserver.Fault{
				{First: 1, Last: 1, Do: testserver.SlowHeaders, Delay: 3500 * time.Millisecond},
				answered(2, testserver.Fault{}),
				answered(4, testserver.Fault{Header: hints("60")}),
			}},
			&weir.Transport{Retry: after(4 * time.Second)})
		old := r.start("old")
		odd := r.start("odd")
		time.Sleep(time.Second)
		r.want("GET in between", r.get(t.Context(), "between"), 200)
		<-old // at 3.5s
		time.Sleep(time.Second)
		r.want("GET after the second refusal", r.get(t.Context(), "after"), 200)
		if got := r.now(); got != 4500*time.Millisecond {
			t.Errorf("GET after the second refusal answered at %v, want 4.5s", got)
		}
		<-odd
	})
}

// A vendor may say itself that a refusal concerns the request alone.
func TestRefusalOfRequestScopeDelaysItAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := pipeRig(t,
			&testserver.Vendor{Faults: []testserver.Fault{answered(1, testserver.Fault{Header: hints("5")})}},
			&weir.Transport{Dialect: &headers.Dialect{Scope: headers.ScopeRequest}, Retry: after(time.Second)})
		odd := r.start("odd")
		r.want("other GET", r.get(t.Context(), "other"), 200)
		r.want("odd GET", <-odd, 200)
		wantEqual(t, "arrivals", instants(r.vendor.Arrivals()), []time.Duration{0, 0, 5 * time.Second})
	})
}
