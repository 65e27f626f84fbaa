package weir_test

import (
	"math"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/testserver"
)

// A lane that learns nothing is paced by its limits alone.

func TestLaneWithoutLimitsHoldsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := obeyingRig(t, &testserver.Vendor{Service: time.Second}, new(weir.Transport))
		for _, got := range r.callers(t.Context(), 100).wait() {
			r.want("GET", got, 200)
		}
		wantEqual(t, "arrivals", instants(r.vendor.Arrivals()), spaced(0, 0, 100))
	})
}

func TestPanickedCallLetsNextGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := obeyingRig(t, &testserver.Vendor{Faults: []testserver.Fault{{Last: 1, Do: testserver.Answer, Header: hints("600")}}}, new(weir.Transport))
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

// A refusal without a time delays its own request, and neither slows nor pauses
// the others.
func TestRefusalWithoutTimeDelaysItsRequestAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := obeyingRig(t,
			&testserver.Vendor{Faults: []testserver.Fault{{Last: 1, Do: testserver.Answer}}},
			&weir.Transport{Limits: every(70 * time.Millisecond), Retry: after(time.Minute)})
		answers := r.callers(t.Context(), 101).wait()
		for _, got := range answers {
			r.want("GET", got, 200)
		}
		if got := answers[0].at; got != time.Minute {
			t.Errorf("refused request answered at %v, want after its own delay, 1m0s", got)
		}
		wantEqual(t, "arrivals", instants(r.vendor.Arrivals()), append(spaced(0, 70*time.Millisecond, 101), time.Minute))
	})
}

// A refusal for ever, such as of an account without credit, is not tried again.
func TestPermanentRefusalIsReturned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := pipeRig(t,
			&testserver.Vendor{Faults: []testserver.Fault{{Do: testserver.Answer, Header: http.Header{"X-Should-Retry": {"false"}}}}},
			&weir.Transport{Limits: every(time.Millisecond)})
		r.want("GET", r.get(t.Context(), "a"), 429)
		if got := len(r.vendor.Arrivals()); got != 1 {
			t.Errorf("arrivals = %d, want 1: the refusal is for ever", got)
		}
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
