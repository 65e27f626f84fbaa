package limits_test

import (
	"io"
	"math"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/acceptance/harness"
	"github.com/weirgo/weir/internal/testserver"
	"github.com/weirgo/weir/throttle"
)

// Tokens of a language model: an estimate is reserved before the call, and the
// actual cost settled after it.

// modelRig has a limit of 1000 tokens a minute, all at once. A request's estimate is in its header.
func modelRig(t *testing.T, transport *weir.Transport) *harness.Rig {
	transport.Limits = []throttle.Limit{
		throttle.TokenBucket(100, time.Second, 100),
		harness.Named(throttle.TokenBucket(1000, time.Minute, 1000), "tokens"),
	}
	transport.Cost = func(req *http.Request, l throttle.Limit) int {
		if l.Unit == "tokens" {
			n, _ := strconv.Atoi(req.Header.Get("Estimate"))
			return n
		}
		return 1
	}
	return harness.PipeRig(t, &testserver.Vendor{}, transport)
}

// A token is earned every 60 ms.
const token = 60 * time.Millisecond

// The debt of an overspend delays waiting and later calls by exactly the time to earn it, however
// large it is.
func TestOverspendDelaysLineByItsDebt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := modelRig(t, new(weir.Transport))
		first := r.Estimated(1000)
		done := make(chan bool)
		for range 2 {
			go func() { r.Estimated(100); done <- true }()
			synctest.Wait()
		}
		time.Sleep(3 * time.Second)
		r.Settle(first, 1000+2500)
		<-done
		<-done
		want := []time.Duration{0, (2500 + 100) * token, (2500 + 200) * token}
		harness.WantEqual(t, "arrivals", harness.Instants(r.Vendor.Arrivals()), want)
	})
}

// An underspend lets waiting calls depart earlier, at once.
func TestUnderspendLetsLineGoEarlier(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := modelRig(t, new(weir.Transport))
		first := r.Estimated(1000)
		done := make(chan bool)
		for range 2 {
			go func() { r.Estimated(500); done <- true }()
			synctest.Wait()
		}
		time.Sleep(3 * time.Second) // 50 tokens are earned
		r.Settle(first, 400)        // and 600 come back
		<-done
		<-done
		want := []time.Duration{0, 3 * time.Second, 3*time.Second + 350*token}
		harness.WantEqual(t, "arrivals", harness.Instants(r.Vendor.Arrivals()), want)
	})
}

// Permits earned back meanwhile are not given back again.
func TestLateUnderspendGivesBackNoMoreThanIsMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := modelRig(t, new(weir.Transport))
		first := r.Estimated(1000)
		time.Sleep(900 * token)
		r.Settle(first, 0)
		start := r.Now()
		r.Estimated(1000)
		r.Estimated(100)
		harness.WantEqual(t, "arrivals", harness.Instants(r.Vendor.Arrivals()), []time.Duration{0, start, start + 100*token})
	})
}

// Requests and tokens are settled separately, and the zero unit is requests.
func TestUnitsAreSettledEachOnItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := modelRig(t, new(weir.Transport))
		resp := r.Estimated(1000)
		if err := weir.Settle(resp, "", 60); err != nil {
			t.Errorf("Settle of the zero unit = %v", err)
		}
		if err := weir.Settle(resp, "requests", 60); err == nil {
			t.Error("Settle of requests after the zero unit = nil, want an error")
		}
		r.Settle(resp, 300)
		limits := r.Transport.Snapshot()[0].Limits
		if limits[0].Headroom != 40 || limits[1].Headroom != 700 {
			t.Errorf("headroom = %v requests, %v tokens, want 40 and 700", limits[0].Headroom, limits[1].Headroom)
		}
	})
}

// The response may have passed through any wrapper of the client.
func TestSettleFindsTheCallThroughClient(t *testing.T) {
	for name, change := range map[string]func(*harness.Rig, *http.Request) *http.Request{
		"client timeout": func(r *harness.Rig, req *http.Request) *http.Request {
			r.Client.Timeout = time.Minute
			return req
		},
		"client trace": func(_ *harness.Rig, req *http.Request) *http.Request {
			return req.WithContext(httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) {}}))
		},
		"both": func(r *harness.Rig, req *http.Request) *http.Request {
			r.Client.Timeout = time.Minute
			return req.WithContext(httptrace.WithClientTrace(req.Context(), new(httptrace.ClientTrace)))
		},
		"unguarded": func(r *harness.Rig, req *http.Request) *http.Request {
			r.Transport.UnguardedResends = true
			return req
		},
		"base that clones": func(r *harness.Rig, req *http.Request) *http.Request {
			base := r.Transport.Base
			r.Transport.Base = harness.BaseFunc(func(req *http.Request) (*http.Response, error) {
				return base.RoundTrip(req.Clone(req.Context()))
			})
			return req
		},
		"retry": func(r *harness.Rig, req *http.Request) *http.Request {
			r.Vendor.SetFaults(testserver.Fault{Last: 1, Do: testserver.Answer, Status: 500})
			return req
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := modelRig(t, new(weir.Transport))
				req := r.Request(t.Context(), "a")
				req.Header.Set("Estimate", "100")
				resp, err := r.Client.Do(change(r, req))
				if err != nil {
					t.Fatal(err)
				}
				body, err := io.ReadAll(resp.Body)
				if err != nil || len(body) == 0 {
					t.Errorf("body = %q, %v", body, err)
				}
				resp.Body.Close()
				before := r.Transport.Snapshot()[0].Limits[1].Headroom
				r.Settle(resp, 300)
				if got := r.Transport.Snapshot()[0].Limits[1].Headroom - before; math.Abs(got+200) > 1e-6 {
					t.Errorf("headroom changed by %v, want -200", got)
				}
			})
		})
	}
}

// A lane may be removed before a long stream is read. An overspend is charged to the lane that its
// key has then; an underspend was earned back.
func TestOverspendIsChargedAlthoughLaneHasGone(t *testing.T) {
	for name, tt := range map[string]struct {
		cost int
		want float64 // headroom
	}{"overspend": {1300, 650}, "underspend": {100, 950}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := modelRig(t, &weir.Transport{MaxLanes: 1})
				r.Transport.Limits[1] = harness.Named(throttle.SlidingLog(1000, time.Minute), "tokens")
				stream := r.Estimated(1000)
				time.Sleep(time.Minute) // the lane is whole
				r.Want("GET of another", r.To("another.test"), 200)
				harness.WantEqual(t, "lanes", r.Keys(), []string{"another.test"})
				time.Sleep(time.Minute)
				if name == "underspend" {
					// Charged by another call, so the stream may not give it back.
					r.Estimated(50)
				}
				r.Settle(stream, tt.cost)
				harness.WantEqual(t, "lanes", r.Keys(), []string{"vendor.test"})
				if name == "overspend" {
					r.Estimated(50)
				}
				if got := r.Transport.Snapshot()[0].Limits[1].Headroom; got != tt.want {
					t.Errorf("headroom = %v tokens, want %v", got, tt.want)
				}
			})
		})
	}
}

// Limits that change between a call and its settlement keep the sum correct.
func TestSettleAfterSetLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := modelRig(t, new(weir.Transport))
		resp := r.Estimated(1000)
		requests, tokens := r.Transport.Limits[0], r.Transport.Limits[1]
		tokens.Permits = 2000
		if err := r.Transport.SetLimits(tokens, requests); err != nil {
			t.Fatal(err)
		}
		r.Settle(resp, 1500)
		r.Estimated(100)
		want := (500 + 100) * token / 2
		harness.WantEqual(t, "arrivals", harness.Instants(r.Vendor.Arrivals()), []time.Duration{0, want})
	})
}

// Settlements and changes of limits at once: the race detector is the judge.
func TestSettleWhileLimitsChange(t *testing.T) {
	transport := &weir.Transport{Base: harness.Stub{}, Limits: []throttle.Limit{harness.Named(throttle.TokenBucket(1e6, time.Second, 1e6), "tokens")},
		Cost: func(*http.Request, throttle.Limit) int { return 10 }}
	defer transport.Close()
	var wg sync.WaitGroup
	for worker := range 4 {
		wg.Go(func() {
			for i := range 200 {
				resp, err := transport.RoundTrip(harness.GetOf("vendor.test"))
				if err != nil {
					t.Error(err)
					return
				}
				if err := weir.Settle(resp, "tokens", i%20); err != nil {
					t.Error(err)
				}
				if worker == 0 {
					limits := []throttle.Limit{harness.Named(throttle.TokenBucket(1e6+i, time.Second, 1e6), "tokens"), throttle.TokenBucket(1e6, time.Second, 1e6)}
					if err := transport.SetLimits(limits[:1+i%2]...); i%2 == 1 && err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
}
