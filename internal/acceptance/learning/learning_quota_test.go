package learning_test

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/acceptance/harness"
)

// Calls without a reported count do not stop a lane with earlier reported counts: they fail
// on the way, lack the field, or hang.
func TestCallsWithoutAReadingSpendNoReportedQuota(t *testing.T) {
	broken := errors.New("broken")
	ways := map[string]func(req *http.Request) (http.Header, int, error){
		"fail":          func(*http.Request) (http.Header, int, error) { return nil, 0, broken },
		"answer 500":    func(*http.Request) (http.Header, int, error) { return http.Header{}, 500, nil },
		"tell nothing":  func(*http.Request) (http.Header, int, error) { return http.Header{}, 200, nil },
		"are cancelled": func(req *http.Request) (http.Header, int, error) { <-req.Context().Done(); return nil, 0, broken },
	}
	for name, way := range ways {
		for _, used := range []int{0, 5} {
			synctest.Test(t, func(t *testing.T) {
				began, used, tells := time.Now(), used, true
				client := harness.LearningFrom(t, func(req *http.Request) (http.Header, int, error) {
					if !tells {
						return way(req)
					}
					used++
					return harness.Reported(10, 10-used, time.Until(began.Add(time.Hour))), 200, nil
				})
				for range 4 {
					harness.Call(client, "http://vendor.example/", time.Minute)
				}
				tells = false
				for i := range 30 {
					if took := harness.Call(client, "http://vendor.example/", 3*time.Second); name != "are cancelled" && took > time.Second {
						t.Fatalf("call %d of those that %s took %v", i, name, took)
					}
				}
				tells = true
				if took := harness.Call(client, "http://vendor.example/", time.Hour); took > 2*time.Second {
					t.Errorf("after calls that %s the next took %v", name, took)
				}
			})
		}
	}
}

// While a probe for a new window hangs, another is sent.
func TestHangingCallIsAskedAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, used := time.Now(), 5
		var hangs atomic.Bool
		client := harness.LearningFrom(t, func(req *http.Request) (http.Header, int, error) {
			if hangs.CompareAndSwap(true, false) {
				<-req.Context().Done()
				return nil, 0, req.Context().Err()
			}
			used++
			return harness.Reported(10, 10-used, time.Until(began.Add(10*time.Second))), 200, nil
		})
		for range 5 {
			harness.Call(client, "http://vendor.example/", time.Minute)
		}
		used = 0
		hangs.Store(true)
		var hanging sync.WaitGroup
		hanging.Go(func() { harness.Call(client, "http://vendor.example/", time.Hour) })
		defer hanging.Wait()
		time.Sleep(11 * time.Second)
		if took := harness.Call(client, "http://vendor.example/", time.Minute); took > 2*time.Second {
			t.Errorf("beside a call that hangs the next took %v", took)
		}
	})
}

// Two routes of a host report separate counts: one does not spend the other's.
func TestRoutesSpendTheirOwnReportedQuotas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		quotas := map[string]*struct {
			limit, used int
			reset       time.Duration
		}{"/search": {limit: 30, reset: time.Minute}, "/repos": {limit: 5000, reset: time.Hour}}
		client := harness.LearningFrom(t, func(req *http.Request) (http.Header, int, error) {
			q := quotas[req.URL.Path]
			q.used++
			return harness.Reported(q.limit, q.limit-q.used, time.Until(began.Add(q.reset))), 200, nil
		})
		for i := range 20 {
			harness.Call(client, "http://vendor.example/search", time.Hour)
			if i%5 == 0 {
				harness.Call(client, "http://vendor.example/repos", time.Hour)
			}
		}
		for i := range 40 {
			if took := harness.Call(client, "http://vendor.example/repos", time.Hour); took > time.Second {
				t.Errorf("call %d to the route that has 4,900 left took %v", i, took)
			}
		}
	})
}

// A slow vendor that reports quotas gets as many calls in flight as one without reports, and as
// soon.
func TestSlowVendorThatReportsQuotasIsNotAskedOneByOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var flying, used atomic.Int32
		client := harness.LearningFrom(t, func(*http.Request) (http.Header, int, error) {
			flying.Add(1)
			defer flying.Add(-1)
			time.Sleep(10 * time.Second)
			return harness.Reported(10_000, 10_000-int(used.Add(1)), time.Until(began.Add(time.Hour))), 200, nil
		})
		for range 5 {
			harness.Call(client, "http://vendor.example/", time.Hour)
		}
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() { harness.Call(client, "http://vendor.example/", time.Hour) })
		}
		time.Sleep(3 * time.Second)
		if n := flying.Load(); n < 100 {
			t.Errorf("%d calls of 10 s each fly after 3 s, want 100", n)
		}
		wg.Wait()
	})
}

// While it is tested whether calls in flight count, a few hanging calls stop no others.
func TestHangingCallsDoNotStopATrial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var served atomic.Int32
		var refuse atomic.Bool
		client := harness.LearningFrom(t, func(req *http.Request) (http.Header, int, error) {
			if req.URL.Path == "/events" {
				time.Sleep(30 * time.Second)
				return http.Header{}, 200, nil
			}
			time.Sleep(50 * time.Millisecond)
			if refuse.CompareAndSwap(true, false) {
				return http.Header{}, 429, nil
			}
			served.Add(1)
			return http.Header{}, 200, nil
		})
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for i := range 40 {
			path := []string{"events", "things", "things", "things"}[i%4]
			wg.Go(func() {
				for ctx.Err() == nil {
					harness.Call(client, "http://vendor.example/"+path, time.Hour)
				}
			})
		}
		time.Sleep(10 * time.Second)
		refuse.Store(true)
		time.Sleep(2 * time.Second)
		before := served.Load()
		time.Sleep(time.Second)
		if n := served.Load() - before; n < 270 {
			t.Errorf("%d were served in the third second after a refusal, want half of 540", n)
		}
		cancel()
		wg.Wait()
	})
}

// A reported window is spent as calls come or, with LearnSpread, evenly over the rest of it.
func TestSpreadSpreadsAReportedWindow(t *testing.T) {
	for learns, want := range map[weir.Learning]func(span time.Duration) bool{
		weir.LearnOn:     func(span time.Duration) bool { return span < 2*time.Second },
		weir.LearnSpread: func(span time.Duration) bool { return span > 20*time.Second },
	} {
		synctest.Test(t, func(t *testing.T) {
			began, used, last := time.Now(), 0, time.Duration(0)
			client := harness.LearningFrom(t, func(*http.Request) (http.Header, int, error) {
				used++
				last = time.Since(began)
				return harness.Reported(100, 100-used, time.Until(began.Add(time.Minute))), 200, nil
			})
			client.Transport.(*weir.Transport).Learn = learns
			for range 60 {
				harness.Call(client, "http://vendor.example/", time.Hour)
			}
			if !want(last) {
				t.Errorf("Learn %d: 60 calls of 100 a minute left within %v", learns, last)
			}
		})
	}
}

// A refusal for lack of tokens reports when there will be some: no call is sent before. Reported
// tokens left delay no call.
func TestRefusalForTokensIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, sent := time.Now(), []time.Duration{}
		client := harness.LearningFrom(t, func(*http.Request) (http.Header, int, error) {
			at := time.Since(began)
			sent = append(sent, at)
			header := http.Header{"X-Ratelimit-Limit-Tokens": {"1000"}, "X-Ratelimit-Reset-Tokens": {"20s"}, "X-Ratelimit-Remaining-Tokens": {"0"}}
			if len(sent) == 4 {
				return header, 429, nil
			}
			return header, 200, nil
		})
		for range 6 {
			harness.Call(client, "http://vendor.example/", time.Hour)
		}
		if sent[3] > time.Second || sent[4] < sent[3]+20*time.Second || sent[4] > sent[3]+22*time.Second {
			t.Errorf("calls left at %v, want four at once, and the next 20s after the refusal", sent)
		}
	})
}
