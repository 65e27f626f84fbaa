package lanes_test

import (
	"errors"
	"net/http"
	"strings"
	"sync"
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

// A refusal may concern only a route or a credential.

func TestRefusalOfRoutePausesRouteAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.ObeyingRig(t, &testserver.Vendor{Faults: []testserver.Fault{{Last: 1, Do: testserver.Answer, Header: harness.Hints("5")}}},
			&weir.Transport{Dialect: harness.ScopedBy(headers.ScopeRoute)})
		post := r.Path("/users/2")
		post.Method = http.MethodPost
		got := r.Ask(r.Path("/users/1"), r.Path("/users/2"), r.Path("/orders/1"), post, r.Path("/users"))
		// A route contains no identifiers, but the method.
		harness.WantEqual(t, "answers", got, []time.Duration{5 * time.Second, 5 * time.Second, 0, 0, 0})
	})
}

func TestRefusalOfCredentialPausesCredentialAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.ObeyingRig(t, &testserver.Vendor{Faults: []testserver.Fault{{Last: 1, Do: testserver.Answer, Header: harness.Hints("5")}}},
			&weir.Transport{Dialect: harness.ScopedBy(headers.ScopeCredential)})
		got := r.Ask(r.As("Bearer a"), r.As("Bearer b"), r.As("Bearer a"), r.Request(t.Context(), "none"))
		harness.WantEqual(t, "answers", got, []time.Duration{5 * time.Second, 0, 5 * time.Second, 0})
	})
}

func TestRefusalOfLaneOrGlobalScopePausesLane(t *testing.T) {
	for _, scope := range []headers.Scope{headers.ScopeUnknown, headers.ScopeLane, headers.ScopeGlobal} {
		synctest.Test(t, func(t *testing.T) {
			r := harness.ObeyingRig(t, &testserver.Vendor{Faults: []testserver.Fault{{Last: 1, Do: testserver.Answer, Header: harness.Hints("5")}}},
				&weir.Transport{Dialect: harness.ScopedBy(scope)})
			got := r.Ask(r.Path("/a"), r.Path("/b"))
			harness.WantEqual(t, "answers", got, []time.Duration{5 * time.Second, 5 * time.Second})
		})
	}
}

// Calls of the route in the lane's own line are delayed as well: nothing is sent before a reported
// time.
func TestRefusalOfRouteHoldsItsWaitersInLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t, &testserver.Vendor{Faults: []testserver.Fault{harness.Refuse(1, 1, "5")}},
			&weir.Transport{Limits: harness.Every(100 * time.Millisecond), Dialect: harness.ScopedBy(headers.ScopeRoute)})
		got := r.Ask(r.Path("/a"), r.Path("/a"), r.Path("/b"), r.Path("/a"), r.Path("/b"))
		for _, i := range []int{0, 1, 3} {
			if got[i] < 5010*time.Millisecond {
				t.Errorf("GET %d of the paused route answered at %v, want 5.01s or later", i, got[i])
			}
		}
		// Calls of another route get the permits that these gave back.
		harness.WantEqual(t, "answers of another route", []time.Duration{got[2], got[4]}, harness.Spaced(100*time.Millisecond, 100*time.Millisecond, 2))
		if gap := r.Vendor.Arrivals().MinGap(); gap < 100*time.Millisecond {
			t.Errorf("shortest gap = %v, want 100ms or more", gap)
		}
	})
}

// The longest wait is one for all lines in which a call stands before an attempt: the
// route's, which is paused for 8 s, and the lane's, where two are before it. When the first of
// them leaves, the second one is certain to leave after 10 s. The error says that it was not the
// caller's deadline.
func TestLongestWaitIsOneForRouteAndLane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t, &testserver.Vendor{Faults: []testserver.Fault{harness.Refuse(1, 1, "8")}},
			&weir.Transport{Limits: harness.Every(6 * time.Second), Line: weir.Line{MaxWait: 10 * time.Second}, Dialect: harness.ScopedBy(headers.ScopeRoute), Retry: backoff.None})
		r.Want("first", r.Do(r.Path("/a")), http.StatusTooManyRequests)
		var others sync.WaitGroup
		for range 2 {
			req := r.Path("/b")
			req = req.WithContext(weir.WithMaxWait(req.Context(), time.Hour))
			others.Go(func() { r.Want("other route", r.Do(req), 200) })
			synctest.Wait()
		}
		got := r.Do(r.Path("/a"))
		if !errors.Is(got.Err, shaping.ErrDeadline) || got.At != 6*time.Second {
			t.Errorf("GET of the paused route = %v at %v, want ErrDeadline at 6s: the lane has no permit before 12s", got.Err, got.At)
		} else if !strings.HasSuffix(got.Err.Error(), ": wait exceeds MaxWait") {
			t.Errorf("error text %q does not say that MaxWait ended the wait", got.Err)
		}
		others.Wait()
	})
}

// A refusal may state no time. Calls in line then depart as the new sub-lane learns: if each tried
// the vendor at once, their refusals would count as failed probes, and hold the route for an hour. A
// bucket of one permit may refuse the first in line more than seven times, after which the default gives up: in
// one of 300 runs they then need 20 to 26 s.
func TestRefusalWithoutTimeHoldsItsWaitersInLine(t *testing.T) {
	for _, scope := range []headers.Scope{headers.ScopeRoute, headers.ScopeCredential} {
		synctest.Test(t, func(t *testing.T) {
			vendor := &testserver.Vendor{Limits: []testserver.Limit{testserver.TokenBucket(10, time.Second, 1)}, Service: 20 * time.Millisecond}
			r := harness.PipeRig(t, vendor, &weir.Transport{Dialect: harness.ScopedBy(scope), Retry: &backoff.Policy{MaxThrottled: 20}})
			for _, got := range r.Callers(t.Context(), 64).Wait() {
				if r.Want("GET", got, 200); got.At > 40*time.Second {
					t.Fatalf("GET answered at %v, want all 64 within 40s, at 10/s", got.At)
				}
			}
		})
	}
}

func TestLongPauseOfRouteClosesRouteAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t, &testserver.Vendor{Faults: []testserver.Fault{{Last: 1, Do: testserver.Answer, Header: harness.Hints("600")}}},
			&weir.Transport{Dialect: harness.ScopedBy(headers.ScopeRoute)})
		r.Want("GET /a", r.Do(r.Path("/a")), 429)
		harness.WantPaused(t, "second GET /a", r.Do(r.Path("/a")), 600*time.Second)
		r.Want("GET /b", r.Do(r.Path("/b")), 200)
		time.Sleep(600 * time.Second)
		r.Want("GET /a after the pause", r.Do(r.Path("/a")), 200)
	})
}

// Calls of a route with a sub-lane, and other calls, share one line in order of arrival.
func TestRoutesWithAndWithoutSublaneKeepOrderOfArrival(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.ObeyingRig(t, &testserver.Vendor{Faults: []testserver.Fault{{Last: 1, Do: testserver.Answer, Header: harness.Hints("2")}}},
			&weir.Transport{Limits: harness.Every(time.Second), Dialect: harness.ScopedBy(headers.ScopeRoute)})
		r.Ask(r.Path("/a")) // refused at once, and served after 2 s
		got := r.Ask(r.Path("/a"), r.Path("/a"), r.Path("/a"), r.Path("/a"), r.Path("/b"))
		harness.WantEqual(t, "answers", got, harness.Spaced(3*time.Second, time.Second, 5))
	})
}

// A scope costs the lane's permits once.
func TestWaitInSublaneSpendsNoPermit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.ObeyingRig(t, &testserver.Vendor{Faults: []testserver.Fault{{Last: 1, Do: testserver.Answer, Header: harness.Hints("2")}}},
			&weir.Transport{Limits: []throttle.Limit{throttle.TokenBucket(1, time.Minute, 4)}, Dialect: harness.ScopedBy(headers.ScopeRoute)})
		got := r.Ask(r.Path("/a"), r.Path("/a"), r.Path("/b"))
		if got[2] != 0 || got[0] != 2*time.Second || got[1] != 2*time.Second {
			t.Errorf("answers = %v, want 2s, 2s, 0s", got)
		}
	})
}

// unavailable answers the requests from first to last with a status and a long
// Retry-After.
func unavailable(first, last, status int) testserver.Fault {
	return testserver.Fault{First: first, Last: last, Do: testserver.Answer, Status: status, Header: harness.Hints("86400")}
}

// One route in maintenance for a day closes that route, and none of another tenant. A second route
// in maintenance closes the lane.
func TestLongPauseOfUnknownScopeClosesRouteFirst(t *testing.T) {
	for _, status := range []int{http.StatusServiceUnavailable, http.StatusForbidden} {
		synctest.Test(t, func(t *testing.T) {
			r := harness.PipeRig(t, &testserver.Vendor{Faults: []testserver.Fault{unavailable(1, 1, status), unavailable(4, 4, status)}}, &weir.Transport{})
			r.Want("GET /reports/1", r.GetAs("/reports/1", "a"), status)
			harness.WantPaused(t, "GET /reports/2", r.GetAs("/reports/2", "a"), time.Hour)
			r.Want("GET /payments", r.GetAs("/payments", "a"), 200)
			r.Want("GET /payments of another tenant", r.GetAs("/payments", "b"), 200)
			if paused := r.Transport.Snapshot()[0].Paused; paused != 0 {
				t.Errorf("%d: lane is paused for %v, want not", status, paused)
			}
			r.Want("GET /orders", r.GetAs("/orders", "a"), status)
			harness.WantPaused(t, "GET /payments after a second route", r.GetAs("/payments", "a"), time.Hour)
		})
	}
}

// A route forbidden to one credential is open to others; in maintenance it is closed to all.
func TestLongPauseOfRouteConcernsOthersByItsStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t, &testserver.Vendor{Faults: []testserver.Fault{unavailable(1, 1, 403)}}, &weir.Transport{})
		r.Want("GET /a of one", r.GetAs("/a", "one"), 403)
		harness.WantPaused(t, "second GET /a of one", r.GetAs("/a", "one"), time.Hour)
		r.Want("GET /a of another", r.GetAs("/a", "another"), 200)
	})
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t, &testserver.Vendor{Faults: []testserver.Fault{unavailable(1, 1, 503)}}, &weir.Transport{})
		r.Want("GET /a of one", r.GetAs("/a", "one"), 503)
		harness.WantPaused(t, "GET /a of another", r.GetAs("/a", "another"), time.Hour)
	})
}

// A route that is open again does not count against the lane.
func TestLongPauseThatIsOverAgreesWithNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t, &testserver.Vendor{Faults: []testserver.Fault{unavailable(1, 1, 503), unavailable(2, 2, 503)}}, &weir.Transport{})
		r.Want("GET /a", r.Do(r.Path("/a")), 503)
		time.Sleep(time.Hour)
		r.Want("GET /b", r.Do(r.Path("/b")), 503)
		r.Want("GET /c", r.Do(r.Path("/c")), 200)
	})
}

// Another method of the same path is no second route, nor is a route that an operator has opened.
func TestLongPauseOfSamePathOrBeforeResumeAgreesWithNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t, &testserver.Vendor{Faults: []testserver.Fault{unavailable(1, 2, 503), unavailable(4, 4, 503)}}, &weir.Transport{})
		post := r.Path("/a")
		post.Method = http.MethodPost
		r.Want("GET /a", r.Do(r.Path("/a")), 503)
		r.Want("POST /a", r.Do(post), 503)
		r.Want("GET /b", r.Do(r.Path("/b")), 200)
		r.Resume()
		r.Want("GET /c", r.Do(r.Path("/c")), 503)
		r.Want("GET /b after a second route", r.Do(r.Path("/b")), 200)
	})
}

// A 429 without a scope pauses the lane, as does a pause short enough to wait for.
func TestOtherRefusalsOfUnknownScopeAreTheLanes(t *testing.T) {
	for _, fault := range []testserver.Fault{
		{Last: 1, Do: testserver.Answer, Status: 429, Header: harness.Hints("86400")},
		{Last: 1, Do: testserver.Answer, Status: 503, Header: harness.Hints("60")},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := harness.PipeRig(t, &testserver.Vendor{Faults: []testserver.Fault{fault}}, &weir.Transport{Retry: &backoff.Policy{Attempts: 1, MaxThrottled: -1}})
			r.Do(r.Path("/a"))
			if paused := r.Transport.Snapshot()[0].Paused; paused == 0 {
				t.Errorf("%d: lane is not paused", fault.Status)
			}
		})
	}
}

// A caller that would wait too long for the route gets the response in hand.
func TestMaxWaitShorterThanPauseOfRouteReturnsResponseInHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t, &testserver.Vendor{Faults: []testserver.Fault{{Do: testserver.Answer, Header: harness.Hints("5")}}},
			&weir.Transport{Dialect: harness.ScopedBy(headers.ScopeRoute)})
		got := r.Get(weir.WithMaxWait(t.Context(), 2*time.Second), "a")
		r.Want("GET", got, 429)
		if got.At != 0 {
			t.Errorf("answered at %v, want at once", got.At)
		}
	})
}

func TestEveryFieldOfCredentialsSeparatesThem(t *testing.T) {
	for _, field := range []string{"Authorization", "X-Api-Key", "Api-Key", "Cookie", "X-RapidAPI-Key", "X-Figma-Token", "X-Auth-Token", "Ocp-Apim-Subscription-Key", "x-apikey", "apikey", "X-Api-Token", "APCA-API-KEY-ID"} {
		synctest.Test(t, func(t *testing.T) {
			r := harness.PipeRig(t, &testserver.Vendor{Faults: []testserver.Fault{{Last: 1, Do: testserver.Answer, Header: harness.Hints("5")}}},
				&weir.Transport{Dialect: harness.ScopedBy(headers.ScopeCredential)})
			a, b := r.Request(t.Context(), "a"), r.Request(t.Context(), "b")
			a.Header.Set(field, "session=a")
			b.Header.Set(field, "session=b")
			harness.WantEqual(t, "answers by "+field, r.Ask(a, b), []time.Duration{5 * time.Second, 0})
		})
	}
}

// A vendor that counts each route by itself, as SendGrid and Klaviyo do, reports the quota of the route that was
// called. One that is spent, or small, slows no other route.
func TestReportedQuotaOfARouteIsOfThatRoute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		began, left := time.Now(), map[string]int{"/a": 3, "/b": 1000}
		client := harness.LearningFrom(t, func(req *http.Request) (http.Header, int, error) {
			time.Sleep(50 * time.Millisecond)
			mu.Lock()
			defer mu.Unlock()
			limit := map[string]int{"/a": 3, "/b": 1000}[req.URL.Path]
			left[req.URL.Path]--
			return harness.Reported(limit, left[req.URL.Path], time.Minute-time.Since(began)), http.StatusOK, nil
		})
		client.Transport.(*weir.Transport).Dialect = harness.ScopedBy(headers.ScopeRoute)
		for range 3 {
			harness.Call(client, "http://vendor.example/a", time.Hour)
		}
		spent := time.Now()
		var callers sync.WaitGroup
		for range 8 {
			callers.Go(func() {
				for range 16 {
					harness.Call(client, "http://vendor.example/b", time.Hour)
				}
			})
		}
		callers.Wait()
		if took := time.Since(spent); took > 2*time.Second {
			t.Errorf("128 calls of 50 ms by eight callers took %v while another route was spent, want 0.8s", took)
		}
	})
}

// If there is no room for the sub-lane of a route, its quota is taken for the lane's.
func TestReportedQuotaWithoutRoomIsOfTheLane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		vendor := &testserver.Vendor{
			Limits: []testserver.Limit{testserver.FixedWindow(20, 10*time.Second)}, Styles: []testserver.Style{testserver.XRateLimitEpoch},
			Key: func(req *http.Request) string { return req.URL.Path }, Service: 20 * time.Millisecond,
		}
		r := harness.PipeRig(t, vendor, &weir.Transport{MaxLanes: 1, Dialect: harness.ScopedBy(headers.ScopeRoute)})
		call := func(path string) {
			req := r.Request(t.Context(), "")
			req.URL.Path = path
			r.Want("GET", r.Do(req), http.StatusOK)
		}
		call("/a") // it has the room
		var callers sync.WaitGroup
		for range 8 {
			callers.Go(func() {
				for range 8 {
					call("/b")
				}
			})
		}
		callers.Wait()
		if n, took := vendor.Arrivals().Count(http.StatusTooManyRequests), r.Now(); n > 1 || took > 33*time.Second {
			t.Errorf("65 calls took %v, and %d were refused, want 30 s and 1 at most", took, n)
		}
	})
}
