package pauses_test

import (
	"log/slog"
	"math"
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

// A lane whose vendor asks for more than MaxPause is closed until that time, or for an hour.

func TestLongPauseReturnsItsResponseAndRefusesOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t,
			&testserver.Vendor{Faults: []testserver.Fault{{Last: 1, Do: testserver.Answer, Header: harness.Hints("300"), Size: 50, Delay: 10 * time.Millisecond}}},
			&weir.Transport{Limits: harness.Every(time.Second)})
		callers := r.Callers(t.Context(), 4)
		answers := callers.Wait()
		r.Want("refused GET", answers[0], 429)
		if len(answers[0].Body) != 50 || answers[0].Header.Get("Retry-After") != "300" {
			t.Errorf("refused GET = %+v, want its header and 50 bytes", answers[0])
		}
		for _, got := range answers[1:] {
			harness.WantPaused(t, "waiting GET", got, 300*time.Second)
			if got.At != 10*time.Millisecond {
				t.Errorf("sent away at %v, want at the refusal, 10ms", got.At)
			}
		}
		time.Sleep(100 * time.Second)
		harness.WantPaused(t, "later GET", r.Get(t.Context(), "later"), 200*time.Second)
		time.Sleep(200*time.Second - 1)
		harness.WantPaused(t, "last GET", r.Get(t.Context(), "last"), 1)
		time.Sleep(time.Nanosecond)
		r.Want("GET after the pause", r.Get(t.Context(), "after"), 200)
		if got := len(r.Vendor.Arrivals()); got != 2 {
			t.Errorf("arrivals = %d, want 2", got)
		}
	})
}

// The longest MaxPause is no pause: the limits hold.
func TestMaxPauseMayBeForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t, &testserver.Vendor{}, &weir.Transport{Limits: harness.Every(time.Second), MaxPause: math.MaxInt64})
		r.Callers(t.Context(), 3).Wait()
		harness.WantEqual(t, "arrivals", harness.Instants(r.Vendor.Arrivals()), harness.Spaced(0, time.Second, 3))
	})
}

func TestMaxPauseIsTheBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t,
			&testserver.Vendor{Faults: []testserver.Fault{
				{Last: 1, Do: testserver.Answer, Header: harness.Hints("5")},
				{First: 2, Last: 2, Do: testserver.Answer, Header: harness.Hints("6")},
			}},
			&weir.Transport{Limits: harness.Every(time.Second), MaxPause: 5 * time.Second})
		r.Want("GET", r.Get(t.Context(), "a"), 429) // the second answer
		harness.WantEqual(t, "arrivals", harness.Instants(r.Vendor.Arrivals()), []time.Duration{0, 5 * time.Second})
		harness.WantPaused(t, "next GET", r.Get(t.Context(), "b"), 6*time.Second)
	})
}

// MaxPause bounds the server's pauses, not our own delays.
func TestMaxPauseLeavesDelaysAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t,
			&testserver.Vendor{Faults: []testserver.Fault{{Last: 1, Do: testserver.Answer, Status: 500}}},
			&weir.Transport{MaxPause: time.Second, Retry: harness.After(3 * time.Second)})
		r.Want("GET", r.Get(t.Context(), "a"), 200)
		harness.WantEqual(t, "arrivals", harness.Instants(r.Vendor.Arrivals()), []time.Duration{0, 3 * time.Second})
	})
}

func TestClosedLaneOpensAfterAnHour(t *testing.T) {
	for _, asked := range []string{"7200", "2678400", "9223372036854775807"} {
		t.Run(asked, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := harness.PipeRig(t,
					&testserver.Vendor{Faults: []testserver.Fault{{Last: 1, Do: testserver.Answer, Header: harness.Hints(asked)}}},
					&weir.Transport{Limits: harness.Every(time.Second)})
				r.Want("refused GET", r.Get(t.Context(), "a"), 429)
				time.Sleep(time.Hour - 1)
				harness.WantPaused(t, "GET before the hour", r.Get(t.Context(), "b"), 1)
				time.Sleep(time.Nanosecond)
				r.Want("GET after the hour", r.Get(t.Context(), "c"), 200)
			})
		})
	}
}

// A reopened lane sends one call at a time until a good answer.
func TestClosedLaneIsProbed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.ObeyingRig(t,
			&testserver.Vendor{
				Service: 300 * time.Millisecond,
				Faults: []testserver.Fault{
					{Last: 1, Do: testserver.Answer, Header: harness.Hints("600")},
					{First: 2, Last: 2, Do: testserver.Answer, Status: 500, Delay: 300 * time.Millisecond},
				},
			},
			&weir.Transport{Limits: harness.Every(150 * time.Millisecond), Retry: harness.After(time.Hour)})
		r.Want("refused GET", r.Get(t.Context(), "first"), 429)
		time.Sleep(600 * time.Second)
		r.Callers(t.Context(), 5).Wait()
		// 600.0 fails, 600.3 is good at 600.6, then the limit applies: the third held its permit
		// for longer than the tolerance of 100 ms.
		want := []time.Duration{0, 600 * time.Second, 600_300 * time.Millisecond, 600_600 * time.Millisecond}
		want = append(want, harness.Spaced(600_650*time.Millisecond, 150*time.Millisecond, 2)...)
		want = append(want, 4200_300*time.Millisecond) // retry of the failed one
		harness.WantEqual(t, "arrivals", harness.Instants(r.Vendor.Arrivals()), want)
	})
}

func TestUnansweredProbeLetsNextGoAfterASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t,
			&testserver.Vendor{Service: 10 * time.Second, Faults: []testserver.Fault{{Last: 1, Do: testserver.Answer, Header: harness.Hints("600")}}},
			&weir.Transport{Limits: []throttle.Limit{throttle.TokenBucket(100, time.Second, 1)}})
		r.Want("refused GET", r.Get(t.Context(), "first"), 429)
		time.Sleep(600 * time.Second)
		r.Callers(t.Context(), 4).Wait()
		want := append([]time.Duration{0}, harness.Spaced(600*time.Second, time.Second, 4)...)
		harness.WantEqual(t, "arrivals", harness.Instants(r.Vendor.Arrivals()), want)
	})
}

// A refused probe closes the lane again.
func TestRefusedProbeClosesLaneAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t,
			&testserver.Vendor{Faults: []testserver.Fault{
				{Last: 1, Do: testserver.Answer, Header: harness.Hints("600")},
				{First: 2, Last: 2, Do: testserver.Answer, Header: harness.Hints("600"), Delay: 10 * time.Millisecond},
			}},
			&weir.Transport{Limits: harness.Every(time.Millisecond)})
		r.Want("refused GET", r.Get(t.Context(), "first"), 429)
		time.Sleep(600 * time.Second)
		answers := r.Callers(t.Context(), 3).Wait()
		r.Want("probe", answers[0], 429)
		harness.WantPaused(t, "second", answers[1], 600*time.Second)
		harness.WantPaused(t, "third", answers[2], 600*time.Second)
	})
}

func TestClosedLaneIsLoggedWithoutVendorsText(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		header := harness.Hints("600")
		header.Set("X-Reason", "canary")
		r := harness.PipeRig(t,
			&testserver.Vendor{Faults: []testserver.Fault{{Do: testserver.Answer, Header: header}}},
			&weir.Transport{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		r.Want("GET", r.Get(t.Context(), "a"), 429)
		if text := log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "10m0s") || strings.Contains(text, "canary") {
			t.Errorf("log = %q, want one line with the time and nothing of the vendor's", text)
		}
	})
}

// A pause is logged once, however many calls in flight are refused with it, and again when it
// moves.
func TestPauseIsReportedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		metrics := harness.NewMeterLog()
		faults := []testserver.Fault{
			{Last: 100, Do: testserver.Answer, Header: harness.Hints("600"), Delay: 500 * time.Millisecond},
			{First: 101, Last: 101, Do: testserver.Answer, Header: harness.Hints("900"), Delay: time.Second},
			{First: 102, Last: 102, Do: testserver.Answer, Header: harness.Hints("600")},
			{First: 104, Last: 104, Do: testserver.Answer, Header: harness.Hints("600")},
		}
		r := harness.ObeyingRig(t, &testserver.Vendor{Faults: faults}, &weir.Transport{MeterProvider: metrics, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		var wg sync.WaitGroup
		for range 101 {
			wg.Go(func() { r.Want("GET", r.Get(t.Context(), "a"), 429) })
			time.Sleep(time.Millisecond)
		}
		wg.Wait()
		if lines := strings.Count(log.String(), "\n"); lines != 2 {
			t.Errorf("%d lines of log, want 2:\n%s", lines, log.String())
		}
		harness.WantCount(t, metrics.Points(t), 2, "weir.pause.duration")
		time.Sleep(900 * time.Second)
		r.Want("GET after the pause", r.Get(t.Context(), "b"), 429)
		r.Resume()
		r.Want("GET after Resume", r.Get(t.Context(), "c"), 200)
		r.Want("GET refused again", r.Get(t.Context(), "d"), 429)
		harness.WantCount(t, metrics.Points(t), 4, "weir.pause.duration")
	})
}
