package retries_test

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
	"github.com/weirgo/weir/internal/acceptance/harness"
	"github.com/weirgo/weir/internal/testserver"
	"github.com/weirgo/weir/throttle"
)

// Which requests are retried, how often and when.

func TestOutcomesAreTriedAgainByMethod(t *testing.T) {
	outcomes := []struct {
		name       string
		fault      testserver.Fault
		idempotent bool // resent if the method is idempotent
		all        bool // resent for any method
	}{
		{"429", testserver.Fault{Do: testserver.Answer}, true, true},
		{"429 with a time", testserver.Fault{Do: testserver.Answer, Header: harness.Hints("1")}, true, true},
		{"503 with a time", testserver.Fault{Do: testserver.Answer, Status: 503, Header: harness.Hints("1")}, true, false},
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
					retry := harness.After(time.Millisecond)
					retry.AttemptTimeout = 100 * time.Millisecond
					o.fault.Last = 1
					r := harness.PipeRig(t, &testserver.Vendor{Faults: []testserver.Fault{o.fault}}, &weir.Transport{Retry: retry})
					req := r.Request(t.Context(), "a")
					req.Method = m.method
					if m.key != "" {
						req.Header.Set("Idempotency-Key", m.key)
					}
					r.Do(req)
					want := 1
					if o.all || o.idempotent && m.idempotent {
						want = 2
					}
					if got := len(r.Vendor.Arrivals()); got != want {
						t.Errorf("attempts of %s %s = %d, want %d", m.method, m.key, got, want)
					}
				})
			}
		})
	}
}

// Without a connection nothing was processed.
func TestUnsentIsTriedAgainWhateverTheMethod(t *testing.T) {
	for _, method := range []string{"GET", "POST"} {
		synctest.Test(t, func(t *testing.T) {
			r := harness.PipeRig(t, &testserver.Vendor{}, &weir.Transport{Retry: harness.After(time.Second)})
			r.Server.Close()
			req := r.Request(t.Context(), "a")
			req.Method = method
			got := r.Do(req)
			var ours *weir.Error
			if !errors.As(got.Err, &ours) || ours.Attempts != backoff.DefaultAttempts || got.At != 3*time.Second || ours.Status != 0 {
				t.Errorf("%s = %v at %v, want *weir.Error after 4 attempts at 3s", method, got.Err, got.At)
			}
		})
	}
}

func TestAttemptsEndWithResponse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t, &testserver.Vendor{Faults: []testserver.Fault{{Do: testserver.Answer, Status: 500}}}, &weir.Transport{Retry: harness.After(time.Second)})
		got := r.Get(t.Context(), "a")
		r.Want("GET", got, 500)
		harness.WantEqual(t, "arrivals", harness.Instants(r.Vendor.Arrivals()), harness.Spaced(0, time.Second, 4))
		if got.At != 3*time.Second {
			t.Errorf("answered at %v, want with the last attempt, 3s", got.At)
		}
	})
}

func TestRetryAfterIsFloorOfDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t,
			&testserver.Vendor{Faults: []testserver.Fault{{Last: 3, Do: testserver.Answer, Status: 500, Header: harness.Hints("7")}}},
			&weir.Transport{Retry: &backoff.Policy{Delay: backoff.Constant(time.Nanosecond)}})
		r.Want("GET", r.Get(t.Context(), "a"), 200)
		for i, a := range r.Vendor.Arrivals() {
			if low := time.Duration(i) * 7 * time.Second; a.At < low || a.At > low+time.Microsecond {
				t.Errorf("arrival %d at %v, want at %v, by no amount earlier", i, a.At, low)
			}
		}
	})
}

// One header of a failing server must not delay a call for hours.
func TestRetryAfterBeyondMaxPauseReturnsResponse(t *testing.T) {
	for _, status := range []int{408, 429, 500, 502, 503, 504, 599} {
		for _, told := range []string{"121", "3600", "2678400"} {
			synctest.Test(t, func(t *testing.T) {
				r := harness.PipeRig(t,
					&testserver.Vendor{Faults: []testserver.Fault{{Do: testserver.Answer, Status: status, Header: harness.Hints(told)}}},
					new(weir.Transport))
				got := r.Get(t.Context(), "a")
				r.Want("GET", got, status)
				if got.At != 0 || len(r.Vendor.Arrivals()) != 1 {
					t.Errorf("%d, Retry-After: %s = %d arrivals, answered at %v, want 1 at once", status, told, len(r.Vendor.Arrivals()), got.At)
				}
			})
		}
	}
}

func TestFailedDelayIsCappedFullJitter(t *testing.T) {
	var longest [3]time.Duration
	for range 200 {
		synctest.Test(t, func(t *testing.T) {
			r := harness.PipeRig(t, &testserver.Vendor{Faults: []testserver.Fault{{Do: testserver.Answer, Status: 500}}},
				&weir.Transport{Retry: &backoff.Policy{Delay: backoff.FullJitter(backoff.DefaultBase, 500*time.Millisecond)}})
			r.Want("GET", r.Get(t.Context(), "a"), 500)
			at := harness.Instants(r.Vendor.Arrivals())
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
		r := harness.PipeRig(t,
			&testserver.Vendor{Faults: []testserver.Fault{{Last: 1, Do: testserver.Answer, Status: 500}}},
			&weir.Transport{Limits: harness.Every(time.Second), Retry: harness.After(1500 * time.Millisecond)})
		r.Callers(t.Context(), 4).Wait()
		harness.WantEqual(t, "order", harness.IDs(r.Vendor.Arrivals()), []string{"0", "1", "0", "2", "3"})
		harness.WantEqual(t, "arrivals", harness.Instants(r.Vendor.Arrivals()), harness.Spaced(0, time.Second, 5))
	})
}

// An error delays only its own request.
func TestFailureLeavesLaneAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t,
			&testserver.Vendor{Faults: []testserver.Fault{{Last: 1, Do: testserver.Answer, Status: 500, Header: harness.Hints("60")}}},
			&weir.Transport{})
		first := r.Start("first")
		second := r.Get(t.Context(), "second")
		r.Want("second GET", second, 200)
		if second.At != 0 {
			t.Errorf("second GET answered at %v, want at once", second.At)
		}
		r.Want("first GET", <-first, 200)
	})
}

// A vendor that fails everything gets at most a fifth more calls, plus the floor.
func TestRetryBudgetBoundsWire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const offered, seconds = 3000, 60
		r := harness.PipeRig(t, &testserver.Vendor{Faults: []testserver.Fault{{Do: testserver.Answer, Status: 500}}}, new(weir.Transport))
		var wg sync.WaitGroup
		for i := range offered {
			req := r.Request(t.Context(), "a")
			req.URL.RawQuery = fmt.Sprint(i) // calls of one URL would count as tries of one call
			wg.Go(func() { r.Want("GET", r.Do(req), 500) })
			time.Sleep(seconds * time.Second / offered)
		}
		wg.Wait()
		wire := len(r.Vendor.Arrivals())
		share, floor := offered*12/10, backoff.DefaultBudgetPerSecond
		if low, high := share+floor*(seconds-20), share+floor*(seconds+10); wire < low || wire > high {
			t.Errorf("on the wire = %d of %d offered, want %d to %d", wire, offered, low, high)
		}
	})
}

func TestNoneNeverRetries(t *testing.T) {
	for _, status := range []int{429, 500} {
		synctest.Test(t, func(t *testing.T) {
			r := harness.PipeRig(t, &testserver.Vendor{Faults: []testserver.Fault{{Do: testserver.Answer, Status: status, Header: harness.Hints("1")}}},
				&weir.Transport{Retry: backoff.None})
			r.Want("GET", r.Get(t.Context(), "a"), status)
			if got := len(r.Vendor.Arrivals()); got != 1 {
				t.Errorf("arrivals = %d, want 1", got)
			}
		})
	}
}

// Each attempt is charged to the limits.
func TestRetriesWaitTheirTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t, &testserver.Vendor{Faults: []testserver.Fault{{Do: testserver.Answer, Status: 500}}},
			&weir.Transport{Limits: []throttle.Limit{throttle.LeakyBucket(1, 10*time.Second)}, Retry: harness.After(0)})
		r.Want("GET", r.Get(t.Context(), "a"), 500)
		harness.WantEqual(t, "arrivals", harness.Instants(r.Vendor.Arrivals()), harness.Spaced(0, 10*time.Second, 4))
	})
}

// A failure that would repeat is not retried.
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
				r := harness.PipeRig(t, &testserver.Vendor{Faults: []testserver.Fault{{Do: testserver.Answer, Status: 500}}}, &weir.Transport{Retry: &backoff.Policy{Attempts: 3}})
				r.Want("GET", r.Get(weir.WithRetry(t.Context(), tt.policy), "a"), 500)
				if got := len(r.Vendor.Arrivals()); got != tt.want {
					t.Errorf("arrivals = %d, want %d", got, tt.want)
				}
			})
		})
	}
}
