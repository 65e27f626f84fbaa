package pauses_test

import (
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/backoff"
	"github.com/weirgo/weir/headers"
	"github.com/weirgo/weir/internal/acceptance/harness"
	"github.com/weirgo/weir/internal/testserver"
	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// An operator opens a lane that the server has closed.

func TestResumeOpensClosedLane(t *testing.T) {
	for name, limits := range map[string][]throttle.Limit{
		"limited": {throttle.TokenBucket(10, time.Second, 5)}, "free": nil,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := harness.PipeRig(t, &testserver.Vendor{Faults: []testserver.Fault{{Last: 1, Do: testserver.Answer, Header: harness.Hints("86400")}}},
					&weir.Transport{Limits: limits})
				r.Want("refused GET", r.Get(t.Context(), "a"), 429)
				time.Sleep(10 * time.Second)
				harness.WantPaused(t, "GET while closed", r.Get(t.Context(), "b"), time.Hour-10*time.Second)
				r.Resume()
				if paused := r.Transport.Snapshot()[0].Paused; paused != 0 {
					t.Errorf("paused for %v after Resume, want not", paused)
				}
				for range 20 {
					r.Want("GET after Resume", r.Get(t.Context(), "c"), 200)
				}
				if got := r.Now(); got > 30*time.Second {
					t.Errorf("20 calls done at %v, want within 20s", got)
				}
			})
		})
	}
}

// Calls that wait for a short pause depart at once.
func TestResumeEndsPauseForThoseInLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t, &testserver.Vendor{Faults: []testserver.Fault{harness.Refuse(1, 1, "60")}},
			&weir.Transport{Limits: []throttle.Limit{throttle.TokenBucket(10, time.Second, 5)}})
		callers := r.Callers(t.Context(), 3)
		time.AfterFunc(2*time.Second, r.Resume)
		callers.Wait()
		want := append(harness.Spaced(0, 0, 3), 2*time.Second)
		harness.WantEqual(t, "arrivals", harness.Instants(r.Vendor.Arrivals()), want)
	})
}

// A refusal that also reports that nothing is left until its reset is over with the pause: those in
// line depart, and later calls too.
func TestResumeEndsAReportedReset(t *testing.T) {
	for _, retryAfter := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			var answers atomic.Int64
			vendor := &testserver.Vendor{Service: 50 * time.Millisecond, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				h, left, reset, status := w.Header(), "90", "10", http.StatusOK
				if answers.Add(1) == 10 {
					left, reset, status = "0", "1200", http.StatusTooManyRequests
					if retryAfter {
						h.Set("Retry-After", "1200")
					}
				}
				h.Set("X-RateLimit-Limit", "100")
				h.Set("X-RateLimit-Remaining", left)
				h.Set("X-RateLimit-Reset", reset)
				w.WriteHeader(status)
			})}
			r := harness.PipeRig(t, vendor, &weir.Transport{MaxPause: time.Hour})
			time.AfterFunc(10*time.Second, r.Resume)
			for range 20 {
				r.Want("GET", r.Get(t.Context(), "a"), 200)
			}
			if took := r.Now(); took < 10*time.Second || took > 12*time.Second {
				t.Errorf("with Retry-After: %v, 20 calls took %v, want 10 s to 12 s", retryAfter, took)
			}
		})
	}
}

// Permits spent before a pause stay spent when an operator ends it.
func TestResumeAndForgetGrantNothing(t *testing.T) {
	for name, do := range map[string]func(*weir.Transport, string) error{"Resume": (*weir.Transport).Resume, "Forget": (*weir.Transport).Forget} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				costs := []int{600, 1}
				r := harness.PipeRig(t, &testserver.Vendor{Faults: []testserver.Fault{harness.Refuse(1, 1, "120")}}, &weir.Transport{
					Limits: []throttle.Limit{throttle.LeakyBucket(10, time.Second)}, Retry: backoff.None,
					Cost: func(*http.Request, throttle.Limit) int { c := costs[0]; costs = costs[1:]; return c },
				})
				r.Want("refused GET", r.Get(t.Context(), "a"), 429)
				time.Sleep(time.Second)
				if err := do(r.Transport, r.Transport.Snapshot()[0].Key); err != nil {
					t.Fatal(err)
				}
				r.Want("next GET", r.Get(t.Context(), "b"), 200)
				harness.WantEqual(t, "arrivals", harness.Instants(r.Vendor.Arrivals()), []time.Duration{0, time.Minute})
			})
		})
	}
}

func TestResumeOpensRoutesAndCredentials(t *testing.T) {
	for _, scope := range []headers.Scope{headers.ScopeRoute, headers.ScopeCredential} {
		synctest.Test(t, func(t *testing.T) {
			r := harness.PipeRig(t, &testserver.Vendor{Faults: []testserver.Fault{{Last: 1, Do: testserver.Answer, Header: harness.Hints("600")}}},
				&weir.Transport{Dialect: harness.ScopedBy(scope)})
			r.Want("refused GET", r.GetAs("/a", "Bearer a"), 429)
			harness.WantPaused(t, "GET while closed", r.GetAs("/a", "Bearer a"), 600*time.Second)
			r.Resume()
			r.Want("GET after Resume", r.GetAs("/a", "Bearer a"), 200)
		})
	}
}

func TestResumeOfKeyBeyondMaxLanesOpensThatKeyAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t, &testserver.Vendor{Faults: []testserver.Fault{{First: 3, Last: 4, Do: testserver.Answer, Header: harness.Hints("600")}}},
			&weir.Transport{Limits: []throttle.Limit{throttle.TokenBucket(1, time.Hour, 100)}, MaxLanes: 2, Key: weir.ByHeader("Authorization")})
		r.Want("first", r.Do(r.As("first")), 200)
		r.Want("second", r.Do(r.As("second")), 200)
		keyed := weir.ByHeader("Authorization")
		for _, account := range []string{"a", "b"} {
			r.Want("refused "+account, r.Do(r.As(account)), 429)
			harness.WantPaused(t, account+" while closed", r.Do(r.As(account)), 600*time.Second)
		}
		if err := r.Transport.Resume(keyed(r.As("a"))); err != nil {
			t.Errorf("Resume = %v", err)
		}
		r.Want("a after Resume", r.Do(r.As("a")), 200)
		harness.WantPaused(t, "b after a's Resume", r.Do(r.As("b")), 600*time.Second)
		if err := r.Transport.Resume(""); err != nil {
			t.Errorf(`Resume("") = %v`, err)
		}
		r.Want(`b after Resume("")`, r.Do(r.As("b")), 200)
	})
}

// A pause by hand of one of many keys that share a lane delays no other, as a refusal does.
func TestPauseOfKeyBeyondMaxLanesPausesThatKeyAlone(t *testing.T) {
	for _, d := range []time.Duration{time.Minute, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			r := harness.PipeRig(t, &testserver.Vendor{}, &weir.Transport{MaxLanes: 1})
			pauses := func(what string, want bool, key string) {
				t.Helper()
				if f, _ := r.Transport.Forecast(harness.GetOf(key)); (f.Wait > 0) != want {
					t.Errorf("%s of %v: %q waits for %v", what, d, key, f.Wait)
				}
			}
			do := func(err error) {
				t.Helper()
				if err != nil {
					t.Error(err)
				}
			}
			for _, host := range []string{"first", "a", "b"} {
				r.Want(host, r.To(host), 200)
			}
			do(r.Transport.Pause("a", d))
			pauses("Pause(a)", true, "a")
			pauses("Pause(a)", false, "b")
			r.Want("b in a's pause", r.To("b"), 200)
			do(r.Transport.Resume("b"))
			pauses("Resume(b)", true, "a")
			do(r.Transport.Resume("a"))
			pauses("Resume(a)", false, "a")
			r.Want("a after its pause", r.To("a"), 200)
			do(r.Transport.Pause("", d))
			pauses(`Pause("")`, true, "b")
			do(r.Transport.Resume(""))
			r.Want(`b after Resume("")`, r.To("b"), 200)
		})
	}
}

// Also for a lane that there is.
func TestOperatorIsToldOfTheClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t, &testserver.Vendor{}, &weir.Transport{})
		r.Want("GET", r.Get(t.Context(), "a"), 200)
		key, transport := r.Keys()[0], r.Transport
		transport.Close()
		for i, err := range []error{transport.Resume(key), transport.Pause(key, time.Second), transport.Forget(key)} {
			if !errors.Is(err, shaping.ErrClosed) {
				t.Errorf("%d: after Close = %v, want ErrClosed", i, err)
			}
		}
	})
}

func TestResumeSaysWhyThereIsNoLane(t *testing.T) {
	transport := &weir.Transport{Limits: []throttle.Limit{{Permits: -1}}}
	if err := transport.Resume("a"); err == nil {
		t.Error("Resume of a lane whose limits do not validate = nil, want an error")
	}
	transport.Close()
	if err := transport.Resume("a"); !errors.Is(err, shaping.ErrClosed) {
		t.Errorf("Resume after Close = %v, want ErrClosed", err)
	}
}
