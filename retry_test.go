package weir_test

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/backoff"
	"github.com/weirgo/weir/internal/testserver"
	"github.com/weirgo/weir/throttle"
)

// What is tried again, how often and when.

func TestOutcomesAreTriedAgainByMethod(t *testing.T) {
	outcomes := []struct {
		name       string
		fault      testserver.Fault
		idempotent bool // sent again where the method is idempotent
		all        bool // sent again whatever the method
	}{
		{"429", testserver.Fault{Do: testserver.Answer}, true, true},
		{"429 with a time", testserver.Fault{Do: testserver.Answer, Header: hints("1")}, true, true},
		{"503 with a time", testserver.Fault{Do: testserver.Answer, Status: 503, Header: hints("1")}, true, false},
		{"408", testserver.Fault{Do: testserver.Answer, Status: 408}, true, false},
		{"500", testserver.Fault{Do: testserver.Answer, Status: 500}, true, false},
		{"502", testserver.Fault{Do: testserver.Answer, Status: 502}, true, false},
		{"503", testserver.Fault{Do: testserver.Answer, Status: 503}, true, false},
		{"504", testserver.Fault{Do: testserver.Answer, Status: 504}, true, false},
		{"reset", testserver.Fault{Do: testserver.ResetEarly}, true, false},
		{"closed without an answer", testserver.Fault{Do: testserver.Hang, Delay: 1}, true, false},
		{"attempt times out", testserver.Fault{Do: testserver.Hang}, true, false},
		{"501", testserver.Fault{Do: testserver.Answer, Status: 501}, false, false},
		{"400", testserver.Fault{Do: testserver.Answer, Status: 400}, false, false},
		{"401", testserver.Fault{Do: testserver.Answer, Status: 401}, false, false},
		{"403", testserver.Fault{Do: testserver.Answer, Status: 403}, false, false},
		{"404", testserver.Fault{Do: testserver.Answer, Status: 404}, false, false},
		{"200", testserver.Fault{Do: testserver.Answer, Status: 200}, false, false},
		{"204", testserver.Fault{Do: testserver.Answer, Status: 204}, false, false},
	}
	methods := []struct {
		method, key string
		idempotent  bool
	}{
		{"GET", "", true}, {"HEAD", "", true}, {"OPTIONS", "", true}, {"TRACE", "", true}, {"PUT", "", true}, {"DELETE", "", true},
		{"POST", "", false}, {"PATCH", "", false}, {"PURGE", "", false}, {"POST", "k1", true}, {"PATCH", "k2", true},
	}
	for _, o := range outcomes {
		t.Run(o.name, func(t *testing.T) {
			for _, m := range methods {
				synctest.Test(t, func(t *testing.T) {
					retry := after(time.Millisecond)
					retry.AttemptTimeout = 100 * time.Millisecond
					o.fault.Last = 1
					r := pipeRig(t, &testserver.Vendor{Faults: []testserver.Fault{o.fault}}, &weir.Transport{Retry: retry})
					req := r.request(t.Context(), "a")
					req.Method = m.method
					if m.key != "" {
						req.Header.Set("Idempotency-Key", m.key)
					}
					r.do(req)
					want := 1
					if o.all || o.idempotent && m.idempotent {
						want = 2
					}
					if got := len(r.vendor.Arrivals()); got != want {
						t.Errorf("attempts of %s %s = %d, want %d", m.method, m.key, got, want)
					}
				})
			}
		})
	}
}

// Where no connection came about, nothing was processed.
func TestUnsentIsTriedAgainWhateverTheMethod(t *testing.T) {
	for _, method := range []string{"GET", "POST"} {
		synctest.Test(t, func(t *testing.T) {
			r := pipeRig(t, &testserver.Vendor{}, &weir.Transport{Retry: after(time.Second)})
			r.server.Close()
			req := r.request(t.Context(), "a")
			req.Method = method
			got := r.do(req)
			var ours *weir.Error
			if !errors.As(got.err, &ours) || ours.Attempts != backoff.DefaultAttempts || got.at != 3*time.Second || ours.Status != 0 {
				t.Errorf("%s = %v at %v, want *weir.Error after 4 attempts at 3s", method, got.err, got.at)
			}
		})
	}
}

func TestAttemptsEndWithResponse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := pipeRig(t, &testserver.Vendor{Faults: []testserver.Fault{{Do: testserver.Answer, Status: 500}}}, &weir.Transport{Retry: after(time.Second)})
		got := r.get(t.Context(), "a")
		r.want("GET", got, 500)
		wantEqual(t, "arrivals", instants(r.vendor.Arrivals()), spaced(0, time.Second, 4))
		if got.at != 3*time.Second {
			t.Errorf("answered at %v, want with the last attempt, 3s", got.at)
		}
	})
}

func TestRetryAfterIsFloorOfDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := pipeRig(t,
			&testserver.Vendor{Faults: []testserver.Fault{{Last: 3, Do: testserver.Answer, Status: 500, Header: hints("7")}}},
			&weir.Transport{Retry: &backoff.Policy{Delay: backoff.Constant(time.Nanosecond)}})
		r.want("GET", r.get(t.Context(), "a"), 200)
		for i, a := range r.vendor.Arrivals() {
			if low := time.Duration(i) * 7 * time.Second; a.At < low || a.At > low+time.Microsecond {
				t.Errorf("arrival %d at %v, want at %v, by no amount earlier", i, a.At, low)
			}
		}
	})
}

// A server that fails must not hold a call for hours by one header.
func TestRetryAfterBeyondMaxPauseReturnsResponse(t *testing.T) {
	for _, status := range []int{408, 429, 500, 502, 503, 504, 599} {
		for _, told := range []string{"121", "3600", "2678400"} {
			synctest.Test(t, func(t *testing.T) {
				r := pipeRig(t,
					&testserver.Vendor{Faults: []testserver.Fault{{Do: testserver.Answer, Status: status, Header: hints(told)}}},
					new(weir.Transport))
				got := r.get(t.Context(), "a")
				r.want("GET", got, status)
				if got.at != 0 || len(r.vendor.Arrivals()) != 1 {
					t.Errorf("%d, Retry-After: %s = %d arrivals, answered at %v, want 1 at once", status, told, len(r.vendor.Arrivals()), got.at)
				}
			})
		}
	}
}

func TestFailedDelayIsCappedFullJitter(t *testing.T) {
	var longest [3]time.Duration
	for range 200 {
		synctest.Test(t, func(t *testing.T) {
			r := pipeRig(t, &testserver.Vendor{Faults: []testserver.Fault{{Do: testserver.Answer, Status: 500}}},
				&weir.Transport{Retry: &backoff.Policy{Delay: backoff.FullJitter(backoff.DefaultBase, 500*time.Millisecond)}})
			r.want("GET", r.get(t.Context(), "a"), 500)
			at := instants(r.vendor.Arrivals())
			for i := range longest {
				longest[i] = max(longest[i], at[i+1]-at[i])
			}
		})
	}
	for i, bound := range []time.Duration{200 * time.Millisecond, 400 * time.Millisecond, 500 * time.Millisecond} {
		if longest[i] > bound || longest[i] < bound*9/10 {
			t.Errorf("longest delay before retry %d = %v, want nearly %v", i+1, longest[i], bound)
		}
	}
}

// A retry leaves the line for its delay and comes back with its first arrival.
func TestRetryReturnsToItsPlaceInLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := pipeRig(t,
			&testserver.Vendor{Faults: []testserver.Fault{{Last: 1, Do: testserver.Answer, Status: 500}}},
			&weir.Transport{Limits: every(time.Second), Retry: after(1500 * time.Millisecond)})
		r.callers(t.Context(), 4).wait()
		wantEqual(t, "order", ids(r.vendor.Arrivals()), []string{"0", "1", "0", "2", "3"})
		wantEqual(t, "arrivals", instants(r.vendor.Arrivals()), spaced(0, time.Second, 5))
	})
}

// An error delays only its own request.
func TestFailureLeavesLaneAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := pipeRig(t,
			&testserver.Vendor{Faults: []testserver.Fault{{Last: 1, Do: testserver.Answer, Status: 500, Header: hints("60")}}},
			&weir.Transport{})
		first := r.start("first")
		second := r.get(t.Context(), "second")
		r.want("second GET", second, 200)
		if second.at != 0 {
			t.Errorf("second GET answered at %v, want at once", second.at)
		}
		r.want("first GET", <-first, 200)
	})
}

// What a vendor that fails everything gets for its trouble: no more than a fifth
// more, and the floor.
func TestRetryBudgetBoundsWire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const offered, seconds = 3000, 60
		r := pipeRig(t, &testserver.Vendor{Faults: []testserver.Fault{{Do: testserver.Answer, Status: 500}}}, new(weir.Transport))
		var wg sync.WaitGroup
		for i := range offered {
			req := r.request(t.Context(), "a")
			req.URL.RawQuery = fmt.Sprint(i) // calls of one URL would be tries of one call
			wg.Go(func() { r.want("GET", r.do(req), 500) })
			time.Sleep(seconds * time.Second / offered)
		}
		wg.Wait()
		wire := len(r.vendor.Arrivals())
		share, floor := offered*12/10, backoff.DefaultBudgetPerSecond
		if low, high := share+floor*(seconds-20), share+floor*(seconds+10); wire < low || wire > high {
			t.Errorf("on the wire = %d of %d offered, want %d to %d", wire, offered, low, high)
		}
	})
}

func TestNoneNeverRetries(t *testing.T) {
	for _, status := range []int{429, 500} {
		synctest.Test(t, func(t *testing.T) {
			r := pipeRig(t, &testserver.Vendor{Faults: []testserver.Fault{{Do: testserver.Answer, Status: status, Header: hints("1")}}},
				&weir.Transport{Retry: backoff.None})
			r.want("GET", r.get(t.Context(), "a"), status)
			if got := len(r.vendor.Arrivals()); got != 1 {
				t.Errorf("arrivals = %d, want 1", got)
			}
		})
	}
}

// Each attempt is charged to the limits.
func TestRetriesWaitTheirTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := pipeRig(t, &testserver.Vendor{Faults: []testserver.Fault{{Do: testserver.Answer, Status: 500}}},
			&weir.Transport{Limits: []throttle.Limit{throttle.LeakyBucket(1, 10*time.Second)}, Retry: after(0)})
		r.want("GET", r.get(t.Context(), "a"), 500)
		wantEqual(t, "arrivals", instants(r.vendor.Arrivals()), spaced(0, 10*time.Second, 4))
	})
}

// What cannot be met another time is not met again.
func TestHopelessErrorsAreReturnedAtOnce(t *testing.T) {
	secure := testserver.Run(t, testserver.ListenTLS, &testserver.Vendor{})
	untrusting := secure.Transport()
	untrusting.TLSClientConfig = nil
	tests := map[string]struct {
		base http.RoundTripper
		url  string
	}{
		"untrusted certificate": {untrusting, secure.URL},
		"unknown scheme":        {secure.Transport(), strings.Replace(secure.URL, "https", "gopher", 1)},
		"bad header":            {secure.Transport(), secure.URL},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			transport := &weir.Transport{Base: tt.base, Retry: &backoff.Policy{Delay: backoff.Constant(math.MaxInt64)}}
			defer transport.Close()
			req, _ := http.NewRequest(http.MethodGet, tt.url, nil)
			if name == "bad header" {
				req.Header["X-Bad"] = []string{"a\nb"}
			}
			_, err := transport.RoundTrip(req)
			var ours *weir.Error
			if !errors.As(err, &ours) || ours.Attempts != 1 {
				t.Errorf("RoundTrip = %v, want an error of one attempt", err)
			}
		})
	}
}

func TestRetryOfContextReplacesTransports(t *testing.T) {
	for _, tt := range []struct {
		policy *backoff.Policy
		want   int
	}{{backoff.None, 1}, {&backoff.Policy{Attempts: 2}, 2}, {nil, 4}} {
		t.Run(fmt.Sprint(tt.want), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := pipeRig(t, &testserver.Vendor{Faults: []testserver.Fault{{Do: testserver.Answer, Status: 500}}}, &weir.Transport{Retry: &backoff.Policy{Attempts: 3}})
				r.want("GET", r.get(weir.WithRetry(t.Context(), tt.policy), "a"), 500)
				if got := len(r.vendor.Arrivals()); got != tt.want {
					t.Errorf("arrivals = %d, want %d", got, tt.want)
				}
			})
		})
	}
}
