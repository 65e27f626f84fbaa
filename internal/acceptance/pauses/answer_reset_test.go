package pauses_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/headers"
	"github.com/weirgo/weir/internal/acceptance/harness"
	"github.com/weirgo/weir/internal/testserver"
	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// fivePerTen is a vendor of five calls in a window of ten seconds, and reports how many are left.
func fivePerTen() *testserver.Vendor {
	return &testserver.Vendor{
		Limits: []testserver.Limit{testserver.FixedWindow(5, 10*time.Second)},
		Styles: []testserver.Style{testserver.XRateLimitEpoch, testserver.RetryAfterSeconds},
	}
}

// waitsForReset is a rig whose lanes wait for resets, with the given Learn.
func waitsForReset(t *testing.T, vendor *testserver.Vendor, learns weir.Learning, transport *weir.Transport) *harness.Rig {
	r := harness.PipeRig(t, vendor, transport)
	transport.Learn, transport.WaitForReset = learns, true
	return r
}

// After one answer with the number left, no call is refused. That many calls depart, and the others
// 20 ms after the reset, again as many as the window has. Resets are in whole seconds, here and in
// Date: after 10.02 s the next is 10 s away.
func TestSpentQuotaIsWaitedFor(t *testing.T) {
	tests := map[string]struct {
		limits      []throttle.Limit
		apart, last time.Duration
	}{
		"no limit":                 {nil, 0, 20040 * time.Millisecond},
		"a limit that is too high": {[]throttle.Limit{throttle.TokenBucket(100, time.Second, 100)}, 10 * time.Millisecond, 20080 * time.Millisecond},
	}
	for name, test := range tests {
		synctest.Test(t, func(t *testing.T) {
			r := waitsForReset(t, fivePerTen(), weir.LearnOff, &weir.Transport{Limits: test.limits})
			r.Want("first GET", r.Get(t.Context(), ""), 200)
			for _, a := range r.Callers(t.Context(), 11).Wait() {
				r.Want(name+" GET", a, 200)
			}
			want := slices.Concat(harness.Spaced(0, 0, 5), harness.Spaced(10020*time.Millisecond, test.apart, 5), harness.Spaced(test.last, test.apart, 2))
			harness.WantEqual(t, name+": arrivals", harness.Instants(r.Vendor.Arrivals()), want)
		})
	}
}

// The very first answer is believed, too.
func TestFirstAnswerThatReportsZeroIsBelieved(t *testing.T) {
	for _, learns := range []weir.Learning{weir.LearnOn, weir.LearnSpread, weir.LearnOff} {
		synctest.Test(t, func(t *testing.T) {
			vendor := &testserver.Vendor{Limits: []testserver.Limit{testserver.FixedWindow(1, time.Minute)}, Styles: []testserver.Style{testserver.XRateLimitDelta}}
			r := waitsForReset(t, vendor, learns, new(weir.Transport))
			for range 4 {
				r.Want("GET", r.Get(t.Context(), ""), 200)
			}
			got := harness.Instants(r.Vendor.Arrivals())
			for i, at := range harness.Spaced(20*time.Millisecond, time.Minute, 4) {
				if late := got[i] - at; i > 0 && (late < 0 || late > 50*time.Millisecond) {
					t.Errorf("Learn %d: call %d arrived at %v, want %v", learns, i, got[i], at)
				}
			}
			if s := r.Transport.Snapshot(); s[0].Paused <= 59*time.Second {
				t.Errorf("Learn %d: the lane is paused for %v, want a minute", learns, s[0].Paused)
			}
		})
	}
}

// Without the option the same answers delay no call, and the server refuses.
func TestSpentQuotaIsNotWaitedForUnasked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t, fivePerTen(), new(weir.Transport))
		for range 6 {
			r.Want("GET", r.Get(t.Context(), ""), 200)
		}
		if got := r.Vendor.Arrivals().Count(429); got != 1 {
			t.Errorf("refusals = %d, want 1", got)
		}
	})
}

// It is a pause like any other: a caller with too little time is rejected at once, and one longer
// than MaxPause closes the lane.
func TestWaitForResetIsAPause(t *testing.T) {
	tests := map[string]struct {
		maxPause, within time.Duration
		want             error
		status           int
	}{
		"a deadline":     {0, time.Second, shaping.ErrDeadline, 0},
		"MaxPause":       {5 * time.Second, time.Hour, weir.ErrPaused, 0},
		"enough of both": {10 * time.Second, time.Hour, nil, 200},
	}
	for name, test := range tests {
		synctest.Test(t, func(t *testing.T) {
			r := waitsForReset(t, fivePerTen(), weir.LearnOff, &weir.Transport{MaxPause: test.maxPause})
			for range 5 {
				r.Want("GET", r.Get(t.Context(), ""), 200)
			}
			began := r.Now()
			ctx, cancel := context.WithTimeout(t.Context(), test.within)
			defer cancel()
			got := r.Get(ctx, "")
			var e *weir.Error
			if !errors.Is(got.Err, test.want) || got.Status != test.status {
				t.Errorf("%s: %d, %v, want %d, %v", name, got.Status, got.Err, test.status, test.want)
			}
			if errors.As(got.Err, &e) && (e.Reason != throttle.ReasonPause || got.At != began) {
				t.Errorf("%s: rejected at %v for %q, want at once for a pause", name, got.At-began, e.Reason)
			}
		})
	}
}

// A reset that is not exact causes no pause.
func TestInexactResetIsNotWaitedFor(t *testing.T) {
	tests := []struct {
		name    string
		dialect *headers.Dialect
		reset   func(i int) (remaining int, reset string)
		from    int // the first call that must not wait
	}{
		{"always near", nil, func(int) (int, string) { return 0, "1" }, 0},
		{"a bucket's", &headers.Dialect{Reset: headers.ResetFull}, func(i int) (int, string) { return max(0, 10-i), "60" }, 0},
		{"always as far", nil, func(i int) (int, string) { return max(0, 100-i), "58" }, 0},
		{"zero always", nil, func(int) (int, string) { return 0, "30" }, 3},
	}
	for _, test := range tests {
		synctest.Test(t, func(t *testing.T) {
			i, sent := 0, []time.Time{}
			client := harness.LearningFrom(t, func(*http.Request) (http.Header, int, error) {
				i++
				left, reset := test.reset(i)
				sent = append(sent, time.Now())
				return http.Header{"X-Ratelimit-Limit": {"100"}, "X-Ratelimit-Remaining": {strconv.Itoa(left)}, "X-Ratelimit-Reset": {reset}}, 200, nil
			})
			transport := client.Transport.(*weir.Transport)
			transport.Learn, transport.WaitForReset, transport.Dialect = weir.LearnOff, true, test.dialect
			for range 150 {
				harness.Call(client, "http://vendor.example/", time.Hour)
				time.Sleep(100 * time.Millisecond)
			}
			for i := max(1, test.from); i < len(sent); i++ {
				if took := sent[i].Sub(sent[i-1]); took > 150*time.Millisecond {
					t.Errorf("%s: call %d left %v after the one before", test.name, i, took)
					break
				}
			}
		})
	}
}

// A vendor that reports "0 left, 1 s" at its full rate is as fast with the option as without it.
func TestCoarseFieldsAreNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		vendor := &testserver.Vendor{
			Limits: []testserver.Limit{testserver.TokenBucket(200, time.Second, 20)},
			Styles: []testserver.Style{testserver.Coarse}, Service: 5 * time.Millisecond,
		}
		limits := []throttle.Limit{throttle.TokenBucket(200, time.Second, 18)}
		got := harness.DrainBy(waitsForReset(t, vendor, weir.LearnOn, &weir.Transport{Limits: limits}), 1000)
		if got.Wall > 4950*time.Millisecond || got.Refused > 0 || got.Failed > 0 {
			t.Errorf("1000 calls took %v, %d were refused, %d failed, want 4.95s, 0, 0 at most", got.Wall, got.Refused, got.Failed)
		}
	})
}

// Many calls in flight overtake each other, and none is refused, in two windows of a new lane.
func TestNobodyIsRefusedWhileAWindowRunsOut(t *testing.T) {
	styles := map[string]testserver.Style{"epoch": testserver.XRateLimitEpoch, "delta": testserver.XRateLimitDelta, "the IETF's": testserver.RateLimitLegacy}
	for name, style := range styles {
		for learns, most := range map[weir.Learning]time.Duration{weir.LearnOn: 16 * time.Second, weir.LearnSpread: 21 * time.Second} {
			synctest.Test(t, func(t *testing.T) {
				vendor := &testserver.Vendor{
					Limits: []testserver.Limit{testserver.FixedWindow(300, 10*time.Second)},
					Styles: []testserver.Style{style}, Service: 20 * time.Millisecond,
				}
				r := waitsForReset(t, vendor, learns, new(weir.Transport))
				base := r.Transport.Base
				r.Transport.Base = harness.BaseFunc(func(req *http.Request) (*http.Response, error) {
					time.Sleep(rand.N(30 * time.Millisecond))
					return base.RoundTrip(req)
				})
				got := harness.DrainBy(r, 600)
				if got.Refused > 0 || got.Failed > 0 || got.Wall > most {
					t.Errorf("%s, Learn %d: 600 calls at 300 per 10 s took %v, %d were refused, %d failed, want %v at most, 0, 0", name, learns, got.Wall, got.Refused, got.Failed, most)
				}
			})
		}
	}
}

// The last permits are reserved for calls in flight. If those fail, others depart at once.
func TestPermitsOfCallsThatFailAreHadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var i, last atomic.Int64
		began := time.Now()
		client := harness.LearningFrom(t, func(*http.Request) (http.Header, int, error) {
			if n := i.Add(1); n == 2 || n == 3 {
				time.Sleep(time.Second)
				return nil, 0, errors.New("broken")
			}
			last.Store(int64(time.Since(began)))
			return harness.Reported(10, 2, time.Minute), 200, nil
		})
		transport := client.Transport.(*weir.Transport)
		transport.Learn, transport.WaitForReset = weir.LearnOff, true
		harness.Call(client, "http://vendor.example/", time.Hour)
		var line sync.WaitGroup
		for range 3 {
			line.Go(func() { harness.Call(client, "http://vendor.example/", time.Hour) })
		}
		line.Wait()
		if last := time.Duration(last.Load()); last > 2*time.Second {
			t.Errorf("the call after two that failed at 1s was sent at %v", last)
		}
	})
}

// A spent bucket delays its own calls, whether the lane learns or not.
func TestSpentBucketHoldsNoOther(t *testing.T) {
	for _, learns := range []weir.Learning{weir.LearnOn, weir.LearnOff} {
		synctest.Test(t, func(t *testing.T) {
			v, client := bucketRig(t)
			transport := client.Transport.(*weir.Transport)
			transport.Learn, transport.WaitForReset = learns, true
			for range 5 {
				v.get(t, client, "/guilds/1/a")
			}
			v.get(t, client, "/guilds/1/c") // its bucket has another name
			for i := range 3 {
				if took := v.get(t, client, "/guilds/1/c"); took > 100*time.Millisecond {
					t.Errorf("Learn %d: call %d to another bucket took %v", learns, i, took)
				}
			}
			if took := v.get(t, client, "/guilds/1/a"); took < 4*time.Second || took > 5200*time.Millisecond {
				t.Errorf("Learn %d: the next call to the bucket took %v, want what is left of 5s", learns, took)
			}
			if len(v.refused) > 0 {
				t.Errorf("Learn %d: refused = %v, want 0", learns, v.refused)
			}
		})
	}
}

// Zero tokens left pause the lane, though it counts no calls in tokens.
func TestSpentTokensAreWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i, sent := 0, []time.Duration{}
		began := time.Now()
		client := harness.LearningFrom(t, func(*http.Request) (http.Header, int, error) {
			i++
			sent = append(sent, time.Since(began))
			return http.Header{
				"X-Ratelimit-Limit-Tokens": {"1000"}, "X-Ratelimit-Remaining-Tokens": {strconv.Itoa(1000 - 500*i)},
				"X-Ratelimit-Reset-Tokens": {fmt.Sprint(time.Until(began.Add(30 * time.Second)))},
			}, 200, nil
		})
		client.Transport.(*weir.Transport).WaitForReset = true
		for range 3 {
			harness.Call(client, "http://vendor.example/", time.Hour)
		}
		if got := sent[2]; got < 30*time.Second || got > 31*time.Second {
			t.Errorf("calls left at %v, want the third at 30s", sent)
		}
	})
}

// A process that reads a spent quota pauses the others.
func TestSpentQuotaPausesTheFleet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		vendor := fivePerTen()
		f := harness.NewFleet(t, 2, vendor, throttle.TokenBucket(100, time.Second, 100))
		for _, r := range f.Replicas {
			r.Transport.WaitForReset = true
			r.Want("GET", r.Get(t.Context(), ""), 200)
		}
		for range 3 {
			f.Replicas[0].Want("GET", f.Replicas[0].Get(t.Context(), ""), 200)
		}
		time.Sleep(100 * time.Millisecond)
		var line sync.WaitGroup
		for _, r := range f.Replicas {
			line.Go(func() { r.Want("GET", r.Get(t.Context(), ""), 200) })
		}
		line.Wait()
		arrivals := vendor.Arrivals()
		if got := arrivals.Count(429); got > 0 || arrivals[5].At < 10*time.Second || arrivals[6].At > 10200*time.Millisecond {
			t.Errorf("arrivals = %v, %d refused, want two soon after 10s, none refused", harness.Instants(arrivals), got)
		}
	})
}

// Hanging calls delay the others for a second, in which they may still be answered. A window
// without an answer continues, and the next ones are whole.
func TestHungCallsHoldNoLaterWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const window, calls = 10 * time.Second, 5
		var mu sync.Mutex
		var hangs atomic.Bool
		var sent []time.Duration
		used, began := make(map[time.Duration]int), time.Now()
		client := harness.LearningFrom(t, func(req *http.Request) (http.Header, int, error) {
			if hangs.Load() {
				<-req.Context().Done()
				return nil, 0, req.Context().Err()
			}
			mu.Lock()
			defer mu.Unlock()
			now := time.Since(began)
			this := now.Truncate(window)
			used[this]++
			sent = append(sent, now)
			return harness.Reported(calls, calls-used[this], this+window-now), 200, nil
		})
		transport := client.Transport.(*weir.Transport)
		transport.Learn, transport.WaitForReset = weir.LearnOff, true
		harness.Call(client, "http://vendor.example/", time.Hour)
		time.Sleep(window + 100*time.Millisecond - time.Since(began))
		hangs.Store(true)
		var hung sync.WaitGroup
		for range calls {
			hung.Go(func() { harness.Call(client, "http://vendor.example/", time.Hour) })
		}
		synctest.Wait()
		time.Sleep(100 * time.Millisecond)
		hangs.Store(false)
		for range calls - 2 {
			harness.Call(client, "http://vendor.example/", time.Hour)
		}
		time.Sleep(2*window + 100*time.Millisecond - time.Since(began))
		for range calls {
			harness.Call(client, "http://vendor.example/", time.Hour)
		}
		for i, at := range sent[1:] {
			least, most := window+time.Second, window+1300*time.Millisecond
			if i >= calls-2 {
				least, most = 2*window, 2*window+200*time.Millisecond
			}
			if at < least || at > most {
				t.Errorf("call %d was sent at %v, want between %v and %v", i, at, least, most)
			}
		}
		hung.Wait()
	})
}

// If a later reset is reported, calls wait for that: the first one was rounded.
func TestLaterResetOfAWindowIsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const reset = 10 * time.Second
		i, sent, began := 0, []time.Duration{}, time.Now()
		client := harness.LearningFrom(t, func(*http.Request) (http.Header, int, error) {
			now := time.Since(began)
			i, sent = i+1, append(sent, now)
			left := (reset - now).Truncate(time.Second) // 9.5 s are reported as 9
			return harness.Reported(3, max(0, 3-i), left), 200, nil
		})
		transport := client.Transport.(*weir.Transport)
		transport.Learn, transport.WaitForReset = weir.LearnOff, true
		for i := range 4 {
			if i < 3 {
				time.Sleep([]time.Duration{900, 50, 40}[i] * time.Millisecond)
			}
			harness.Call(client, "http://vendor.example/", time.Hour)
		}
		if got := sent[3]; got < 9950*time.Millisecond || got > reset+time.Second {
			t.Errorf("calls were sent at %v, want the last at the latest reported reset", sent)
		}
	})
}

// At a vendor that counts each route separately, a spent route delays no other, though no answer
// names a bucket.
func TestSpentRouteHoldsNoOther(t *testing.T) {
	for _, learns := range []weir.Learning{weir.LearnOn, weir.LearnOff} {
		synctest.Test(t, func(t *testing.T) {
			left := map[string]int{"/a": 3, "/b": 100}
			began := time.Now()
			client := harness.LearningFrom(t, func(req *http.Request) (http.Header, int, error) {
				reset := began.Add(10 * time.Second)
				if !time.Now().Before(reset) {
					left["/a"], reset = 3, reset.Add(10*time.Second)
				}
				left[req.URL.Path]--
				return harness.Reported(100, left[req.URL.Path], time.Until(reset)), 200, nil
			})
			transport := client.Transport.(*weir.Transport)
			transport.Learn, transport.WaitForReset = learns, true
			transport.Dialect = &headers.Dialect{Scope: headers.ScopeRoute, Reset: headers.ResetWindow}
			for range 3 {
				harness.Call(client, "http://vendor.example/a", time.Hour)
			}
			for range 3 {
				harness.Call(client, "http://vendor.example/b", time.Hour)
			}
			if took := time.Since(began); took > 2*time.Second {
				t.Errorf("Learn %d: calls of another route took %v", learns, took)
			}
			if harness.Call(client, "http://vendor.example/a", time.Hour); time.Since(began) < 9*time.Second { // whole seconds are reported
				t.Errorf("Learn %d: the next call of the route was sent after %v, want at its reset", learns, time.Since(began))
			}
		})
	}
}

// So are its tokens, unless the lane has a limit of tokens.
func TestTokensOfARouteHoldNoOther(t *testing.T) {
	for _, learns := range []weir.Learning{weir.LearnOn, weir.LearnOff} {
		synctest.Test(t, func(t *testing.T) {
			client := harness.LearningFrom(t, func(req *http.Request) (http.Header, int, error) {
				h := http.Header{"X-Ratelimit-Limit-Tokens": {"100"}, "X-Ratelimit-Remaining-Tokens": {"50"}, "X-Ratelimit-Reset-Tokens": {"10"}}
				if req.URL.Path == "/a" {
					h.Set("X-Ratelimit-Remaining-Tokens", "0")
				}
				return h, 200, nil
			})
			transport := client.Transport.(*weir.Transport)
			transport.Learn, transport.WaitForReset = learns, true
			transport.Dialect = &headers.Dialect{Scope: headers.ScopeRoute, Reset: headers.ResetWindow}
			began := time.Now()
			for _, path := range []string{"a", "b", "b", "b"} {
				harness.Call(client, "http://vendor.example/"+path, time.Hour)
			}
			if took := time.Since(began); took > time.Second {
				t.Errorf("Learn %d: calls of another route took %v", learns, took)
			}
		})
	}
}

// A bound of calls in flight is no rate, and its places return at no fixed instant. Calls that
// nothing else delays depart at once, although responses report none left.
func TestBoundOfCallsInFlightHasNoReset(t *testing.T) {
	for _, learns := range []weir.Learning{weir.LearnOn, weir.LearnOff} {
		synctest.Test(t, func(t *testing.T) {
			client := harness.LearningFrom(t, func(*http.Request) (http.Header, int, error) {
				return http.Header{
					"Ratelimit-Policy": {`"places";q=4;w=60;qu="concurrent-requests"`},
					"Ratelimit":        {`"places";r=0;t=10`},
				}, 200, nil
			})
			transport := client.Transport.(*weir.Transport)
			transport.Learn, transport.WaitForReset = learns, true
			began := time.Now()
			for range 10 {
				harness.Call(client, "http://vendor.example/", time.Hour)
			}
			if took := time.Since(began); took > time.Second {
				t.Errorf("Learn %d: ten calls one after the other took %v, want no wait", learns, took)
			}
			if learned := transport.Snapshot()[0].Learned; learned.Rate > 0 {
				t.Errorf("Learn %d: Learned = %+v, want no rate", learns, learned)
			}
		})
	}
}
