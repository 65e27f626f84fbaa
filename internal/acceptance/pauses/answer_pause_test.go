package pauses_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
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

// The effect of a refusal with a reported time on the lane, at exact instants.

// perSecond is a limit of n permits a second.
func perSecond(n, burst int) []throttle.Limit {
	return []throttle.Limit{throttle.TokenBucket(n, time.Second, burst)}
}

func TestRefusalHoldsHundredWaitersUntilRetryTimeThenSpaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.ObeyingRig(t,
			&testserver.Vendor{Faults: []testserver.Fault{harness.Refuse(1, 1, "2")}},
			&weir.Transport{Limits: perSecond(250, 1)})
		for _, got := range r.Callers(t.Context(), 101).Wait() {
			r.Want("GET", got, 200)
		}
		// The refused call departs first: it arrived first.
		want := append(harness.Spaced(0, 4*time.Millisecond, 3), harness.Spaced(2010*time.Millisecond, 4*time.Millisecond, 99)...)
		harness.WantEqual(t, "arrivals", harness.Instants(r.Vendor.Arrivals()), want)
		harness.WantEqual(t, "order", harness.IDs(r.Vendor.Arrivals()), append([]string{"0", "1", "2", "0"}, harness.Numbers(3, 100)...))
	})
}

func TestPauseVoidsSavedBurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.ObeyingRig(t,
			&testserver.Vendor{Faults: []testserver.Fault{harness.Refuse(1, 1, "2")}},
			&weir.Transport{Limits: perSecond(10, 5)})
		r.Get(t.Context(), "first")
		r.Callers(t.Context(), 8).Wait()
		want := append([]time.Duration{0}, harness.Spaced(2010*time.Millisecond, 100*time.Millisecond, 9)...)
		harness.WantEqual(t, "arrivals", harness.Instants(r.Vendor.Arrivals()), want)
	})
}

func TestRefusedInFlightReturnInOrderOfArrival(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.ObeyingRig(t,
			&testserver.Vendor{Faults: []testserver.Fault{harness.Refuse(1, 5, "2")}},
			&weir.Transport{Limits: perSecond(10, 5)})
		var wg sync.WaitGroup
		for _, id := range harness.Numbers(0, 9) {
			wg.Go(func() { r.Get(t.Context(), id) })
			time.Sleep(time.Millisecond)
		}
		wg.Wait()
		// The last refusal comes at 14 ms, and its pause ends last.
		want := append(harness.Spaced(0, time.Millisecond, 5), harness.Spaced(2014*time.Millisecond, 100*time.Millisecond, 10)...)
		harness.WantEqual(t, "arrivals", harness.Instants(r.Vendor.Arrivals()), want)
		harness.WantEqual(t, "order", harness.IDs(r.Vendor.Arrivals()), append(harness.Numbers(0, 4), harness.Numbers(0, 9)...))
	})
}

// A second refusal prolongs a pause and never shortens it.
func TestPauseEndsAtLatestRetryTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second := harness.Refuse(1, 1, "5"), harness.Refuse(2, 2, "1")
		second.Delay = 500 * time.Millisecond
		r := harness.ObeyingRig(t,
			&testserver.Vendor{Faults: []testserver.Fault{first, second}},
			&weir.Transport{Limits: perSecond(10, 2)})
		r.Callers(t.Context(), 3).Wait()
		want := []time.Duration{0, 0, 5010 * time.Millisecond, 5110 * time.Millisecond, 5210 * time.Millisecond}
		harness.WantEqual(t, "arrivals", harness.Instants(r.Vendor.Arrivals()), want)
	})
}

// Reported times other than a Retry-After in seconds pause as well.
func TestPauseByEveryKindOfRetryTime(t *testing.T) {
	for name, header := range map[string]http.Header{
		"milliseconds":  {"Retry-After-Ms": {"2000"}},
		"quota's reset": {"X-Ratelimit-Limit": {"10"}, "X-Ratelimit-Remaining": {"0"}, "X-Ratelimit-Reset": {"2"}},
		"IETF draft":    {"Ratelimit": {`"default";r=0;t=2`}, "Ratelimit-Policy": {`"default";q=10;w=60`}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := harness.ObeyingRig(t,
					&testserver.Vendor{Faults: []testserver.Fault{{Last: 1, Do: testserver.Answer, Header: header}}},
					&weir.Transport{Limits: perSecond(1, 1)})
				r.Callers(t.Context(), 2).Wait()
				harness.WantEqual(t, "arrivals", harness.Instants(r.Vendor.Arrivals()), []time.Duration{0, 2 * time.Second, 3 * time.Second})
			})
		})
	}
}

// No answer of a hostile vendor causes a hot loop, or a pause beyond bounds.
func TestHostileRetryAfterNeverHurries(t *testing.T) {
	for _, value := range []string{
		"0", "-1", "-9223372036854775808", "1.5", "", "soon", "NaN", "1e400", "9223372037", "18446744074",
		"99999999999999999999", "Fri, 31 Dec 9999 23:59:59 GMT", "Thu, 01 Jan 1970 00:00:00 GMT", strings.Repeat("9", 1<<20),
	} {
		name := value
		if len(name) > 30 {
			name = name[:30]
		}
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				retry := harness.After(100 * time.Millisecond)
				retry.MaxThrottled = 3
				r := harness.PipeRig(t,
					&testserver.Vendor{Faults: []testserver.Fault{{Do: testserver.Answer, Header: harness.Hints(value)}}},
					&weir.Transport{Retry: retry})
				got := r.Get(t.Context(), "a")
				r.Want("GET", got, 429)
				arrivals := r.Vendor.Arrivals()
				if gap := arrivals.MinGap(); len(arrivals) > 1 && gap < 100*time.Millisecond || got.At > time.Minute {
					t.Errorf("%d arrivals, %v apart, answered at %v, want at least 100ms apart and soon", len(arrivals), gap, got.At)
				}
				for _, lane := range r.Transport.Snapshot() {
					if lane.Paused > time.Hour {
						t.Errorf("paused for %v, want 1h at most", lane.Paused)
					}
				}
			})
		})
	}
}

func TestDeadlineBeforePauseReturnsResponseInHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t,
			&testserver.Vendor{Faults: []testserver.Fault{{Do: testserver.Answer, Header: harness.Hints("2"), Size: 100}}},
			&weir.Transport{Limits: harness.Every(time.Second)})
		got := r.Do(harness.Within(1500*time.Millisecond)(r, r.Request(t.Context(), "a")))
		r.Want("GET", got, 429)
		if got.At != 0 || len(got.Body) != 100 || len(r.Vendor.Arrivals()) != 1 {
			t.Errorf("answered at %v with %d bytes after %d attempts, want at once, 100, 1", got.At, len(got.Body), len(r.Vendor.Arrivals()))
		}
	})
}

func TestMaxWaitShorterThanPauseReturnsResponseInHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t,
			&testserver.Vendor{Faults: []testserver.Fault{{Do: testserver.Answer, Header: harness.Hints("2")}}},
			&weir.Transport{Limits: harness.Every(time.Second)})
		got := r.Get(weir.WithMaxWait(t.Context(), 1500*time.Millisecond), "a")
		r.Want("GET", got, 429)
		if got.At != 0 {
			t.Errorf("answered at %v, want at once", got.At)
		}
	})
}

// If the caller gives up before the next attempt, the error still has the response.
func TestErrorCarriesDiscardedResponse(t *testing.T) {
	tests := []struct {
		name  string
		fault testserver.Fault
		act   func(*harness.Rig, context.CancelFunc)
		want  error
	}{
		{"cancelled in the pause", harness.Refuse(1, 1, "2"), func(_ *harness.Rig, cancel context.CancelFunc) { cancel() }, context.Canceled},
		{"cancelled in the delay", testserver.Fault{Do: testserver.Answer, Status: 503, Header: http.Header{"X-Why": {"y"}}}, func(_ *harness.Rig, cancel context.CancelFunc) { cancel() }, context.Canceled},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tt.fault.Delay = 0
				r := harness.PipeRig(t, &testserver.Vendor{Faults: []testserver.Fault{tt.fault}}, &weir.Transport{Retry: harness.After(time.Hour)})
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(time.Second, func() { tt.act(r, cancel) })
				got := r.Get(ctx, "a")
				var ours *weir.Error
				if !errors.As(got.Err, &ours) || !errors.Is(got.Err, tt.want) {
					t.Fatalf("GET = %d, %v, want *weir.Error of %v", got.Status, got.Err, tt.want)
				}
				status := tt.fault.Status
				if status == 0 {
					status = 429
				}
				for field := range tt.fault.Header {
					if got, want := ours.Header.Get(field), tt.fault.Header.Get(field); got != want {
						t.Errorf("Header %s = %q, want %q", field, got, want)
					}
				}
				if ours.Status != status || ours.Attempts != 1 || ours.Elapsed != time.Second || got.At != time.Second {
					t.Errorf("error at %v = %+v, want status %d, 1 attempt, 1s at 1s", got.At, ours, status)
				}
				if text := ours.Error(); !strings.Contains(text, strconv.Itoa(status)) {
					t.Errorf("Error() = %q, want the status in it", text)
				}
			})
		})
	}
}

// A refusal that must not be repeated is returned, and pauses the lane.
func TestUnavailableWithHintReturnsPostAndPausesLane(t *testing.T) {
	for method, attempts := range map[string]int{http.MethodPost: 1, http.MethodGet: 2} {
		t.Run(method, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := harness.ObeyingRig(t,
					&testserver.Vendor{Faults: []testserver.Fault{{Last: 1, Do: testserver.Answer, Status: 503, Header: harness.Hints("3")}}},
					&weir.Transport{Limits: perSecond(1, 1)})
				req := r.Request(t.Context(), "a")
				req.Method = method
				got := r.Do(req)
				if attempts == 1 {
					r.Want(method, got, 503)
					if got.At != 0 {
						t.Errorf("%s answered at %v, want at once", method, got.At)
					}
				} else {
					r.Want(method, got, 200)
				}
				r.Want("next GET", r.Get(t.Context(), "b"), 200)
				want := append(make([]time.Duration, 1), harness.Spaced(3*time.Second, time.Second, attempts)...)
				harness.WantEqual(t, "arrivals", harness.Instants(r.Vendor.Arrivals()), want)
			})
		})
	}
}

func TestMaxThrottledReturnsResponse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		retry := harness.After(0)
		retry.MaxThrottled = 3
		r := harness.ObeyingRig(t, &testserver.Vendor{Faults: []testserver.Fault{{Do: testserver.Answer, Header: harness.Hints("1")}}},
			&weir.Transport{Limits: harness.Every(700 * time.Millisecond), Retry: retry})
		r.Want("GET", r.Get(t.Context(), "a"), 429)
		harness.WantEqual(t, "arrivals", harness.Instants(r.Vendor.Arrivals()), harness.Spaced(0, time.Second, 4))
	})
}

func TestMaxThrottledDefault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.ObeyingRig(t, &testserver.Vendor{Faults: []testserver.Fault{{Do: testserver.Answer, Header: harness.Hints("1")}}},
			&weir.Transport{Limits: harness.Every(700 * time.Millisecond)})
		r.Want("GET", r.Get(t.Context(), "a"), 429)
		harness.WantEqual(t, "arrivals", harness.Instants(r.Vendor.Arrivals()), harness.Spaced(0, time.Second, 11))
	})
}

// A refusal without a time delays a call for a bounded time, whatever its method.
func TestRefusalsWithoutATimeHoldACallForLessThanHalfAMinute(t *testing.T) {
	var longest time.Duration
	for range 50 {
		synctest.Test(t, func(t *testing.T) {
			r := harness.PipeRig(t, &testserver.Vendor{Faults: []testserver.Fault{{Do: testserver.Answer}}}, new(weir.Transport))
			req := r.Request(t.Context(), "a")
			req.Method = http.MethodPost
			got := r.Do(req)
			r.Want("POST", got, 429)
			r.WantArrivals(8)
			longest = max(longest, got.At)
		})
	}
	if longest > 25400*time.Millisecond || longest < 12*time.Second {
		t.Errorf("the longest of 50 calls took %v, want more than the mean of 12.7s, and 25.4s at most", longest)
	}
}

// Refusals of a paused lane count neither in attempts nor in the budget.
func TestRefusalsLeaveAttemptsAndBudgetAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		retry := harness.After(0)
		retry.Attempts, retry.BudgetShare, retry.BudgetPerSecond = 2, -1, 0.2 // two retries in ten seconds
		r := harness.PipeRig(t,
			&testserver.Vendor{Faults: []testserver.Fault{
				{Last: 6, Do: testserver.Answer, Header: harness.Hints("1")},
				{First: 7, Last: 7, Do: testserver.Answer, Status: 500},
			}},
			&weir.Transport{Retry: retry})
		r.Want("GET", r.Get(t.Context(), "a"), 200)
		if got := len(r.Vendor.Arrivals()); got != 8 {
			t.Errorf("arrivals = %d, want 8", got)
		}
	})
}

func TestCancelInPauseCostsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.ObeyingRig(t,
			&testserver.Vendor{Faults: []testserver.Fault{harness.Refuse(1, 1, "2")}},
			&weir.Transport{Limits: perSecond(10, 1)})
		ctx, cancel := context.WithCancel(t.Context())
		doomed := r.Callers(ctx, 5)
		others := r.Callers(t.Context(), 5)
		time.AfterFunc(time.Second, cancel)
		for _, got := range doomed.Wait() {
			if !errors.Is(got.Err, context.Canceled) || got.At != time.Second {
				t.Errorf("cancelled GET = %d, %v at %v, want canceled at 1s", got.Status, got.Err, got.At)
			}
		}
		others.Wait()
		want := append([]time.Duration{0}, harness.Spaced(2010*time.Millisecond, 100*time.Millisecond, 5)...)
		harness.WantEqual(t, "arrivals", harness.Instants(r.Vendor.Arrivals()), want)
		if got := slices.Max(harness.Instants(r.Vendor.Arrivals())); got != 2410*time.Millisecond {
			t.Errorf("last arrival at %v, want 2.41s", got)
		}
	})
}
