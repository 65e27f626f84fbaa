package weir_test

import (
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/headers"
	"github.com/weirgo/weir/internal/testserver"
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

func TestRefusalOfRoutePausesRouteAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := pipeRig(t, &testserver.Vendor{Faults: []testserver.Fault{{Last: 1, Do: testserver.Answer, Header: hints("5")}}},
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
		r := pipeRig(t, &testserver.Vendor{Faults: []testserver.Fault{{Last: 1, Do: testserver.Answer, Header: hints("5")}}},
			&weir.Transport{Dialect: scopedBy(headers.ScopeCredential)})
		got := r.ask(r.as("Bearer a"), r.as("Bearer b"), r.as("Bearer a"), r.request(t.Context(), "none"))
		wantEqual(t, "answers", got, []time.Duration{5 * time.Second, 0, 5 * time.Second, 0})
	})
}

func TestRefusalOfLaneOrGlobalScopePausesLane(t *testing.T) {
	for _, scope := range []headers.Scope{headers.ScopeUnknown, headers.ScopeLane, headers.ScopeGlobal} {
		synctest.Test(t, func(t *testing.T) {
			r := pipeRig(t, &testserver.Vendor{Faults: []testserver.Fault{{Last: 1, Do: testserver.Answer, Header: hints("5")}}},
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

// After its pause a route goes on one, two, four, and is then free.
func TestRouteIsFreeAfterItsPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := pipeRig(t,
			&testserver.Vendor{Service: 10 * time.Millisecond, Faults: []testserver.Fault{refuse(1, 1, "2")}},
			&weir.Transport{Dialect: scopedBy(headers.ScopeRoute)})
		reqs := make([]*http.Request, 15)
		for i := range reqs {
			reqs[i] = r.path("/a")
			if i == 0 {
				go r.do(r.path("/a"))
				time.Sleep(20 * time.Millisecond)
			}
		}
		r.ask(reqs...)
		want := append([]time.Duration{0, 2010 * time.Millisecond}, spaced(2020*time.Millisecond, 0, 2)...)
		want = append(want, spaced(2030*time.Millisecond, 0, 4)...)
		want = append(want, spaced(2040*time.Millisecond, 0, 8)...)
		got := instants(r.vendor.Arrivals())
		wantEqual(t, "arrivals", got[:len(want)], want)
		if last := got[len(got)-1]; last > 2100*time.Millisecond {
			t.Errorf("last arrival at %v, want before 2.1s", last)
		}
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
func TestScopedWaitSpendsNoPermit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := pipeRig(t, &testserver.Vendor{Faults: []testserver.Fault{{Last: 1, Do: testserver.Answer, Header: hints("2")}}},
			&weir.Transport{Limits: []throttle.Limit{throttle.TokenBucket(1, time.Minute, 4)}, Dialect: scopedBy(headers.ScopeRoute)})
		got := r.ask(r.path("/a"), r.path("/a"), r.path("/b"))
		if got[2] != 0 || got[0] != 2*time.Second || got[1] != 2*time.Second {
			t.Errorf("answers = %v, want 2s, 2s, 0s", got)
		}
	})
}
