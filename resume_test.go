package weir_test

import (
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/backoff"
	"github.com/weirgo/weir/headers"
	"github.com/weirgo/weir/internal/testserver"
	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// An operator opens a lane that the server has closed.

// resume opens the lane of the rig's server.
func (r *rig) resume() {
	r.Helper()
	if err := r.transport.Resume(r.transport.Snapshot()[0].Key); err != nil {
		r.Errorf("Resume = %v", err)
	}
}

func TestResumeOpensClosedLane(t *testing.T) {
	for name, limits := range map[string][]throttle.Limit{
		"limited": {throttle.TokenBucket(10, time.Second, 5)}, "free": nil,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := pipeRig(t, &testserver.Vendor{Faults: []testserver.Fault{{Last: 1, Do: testserver.Answer, Header: hints("86400")}}},
					&weir.Transport{Limits: limits})
				r.want("refused GET", r.get(t.Context(), "a"), 429)
				time.Sleep(10 * time.Second)
				wantPaused(t, "GET while closed", r.get(t.Context(), "b"), time.Hour-10*time.Second)
				r.resume()
				if paused := r.transport.Snapshot()[0].Paused; paused != 0 {
					t.Errorf("paused for %v after Resume, want not", paused)
				}
				for range 20 {
					r.want("GET after Resume", r.get(t.Context(), "c"), 200)
				}
				if got := r.now(); got > 30*time.Second {
					t.Errorf("20 calls done at %v, want within 20s", got)
				}
			})
		})
	}
}

// Those who wait in line for a short pause go at once.
func TestResumeEndsPauseForThoseInLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := pipeRig(t, &testserver.Vendor{Faults: []testserver.Fault{refuse(1, 1, "60")}},
			&weir.Transport{Limits: []throttle.Limit{throttle.TokenBucket(10, time.Second, 5)}})
		callers := r.callers(t.Context(), 3)
		time.AfterFunc(2*time.Second, r.resume)
		callers.wait()
		want := append(spaced(0, 0, 3), 2*time.Second)
		wantEqual(t, "arrivals", instants(r.vendor.Arrivals()), want)
	})
}

// What a call has spent before a pause stays spent when an operator ends the pause.
func TestResumeAndForgetGrantNothing(t *testing.T) {
	for name, do := range map[string]func(*weir.Transport, string) error{"Resume": (*weir.Transport).Resume, "Forget": (*weir.Transport).Forget} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				costs := []int{600, 1}
				r := pipeRig(t, &testserver.Vendor{Faults: []testserver.Fault{refuse(1, 1, "120")}}, &weir.Transport{
					Limits: []throttle.Limit{throttle.LeakyBucket(10, time.Second)}, Retry: backoff.None,
					Cost: func(*http.Request, throttle.Limit) int { c := costs[0]; costs = costs[1:]; return c },
				})
				r.want("refused GET", r.get(t.Context(), "a"), 429)
				time.Sleep(time.Second)
				if err := do(r.transport, r.transport.Snapshot()[0].Key); err != nil {
					t.Fatal(err)
				}
				r.want("next GET", r.get(t.Context(), "b"), 200)
				wantEqual(t, "arrivals", instants(r.vendor.Arrivals()), []time.Duration{0, time.Minute})
			})
		})
	}
}

func TestResumeOpensRoutesAndCredentials(t *testing.T) {
	for _, scope := range []headers.Scope{headers.ScopeRoute, headers.ScopeCredential} {
		synctest.Test(t, func(t *testing.T) {
			r := pipeRig(t, &testserver.Vendor{Faults: []testserver.Fault{{Last: 1, Do: testserver.Answer, Header: hints("600")}}},
				&weir.Transport{Dialect: scopedBy(scope)})
			r.want("refused GET", r.getAs("/a", "Bearer a"), 429)
			wantPaused(t, "GET while closed", r.getAs("/a", "Bearer a"), 600*time.Second)
			r.resume()
			r.want("GET after Resume", r.getAs("/a", "Bearer a"), 200)
		})
	}
}

func TestResumeOfKeyBeyondMaxLanesOpensThatKeyAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := pipeRig(t, &testserver.Vendor{Faults: []testserver.Fault{{First: 3, Last: 4, Do: testserver.Answer, Header: hints("600")}}},
			&weir.Transport{Limits: []throttle.Limit{throttle.TokenBucket(1, time.Hour, 100)}, MaxLanes: 2, Key: weir.ByHeader("Authorization")})
		r.want("first", r.do(r.as("first")), 200)
		r.want("second", r.do(r.as("second")), 200)
		keyed := weir.ByHeader("Authorization")
		for _, account := range []string{"a", "b"} {
			r.want("refused "+account, r.do(r.as(account)), 429)
			wantPaused(t, account+" while closed", r.do(r.as(account)), 600*time.Second)
		}
		if err := r.transport.Resume(keyed(r.as("a"))); err != nil {
			t.Errorf("Resume = %v", err)
		}
		r.want("a after Resume", r.do(r.as("a")), 200)
		wantPaused(t, "b after a's Resume", r.do(r.as("b")), 600*time.Second)
		if err := r.transport.Resume(""); err != nil {
			t.Errorf(`Resume("") = %v`, err)
		}
		r.want(`b after Resume("")`, r.do(r.as("b")), 200)
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
