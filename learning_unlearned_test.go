package weir_test

import (
	"math"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/testserver"
	"github.com/weirgo/weir/throttle"
)

// A lane that learns nothing is slowed by refusals alone.

func TestLaneWithoutLimitsHoldsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := pipeRig(t, &testserver.Vendor{Service: time.Second}, new(weir.Transport))
		for _, got := range r.callers(t.Context(), 100).wait() {
			r.want("GET", got, 200)
		}
		wantEqual(t, "arrivals", instants(r.vendor.Arrivals()), spaced(0, 0, 100))
	})
}

func TestPanickedCallLetsNextGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := pipeRig(t, &testserver.Vendor{Faults: []testserver.Fault{{Last: 1, Do: testserver.Answer, Header: hints("600")}}}, new(weir.Transport))
		base, broken := r.transport.Base, false
		r.transport.Base = baseFunc(func(req *http.Request) (*http.Response, error) {
			if broken {
				panic("base broke")
			}
			return base.RoundTrip(req)
		})
		r.want("GET", r.get(t.Context(), "a"), 429)
		time.Sleep(600 * time.Second)
		broken = true
		func() {
			defer func() { recover() }()
			r.get(t.Context(), "probe")
		}()
		broken = false
		got := r.get(t.Context(), "next")
		r.want("GET after the panic", got, 200)
		if got.at != 600*time.Second {
			t.Errorf("GET after the panic answered at %v, want at once, 10m0s", got.at)
		}
	})
}

// A refusal without a time delays its own request, cuts the rate, and pauses
// nothing.
func TestRefusalWithoutTimeCutsRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := pipeRig(t,
			&testserver.Vendor{Faults: []testserver.Fault{{Last: 1, Do: testserver.Answer}}},
			&weir.Transport{Limits: every(70 * time.Millisecond), Retry: after(time.Minute)})
		answers := r.callers(t.Context(), 101).wait()
		for _, got := range answers {
			r.want("GET", got, 200)
		}
		if got := answers[0].at; got != time.Minute {
			t.Errorf("refused request answered at %v, want after its own delay, 1m0s", got)
		}
		// At 0.7 of the rate, until the calls served have restored it by a
		// twentieth each second: 0.75 after one, 0.8 after two.
		at := instants(r.vendor.Arrivals())
		wantEqual(t, "first arrivals", at[:4], spaced(0, 100*time.Millisecond, 4))
		if gap := at[80] - at[79]; gap >= 100*time.Millisecond || gap < 70*time.Millisecond {
			t.Errorf("gap after seconds = %v, want between 70ms and 100ms", gap)
		}
	})
}

// A refusal for ever, such as of an account without credit, says nothing of the
// rate.
func TestPermanentRefusalCutsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := pipeRig(t,
			&testserver.Vendor{Faults: []testserver.Fault{{Do: testserver.Answer, Header: http.Header{"X-Should-Retry": {"false"}}}}},
			&weir.Transport{Limits: every(time.Millisecond)})
		r.want("GET", r.get(t.Context(), "a"), 429)
		if got := len(r.vendor.Arrivals()); got != 1 {
			t.Errorf("arrivals = %d, want 1: the refusal is for ever", got)
		}
		if cut := r.transport.Snapshot()[0].RateShare; cut != 1 {
			t.Errorf("Cut = %v, want 1", cut)
		}
	})
}

func TestCutRateIsRestored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := pipeRig(t,
			&testserver.Vendor{Faults: []testserver.Fault{{Last: 1, Do: testserver.Answer}}},
			&weir.Transport{Limits: every(100 * time.Millisecond), Retry: after(time.Millisecond)})
		r.want("GET", r.get(t.Context(), "a"), 200)
		if got := r.transport.Snapshot()[0].RateShare; got != 0.7 {
			t.Errorf("Cut = %v, want 0.7", got)
		}
		for range 200 {
			r.want("GET", r.get(t.Context(), "b"), 200)
		}
		if got := r.transport.Snapshot()[0].RateShare; got != 1 {
			t.Errorf("Cut after 200 served = %v, want 1", got)
		}
		at := instants(r.vendor.Arrivals())
		if got := at[len(at)-1] - at[len(at)-2]; got != 100*time.Millisecond {
			t.Errorf("gap at last = %v, want 100ms", got)
		}
	})
}

// Calls that were in flight when the rate was cut do not cut it again.
func TestRefusalsOfOneRoundCutOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := pipeRig(t,
			&testserver.Vendor{Faults: []testserver.Fault{{Last: 5, Do: testserver.Answer, Delay: 10 * time.Millisecond}}},
			&weir.Transport{Limits: []throttle.Limit{throttle.TokenBucket(5, time.Minute, 5)}, Retry: after(time.Hour)})
		callers := r.callers(t.Context(), 5)
		time.Sleep(time.Second)
		if got := r.transport.Snapshot()[0].RateShare; got != 0.7 {
			t.Errorf("Cut after five refusals = %v, want 0.7", got)
		}
		callers.wait()
	})
}

func TestRefusalWithoutTimeIsDelayedByFullJitter(t *testing.T) {
	const calls = 200
	var delays []time.Duration
	for range calls {
		synctest.Test(t, func(t *testing.T) {
			r := pipeRig(t, &testserver.Vendor{Faults: []testserver.Fault{{Last: 1, Do: testserver.Answer}}}, new(weir.Transport))
			r.want("GET", r.get(t.Context(), "a"), 200)
			delays = append(delays, r.vendor.Arrivals().Span())
		})
	}
	sum, low, high := time.Duration(0), time.Duration(math.MaxInt64), time.Duration(0)
	for _, d := range delays {
		sum, low, high = sum+d, min(low, d), max(high, d)
	}
	// Uniform in [0, 200 ms]: the mean of 200 lies within 5 sigma of 100 ms.
	if mean := sum / calls; mean < 79*time.Millisecond || mean > 121*time.Millisecond || high > 200*time.Millisecond {
		t.Errorf("delays: mean %v, from %v to %v, want about 100ms, 0 to 200ms", mean, low, high)
	}
}

// It counts in MaxThrottled, not in attempts.
func TestRefusalsWithoutTimeCountAsThrottled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		retry := after(time.Second)
		retry.Attempts, retry.MaxThrottled = 2, 5
		r := pipeRig(t, &testserver.Vendor{Faults: []testserver.Fault{{Do: testserver.Answer}}}, &weir.Transport{Retry: retry})
		r.want("GET", r.get(t.Context(), "a"), http.StatusTooManyRequests)
		wantEqual(t, "arrivals", instants(r.vendor.Arrivals()), spaced(0, time.Second, 6))
	})
}
