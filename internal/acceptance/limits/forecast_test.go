package limits_test

import (
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/headers"
	"github.com/weirgo/weir/internal/acceptance/harness"
	"github.com/weirgo/weir/internal/testserver"
	"github.com/weirgo/weir/throttle"
)

// wantForecast fails the test unless the forecast is as wanted.
func wantForecast(r *harness.Rig, what string, req *http.Request, want weir.Forecast, cause error) {
	r.Helper()
	got, err := r.Transport.Forecast(req)
	if got != want || !errors.Is(err, cause) {
		r.Errorf("%s: Forecast = %+v, %v, want %+v, %v", what, got, err, want, cause)
	}
}

func TestForecastSpendsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.ObeyingRig(t, &testserver.Vendor{}, &weir.Transport{Limits: []throttle.Limit{throttle.LeakyBucket(1, time.Second).Named("mail")}})
		body := harness.NewCountedBody("text")
		req := r.Request(t.Context(), "a")
		req.Body, req.ContentLength = body, 4
		for range 3 {
			wantForecast(r, "no lane", req, weir.Forecast{}, nil)
		}
		if n := len(r.Transport.Snapshot()); n != 0 || body.Closes.Load() != 0 || body.Reader.(interface{ Len() int }).Len() != 4 {
			t.Errorf("%d lanes, body closed %d times, want no lane and the body whole", n, body.Closes.Load())
		}
		callers := r.Callers(t.Context(), 3)
		held := weir.Forecast{Wait: time.Second, Expected: 3 * time.Second, Limit: "mail", Reason: throttle.ReasonRate, Waiting: 2}
		wantForecast(r, "behind two", r.Request(t.Context(), "b"), held, nil)
		wantForecast(r, "deadline", harness.Within(500*time.Millisecond)(r, r.Request(t.Context(), "b")), held, weir.ErrDeadline)
		callers.Wait()
		harness.WantEqual(t, "arrivals", harness.Instants(r.Vendor.Arrivals()), harness.Spaced(0, time.Second, 3))
	})
}

// The error is that of RoundTrip, also if the key needs no URL.
func TestForecastOfARequestWithoutAURL(t *testing.T) {
	transport := &weir.Transport{Base: harness.Stub{}, Limits: harness.Every(time.Hour), Key: func(*http.Request) string { return "one" }}
	defer transport.Close()
	resp, err := transport.RoundTrip(harness.GetOf("vendor.test"))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	nowhere := new(http.Request).WithContext(weir.WithMaxWait(t.Context(), time.Second))
	_, want := transport.RoundTrip(nowhere)
	if _, err := transport.Forecast(nowhere); err == nil || err.Error() != want.Error() {
		t.Errorf("Forecast = %v, want %v", err, want)
	}
}

func TestForecastOfANewLaneKnowsItsBurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := tokenRig(t)
		req := r.Request(weir.WithCostOf(t.Context(), "tokens", 101), "a")
		wantForecast(r, "new lane", req, weir.Forecast{}, weir.ErrExceedsBurst)
		r.Call()
		if _, err := r.Transport.Forecast(req); !errors.Is(err, weir.ErrExceedsBurst) {
			t.Errorf("Forecast = %v, want ErrExceedsBurst", err)
		}
		r.Transport.Close()
		wantForecast(r, "closed", req, weir.Forecast{}, weir.ErrClosed)
	})
}

func TestForecastSeesPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.ObeyingRig(t, &testserver.Vendor{Faults: []testserver.Fault{
			{Last: 1, Do: testserver.Answer, Header: harness.Hints("60")},
			{First: 2, Last: 2, Do: testserver.Answer, Header: harness.Hints("600")},
		}}, &weir.Transport{})
		call := r.Start("a")
		time.Sleep(time.Second)
		paused := weir.Forecast{Wait: 59 * time.Second, Expected: 59 * time.Second, Reason: throttle.ReasonPause, Waiting: 1}
		wantForecast(r, "pause", r.Request(t.Context(), "b"), paused, nil)
		r.Want("GET", <-call, 429) // the second answer
		closed := weir.Forecast{Wait: 600 * time.Second, Expected: 600 * time.Second, Reason: throttle.ReasonPause}
		wantForecast(r, "closed lane", r.Request(t.Context(), "b"), closed, weir.ErrPaused)
	})
}

func TestForecastSeesThePauseOfARoute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.ObeyingRig(t, &testserver.Vendor{Faults: []testserver.Fault{
			{Last: 1, Do: testserver.Answer, Header: harness.Hints("60")}}}, &weir.Transport{Dialect: harness.ScopedBy(headers.ScopeRoute)})
		call := r.Start("a")
		time.Sleep(time.Second)
		paused := weir.Forecast{Wait: 59 * time.Second, Expected: 59 * time.Second, Reason: throttle.ReasonPause, Waiting: 1}
		wantForecast(r, "its route", r.Request(t.Context(), "b"), paused, nil)
		wantForecast(r, "another route", r.Path("/others"), weir.Forecast{}, nil)
		r.Want("GET", <-call, 200)
	})
}

func TestForecastSeesCallsInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.ObeyingRig(t, &testserver.Vendor{Service: time.Second}, &weir.Transport{InFlight: weir.InFlight{Max: 1}})
		call := r.Start("a")
		wantForecast(r, "full", r.Request(t.Context(), "b"), weir.Forecast{Reason: throttle.ReasonConcurrency}, nil)
		r.Want("GET", <-call, 200)
		wantForecast(r, "free", r.Request(t.Context(), "b"), weir.Forecast{}, nil)
	})
}

// A forecast includes the learned limit of a lane.
func TestForecastExpectsTheLearnedRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t, &testserver.Vendor{Limits: []testserver.Limit{testserver.TokenBucket(10, time.Second, 10)}, Service: 5 * time.Millisecond, Spread: 5 * time.Millisecond}, &weir.Transport{})
		harness.DrainBy(r, 1500)
		callers := r.Callers(t.Context(), 50)
		f, err := r.Transport.Forecast(r.Request(t.Context(), "b"))
		began := r.Now()
		r.Want("GET", r.Get(t.Context(), "b"), 200)
		if took := r.Now() - began; err != nil || f.Waiting < 20 || f.Expected < took/2 || f.Expected > 2*took || f.Wait > took {
			t.Errorf("Forecast = %+v, %v, want about %v", f, err, took)
		}
		callers.Wait()
	})
}

// Whatever the limits, the line and the pauses, RoundTrip does what Forecast has just said: it
// rejects the request at once for the same cause, or serves it no sooner.
func TestForecastAgreesWithRoundTrip(t *testing.T) {
	texts := []string{"1/s burst 3", "leaky 2/s", "fixed 4/10s", "log 3/7s", "gcra 3/s burst 2", "sliding 5/10s", "2/s burst 4 of tokens"}
	for seed := range uint64(1000) {
		synctest.Test(t, func(t *testing.T) {
			g := rand.New(rand.NewPCG(seed, 1))
			transport := &weir.Transport{Base: harness.Stub{}, Learn: weir.LearnOff, Logger: slog.New(slog.DiscardHandler)}
			for _, i := range g.Perm(len(texts))[:2] {
				limit, err := throttle.ParseLimit(texts[i])
				if err != nil {
					t.Fatal(err)
				}
				transport.Limits = append(transport.Limits, limit)
			}
			if g.IntN(3) == 0 {
				transport.Keys = func(*http.Request) []string { return []string{"vendor.test", "account"} }
			}
			transport.Line.MaxWaiting, transport.Line.MaxForecast = g.IntN(7), time.Duration(g.IntN(3)*g.IntN(8000))*time.Millisecond
			defer transport.Close()
			request := func() *http.Request {
				ctx := weir.WithCost(weir.WithPriority(t.Context(), weir.Priority(g.IntN(3)-1)), 1+g.IntN(2))
				if g.IntN(3) == 0 {
					ctx = weir.WithMaxWait(ctx, time.Duration(1+g.IntN(9000))*time.Millisecond)
				}
				return harness.GetOf("vendor.test").WithContext(ctx)
			}
			send := func(req *http.Request) error {
				resp, err := transport.RoundTrip(req)
				if err == nil {
					resp.Body.Close()
				}
				return err
			}
			var line sync.WaitGroup
			defer line.Wait()
			for range g.IntN(9) {
				req := request()
				line.Go(func() { _ = send(req) })
				synctest.Wait()
				time.Sleep(time.Duration(g.IntN(2)*g.IntN(2000)) * time.Millisecond)
			}
			if g.IntN(5) == 0 {
				if err := transport.Pause("vendor.test", time.Duration(1+g.IntN(200))*time.Second); err != nil {
					t.Error(err)
				}
			}
			synctest.Wait()
			req, began := request(), time.Now()
			f, foreseen := transport.Forecast(req)
			err := send(req)
			waited := time.Since(began)
			agree := foreseen != nil && waited == 0 || foreseen == nil && (err == nil && waited >= f.Wait || err != nil && waited > 0)
			for _, cause := range []error{weir.ErrPaused, weir.ErrDeadline, weir.ErrQueueFull} {
				agree = agree && (foreseen == nil || errors.Is(foreseen, cause) == errors.Is(err, cause))
			}
			if !agree {
				t.Errorf("seed %d: Forecast = %+v, %v, and RoundTrip = %v after %v", seed, f, foreseen, err, waited)
			}
		})
	}
}
