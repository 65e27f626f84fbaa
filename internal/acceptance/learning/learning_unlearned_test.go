package learning_test

import (
	"math"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/acceptance/harness"
	"github.com/weirgo/weir/internal/testserver"
)

// A lane that learns nothing is paced by its limits alone.

func TestLaneWithoutLimitsHoldsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.ObeyingRig(t, &testserver.Vendor{Service: time.Second}, new(weir.Transport))
		for _, got := range r.Callers(t.Context(), 100).Wait() {
			r.Want("GET", got, 200)
		}
		harness.WantEqual(t, "arrivals", harness.Instants(r.Vendor.Arrivals()), harness.Spaced(0, 0, 100))
	})
}

func TestPanickedCallLetsNextGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.ObeyingRig(t, &testserver.Vendor{Faults: []testserver.Fault{{Last: 1, Do: testserver.Answer, Header: harness.Hints("600")}}}, new(weir.Transport))
		base, broken := r.Transport.Base, false
		r.Transport.Base = harness.BaseFunc(func(req *http.Request) (*http.Response, error) {
			if broken {
				panic("base broke")
			}
			return base.RoundTrip(req)
		})
		r.Want("GET", r.Get(t.Context(), "a"), 429)
		time.Sleep(600 * time.Second)
		broken = true
		func() {
			defer func() { recover() }()
			r.Get(t.Context(), "probe")
		}()
		broken = false
		got := r.Get(t.Context(), "next")
		r.Want("GET after the panic", got, 200)
		if got.At != 600*time.Second {
			t.Errorf("GET after the panic answered at %v, want at once, 10m0s", got.At)
		}
	})
}

// A refusal without a time delays only its own request, and neither slows nor pauses the others.
func TestRefusalWithoutTimeDelaysItsRequestAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.ObeyingRig(t,
			&testserver.Vendor{Faults: []testserver.Fault{{Last: 1, Do: testserver.Answer}}},
			&weir.Transport{Limits: harness.Every(70 * time.Millisecond), Retry: harness.After(time.Minute)})
		answers := r.Callers(t.Context(), 101).Wait()
		for _, got := range answers {
			r.Want("GET", got, 200)
		}
		if got := answers[0].At; got != time.Minute {
			t.Errorf("refused request answered at %v, want after its own delay, 1m0s", got)
		}
		harness.WantEqual(t, "arrivals", harness.Instants(r.Vendor.Arrivals()), append(harness.Spaced(0, 70*time.Millisecond, 101), time.Minute))
	})
}

// A permanent refusal, such as of an account without credit, is not retried.
func TestPermanentRefusalIsReturned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t,
			&testserver.Vendor{Faults: []testserver.Fault{{Do: testserver.Answer, Header: http.Header{"X-Should-Retry": {"false"}}}}},
			&weir.Transport{Limits: harness.Every(time.Millisecond)})
		r.Want("GET", r.Get(t.Context(), "a"), 429)
		if got := len(r.Vendor.Arrivals()); got != 1 {
			t.Errorf("arrivals = %d, want 1: the refusal is for ever", got)
		}
	})
}

func TestRefusalWithoutTimeIsDelayedByFullJitter(t *testing.T) {
	const calls = 200
	var delays []time.Duration
	for range calls {
		synctest.Test(t, func(t *testing.T) {
			r := harness.PipeRig(t, &testserver.Vendor{Faults: []testserver.Fault{{Last: 1, Do: testserver.Answer}}}, new(weir.Transport))
			r.Want("GET", r.Get(t.Context(), "a"), 200)
			delays = append(delays, r.Vendor.Arrivals().Span())
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
		retry := harness.After(time.Second)
		retry.Attempts, retry.MaxThrottled = 2, 5
		r := harness.PipeRig(t, &testserver.Vendor{Faults: []testserver.Fault{{Do: testserver.Answer}}}, &weir.Transport{Retry: retry})
		r.Want("GET", r.Get(t.Context(), "a"), http.StatusTooManyRequests)
		harness.WantEqual(t, "arrivals", harness.Instants(r.Vendor.Arrivals()), harness.Spaced(0, time.Second, 6))
	})
}
