package weir_test

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
	"github.com/weirgo/weir/internal/testserver"
	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// A refusal may concern a route or a credential only.

func scopedBy(scope headers.Scope) *headers.Dialect { return &headers.Dialect{Scope: scope} }

// ask sends requests, each from a goroutine of its own, in order, and returns
// when they were answered.
func (r *rig) ask(reqs ...*http.Request) []time.Duration {
	var wg sync.WaitGroup
	at := make([]time.Duration, len(reqs))
	for i, req := range reqs {
		wg.Go(func() {
			got := r.do(req)
			r.want(req.Method+" "+req.URL.Path, got, 200)
			at[i] = got.at
		})
		synctest.Wait()
	}
	wg.Wait()
	return at
}

// path returns a GET of a path.
func (r *rig) path(path string) *http.Request {
	req := r.request(r.Context(), path)
	req.URL.Path = path
	return req
}

func (r *rig) as(credential string) *http.Request {
	req := r.request(r.Context(), credential)
	req.Header.Set("Authorization", credential)
	return req
}

// getAs asks for a path with a credential.
func (r *rig) getAs(path, credential string) answer {
	req := r.as(credential)
	req.URL.Path = path
	return r.do(req)
}

func TestRefusalOfRoutePausesRouteAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := obeyingRig(t, &testserver.Vendor{Faults: []testserver.Fault{{Last: 1, Do: testserver.Answer, Header: hints("5")}}},
			&weir.Transport{Dialect: scopedBy(headers.ScopeRoute)})
		post := r.path("/users/2")
		post.Method = http.MethodPost
		got := r.ask(r.path("/users/1"), r.path("/users/2"), r.path("/orders/1"), post, r.path("/users"))
		// Identifiers are no part of a route; the method is.
		wantEqual(t, "answers", got, []time.Duration{5 * time.Second, 5 * time.Second, 0, 0, 0})
	})
}

func TestRefusalOfCredentialPausesCredentialAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := obeyingRig(t, &testserver.Vendor{Faults: []testserver.Fault{{Last: 1, Do: testserver.Answer, Header: hints("5")}}},
			&weir.Transport{Dialect: scopedBy(headers.ScopeCredential)})
		got := r.ask(r.as("Bearer a"), r.as("Bearer b"), r.as("Bearer a"), r.request(t.Context(), "none"))
		wantEqual(t, "answers", got, []time.Duration{5 * time.Second, 0, 5 * time.Second, 0})
	})
}

func TestRefusalOfLaneOrGlobalScopePausesLane(t *testing.T) {
	for _, scope := range []headers.Scope{headers.ScopeUnknown, headers.ScopeLane, headers.ScopeGlobal} {
		synctest.Test(t, func(t *testing.T) {
			r := obeyingRig(t, &testserver.Vendor{Faults: []testserver.Fault{{Last: 1, Do: testserver.Answer, Header: hints("5")}}},
				&weir.Transport{Dialect: scopedBy(scope)})
			got := r.ask(r.path("/a"), r.path("/b"))
			wantEqual(t, "answers", got, []time.Duration{5 * time.Second, 5 * time.Second})
		})
	}
}

// Those of the route who stand in the lane's own line are held as well: nothing
// is sent before a told time.
func TestRefusalOfRouteHoldsItsWaitersInLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := pipeRig(t, &testserver.Vendor{Faults: []testserver.Fault{refuse(1, 1, "5")}},
			&weir.Transport{Limits: every(100 * time.Millisecond), Dialect: scopedBy(headers.ScopeRoute)})
		got := r.ask(r.path("/a"), r.path("/a"), r.path("/b"), r.path("/a"), r.path("/b"))
		for _, i := range []int{0, 1, 3} {
			if got[i] < 5010*time.Millisecond {
				t.Errorf("GET %d of the paused route answered at %v, want 5.01s or later", i, got[i])
			}
		}
		// Those of another route have the permits that these gave back.
		wantEqual(t, "answers of another route", []time.Duration{got[2], got[4]}, spaced(100*time.Millisecond, 100*time.Millisecond, 2))
		if gap := r.vendor.Arrivals().MinGap(); gap < 100*time.Millisecond {
			t.Errorf("shortest gap = %v, want 100ms or more", gap)
		}
	})
}

// The longest wait is one for all lines in which a call stands before an attempt: the
// route's, which is paused for 8 s, and then the lane's, where two are before it. The error
// says that it was not the caller's deadline.
func TestLongestWaitIsOneForRouteAndLane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := pipeRig(t, &testserver.Vendor{Faults: []testserver.Fault{refuse(1, 1, "8")}},
			&weir.Transport{Limits: every(6 * time.Second), Line: weir.Line{MaxWait: 10 * time.Second}, Dialect: scopedBy(headers.ScopeRoute), Retry: backoff.None})
		r.want("first", r.do(r.path("/a")), http.StatusTooManyRequests)
		var others sync.WaitGroup
		for range 2 {
			req := r.path("/b")
			req = req.WithContext(weir.WithMaxWait(req.Context(), time.Hour))
			others.Go(func() { r.want("other route", r.do(req), 200) })
			synctest.Wait()
		}
		got := r.do(r.path("/a"))
		if !errors.Is(got.err, shaping.ErrDeadline) || got.at != 8010*time.Millisecond {
			t.Errorf("GET of the paused route = %v at %v, want ErrDeadline at 8.01s: the lane has no permit before 12s", got.err, got.at)
		} else if !strings.HasSuffix(got.err.Error(), ": wait exceeds MaxWait") {
			t.Errorf("error text %q does not say that MaxWait ended the wait", got.err)
		}
		others.Wait()
	})
}

func TestLongPauseOfRouteClosesRouteAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := pipeRig(t, &testserver.Vendor{Faults: []testserver.Fault{{Last: 1, Do: testserver.Answer, Header: hints("600")}}},
			&weir.Transport{Dialect: scopedBy(headers.ScopeRoute)})
		r.want("GET /a", r.do(r.path("/a")), 429)
		wantPaused(t, "second GET /a", r.do(r.path("/a")), 600*time.Second)
		r.want("GET /b", r.do(r.path("/b")), 200)
		time.Sleep(600 * time.Second)
		r.want("GET /a after the pause", r.do(r.path("/a")), 200)
	})
}

// A scope costs the lane's permits once.
func TestWaitInSublaneSpendsNoPermit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := obeyingRig(t, &testserver.Vendor{Faults: []testserver.Fault{{Last: 1, Do: testserver.Answer, Header: hints("2")}}},
			&weir.Transport{Limits: []throttle.Limit{throttle.TokenBucket(1, time.Minute, 4)}, Dialect: scopedBy(headers.ScopeRoute)})
		got := r.ask(r.path("/a"), r.path("/a"), r.path("/b"))
		if got[2] != 0 || got[0] != 2*time.Second || got[1] != 2*time.Second {
			t.Errorf("answers = %v, want 2s, 2s, 0s", got)
		}
	})
}

// unavailable answers the requests from first to last with a status and a long
// Retry-After.
func unavailable(first, last, status int) testserver.Fault {
	return testserver.Fault{First: first, Last: last, Do: testserver.Answer, Status: status, Header: hints("86400")}
}

// One route in maintenance for a day closes that route, and none of another
// tenant. The lane closes when a second route says the same.
func TestLongPauseOfUnknownScopeClosesRouteFirst(t *testing.T) {
	for _, status := range []int{http.StatusServiceUnavailable, http.StatusForbidden} {
		synctest.Test(t, func(t *testing.T) {
			r := pipeRig(t, &testserver.Vendor{Faults: []testserver.Fault{unavailable(1, 1, status), unavailable(4, 4, status)}}, &weir.Transport{})
			r.want("GET /reports/1", r.getAs("/reports/1", "a"), status)
			wantPaused(t, "GET /reports/2", r.getAs("/reports/2", "a"), time.Hour)
			r.want("GET /payments", r.getAs("/payments", "a"), 200)
			r.want("GET /payments of another tenant", r.getAs("/payments", "b"), 200)
			if paused := r.transport.Snapshot()[0].Paused; paused != 0 {
				t.Errorf("%d: lane is paused for %v, want not", status, paused)
			}
			r.want("GET /orders", r.getAs("/orders", "a"), status)
			wantPaused(t, "GET /payments after a second route", r.getAs("/payments", "a"), time.Hour)
		})
	}
}

// A route that is forbidden to one credential is open to others, and in
// maintenance it is closed to all.
func TestLongPauseOfRouteConcernsOthersByItsStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := pipeRig(t, &testserver.Vendor{Faults: []testserver.Fault{unavailable(1, 1, 403)}}, &weir.Transport{})
		r.want("GET /a of one", r.getAs("/a", "one"), 403)
		wantPaused(t, "second GET /a of one", r.getAs("/a", "one"), time.Hour)
		r.want("GET /a of another", r.getAs("/a", "another"), 200)
	})
	synctest.Test(t, func(t *testing.T) {
		r := pipeRig(t, &testserver.Vendor{Faults: []testserver.Fault{unavailable(1, 1, 503)}}, &weir.Transport{})
		r.want("GET /a of one", r.getAs("/a", "one"), 503)
		wantPaused(t, "GET /a of another", r.getAs("/a", "another"), time.Hour)
	})
}

// A route that is open again is no witness against the lane.
func TestLongPauseThatIsOverAgreesWithNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := pipeRig(t, &testserver.Vendor{Faults: []testserver.Fault{unavailable(1, 1, 503), unavailable(2, 2, 503)}}, &weir.Transport{})
		r.want("GET /a", r.do(r.path("/a")), 503)
		time.Sleep(time.Hour)
		r.want("GET /b", r.do(r.path("/b")), 503)
		r.want("GET /c", r.do(r.path("/c")), 200)
	})
}

// Another method of the same path is no second route, and a route that an
// operator has opened is none either.
func TestLongPauseOfSamePathOrBeforeResumeAgreesWithNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := pipeRig(t, &testserver.Vendor{Faults: []testserver.Fault{unavailable(1, 2, 503), unavailable(4, 4, 503)}}, &weir.Transport{})
		post := r.path("/a")
		post.Method = http.MethodPost
		r.want("GET /a", r.do(r.path("/a")), 503)
		r.want("POST /a", r.do(post), 503)
		r.want("GET /b", r.do(r.path("/b")), 200)
		r.resume()
		r.want("GET /c", r.do(r.path("/c")), 503)
		r.want("GET /b after a second route", r.do(r.path("/b")), 200)
	})
}

// What a 429 says of no scope is still the lane's, and a pause that callers wait
// through as well.
func TestOtherRefusalsOfUnknownScopeAreTheLanes(t *testing.T) {
	for _, fault := range []testserver.Fault{
		{Last: 1, Do: testserver.Answer, Status: 429, Header: hints("86400")},
		{Last: 1, Do: testserver.Answer, Status: 503, Header: hints("60")},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := pipeRig(t, &testserver.Vendor{Faults: []testserver.Fault{fault}}, &weir.Transport{Retry: &backoff.Policy{Attempts: 1, MaxThrottled: -1}})
			r.do(r.path("/a"))
			if paused := r.transport.Snapshot()[0].Paused; paused == 0 {
				t.Errorf("%d: lane is not paused", fault.Status)
			}
		})
	}
}

// Who would wait for the route for too long gets the response in hand.
func TestMaxWaitShorterThanPauseOfRouteReturnsResponseInHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := pipeRig(t, &testserver.Vendor{Faults: []testserver.Fault{{Do: testserver.Answer, Header: hints("5")}}},
			&weir.Transport{Dialect: scopedBy(headers.ScopeRoute)})
		got := r.get(weir.WithMaxWait(t.Context(), 2*time.Second), "a")
		r.want("GET", got, 429)
		if got.at != 0 {
			t.Errorf("answered at %v, want at once", got.at)
		}
	})
}

func TestEveryFieldOfCredentialsTellsThemApart(t *testing.T) {
	for _, field := range []string{"Authorization", "X-Api-Key", "Api-Key", "Cookie"} {
		synctest.Test(t, func(t *testing.T) {
			r := pipeRig(t, &testserver.Vendor{Faults: []testserver.Fault{{Last: 1, Do: testserver.Answer, Header: hints("5")}}},
				&weir.Transport{Dialect: scopedBy(headers.ScopeCredential)})
			a, b := r.request(t.Context(), "a"), r.request(t.Context(), "b")
			a.Header.Set(field, "session=a")
			b.Header.Set(field, "session=b")
			wantEqual(t, "answers by "+field, r.ask(a, b), []time.Duration{5 * time.Second, 0})
		})
	}
}
