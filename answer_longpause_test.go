package weir_test

import (
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/testserver"
	"github.com/weirgo/weir/throttle"
)

// A lane whose vendor asks for more than MaxPause is closed until that time, or
// for an hour.

// wantPaused fails the test unless the answer is ErrPaused with that wait.
func wantPaused(t *testing.T, what string, got answer, wait time.Duration) {
	t.Helper()
	var ours *weir.Error
	if !errors.As(got.err, &ours) || !errors.Is(got.err, weir.ErrPaused) || ours.Wait != wait {
		t.Errorf("%s = %d, %v, want ErrPaused with a wait of %v", what, got.status, got.err, wait)
	}
}

func TestLongPauseReturnsItsResponseAndRefusesOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := pipeRig(t,
			&testserver.Vendor{Faults: []testserver.Fault{{Last: 1, Do: testserver.Answer, Header: hints("300"), Size: 50, Delay: 10 * time.Millisecond}}},
			&weir.Transport{Limits: every(time.Second)})
		callers := r.callers(t.Context(), 4)
		answers := callers.wait()
		r.want("refused GET", answers[0], 429)
		if len(answers[0].body) != 50 || answers[0].header.Get("Retry-After") != "300" {
			t.Errorf("refused GET = %+v, want its header and 50 bytes", answers[0])
		}
		for _, got := range answers[1:] {
			wantPaused(t, "waiting GET", got, 300*time.Second)
			if got.at != 10*time.Millisecond {
				t.Errorf("sent away at %v, want at the refusal, 10ms", got.at)
			}
		}
		time.Sleep(100 * time.Second)
		wantPaused(t, "later GET", r.get(t.Context(), "later"), 200*time.Second)
		time.Sleep(200*time.Second - 1)
		wantPaused(t, "last GET", r.get(t.Context(), "last"), 1)
		time.Sleep(time.Nanosecond)
		r.want("GET after the pause", r.get(t.Context(), "after"), 200)
		if got := len(r.vendor.Arrivals()); got != 2 {
			t.Errorf("arrivals = %d, want 2", got)
		}
	})
}

func TestMaxPauseIsTheBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := pipeRig(t,
			&testserver.Vendor{Faults: []testserver.Fault{
				{Last: 1, Do: testserver.Answer, Header: hints("5")},
				{First: 2, Last: 2, Do: testserver.Answer, Header: hints("6")},
			}},
			&weir.Transport{Limits: every(time.Second), MaxPause: 5 * time.Second})
		r.want("GET", r.get(t.Context(), "a"), 429) // the second answer
		wantEqual(t, "arrivals", instants(r.vendor.Arrivals()), []time.Duration{0, 5 * time.Second})
		wantPaused(t, "next GET", r.get(t.Context(), "b"), 6*time.Second)
	})
}

// MaxPause bounds what the server asks for and not our own delays.
func TestMaxPauseLeavesDelaysAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := pipeRig(t,
			&testserver.Vendor{Faults: []testserver.Fault{{Last: 1, Do: testserver.Answer, Status: 500}}},
			&weir.Transport{MaxPause: time.Second, Retry: after(3 * time.Second)})
		r.want("GET", r.get(t.Context(), "a"), 200)
		wantEqual(t, "arrivals", instants(r.vendor.Arrivals()), []time.Duration{0, 3 * time.Second})
	})
}

func TestClosedLaneOpensAfterAnHour(t *testing.T) {
	for _, asked := range []string{"7200", "2678400", "9223372036854775807"} {
		t.Run(asked, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := pipeRig(t,
					&testserver.Vendor{Faults: []testserver.Fault{{Last: 1, Do: testserver.Answer, Header: hints(asked)}}},
					&weir.Transport{Limits: every(time.Second)})
				r.want("refused GET", r.get(t.Context(), "a"), 429)
				time.Sleep(time.Hour - 1)
				wantPaused(t, "GET before the hour", r.get(t.Context(), "b"), 1)
				time.Sleep(time.Nanosecond)
				r.want("GET after the hour", r.get(t.Context(), "c"), 200)
			})
		})
	}
}

// After it opens, one call at a time goes until a good answer.
func TestClosedLaneIsProbed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := obeyingRig(t,
			&testserver.Vendor{
				Service: 300 * time.Millisecond,
				Faults: []testserver.Fault{
					{Last: 1, Do: testserver.Answer, Header: hints("600")},
					{First: 2, Last: 2, Do: testserver.Answer, Status: 500, Delay: 300 * time.Millisecond},
				},
			},
			&weir.Transport{Limits: every(150 * time.Millisecond), Retry: after(time.Hour)})
		r.want("refused GET", r.get(t.Context(), "first"), 429)
		time.Sleep(600 * time.Second)
		r.callers(t.Context(), 5).wait()
		// 600.0 fails, 600.3 is good at 600.6, then the limit holds: the third had its
		// permit for longer than the tolerance of 100 ms.
		want := []time.Duration{0, 600 * time.Second, 600_300 * time.Millisecond, 600_600 * time.Millisecond}
		want = append(want, spaced(600_650*time.Millisecond, 150*time.Millisecond, 2)...)
		want = append(want, 4200_300*time.Millisecond) // the failed one again
		wantEqual(t, "arrivals", instants(r.vendor.Arrivals()), want)
	})
}

func TestUnansweredProbeLetsNextGoAfterASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := pipeRig(t,
			&testserver.Vendor{Service: 10 * time.Second, Faults: []testserver.Fault{{Last: 1, Do: testserver.Answer, Header: hints("600")}}},
			&weir.Transport{Limits: []throttle.Limit{throttle.TokenBucket(100, time.Second, 1)}})
		r.want("refused GET", r.get(t.Context(), "first"), 429)
		time.Sleep(600 * time.Second)
		r.callers(t.Context(), 4).wait()
		want := append([]time.Duration{0}, spaced(600*time.Second, time.Second, 4)...)
		wantEqual(t, "arrivals", instants(r.vendor.Arrivals()), want)
	})
}

// A probe that is refused closes the lane again.
func TestRefusedProbeClosesLaneAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := pipeRig(t,
			&testserver.Vendor{Faults: []testserver.Fault{
				{Last: 1, Do: testserver.Answer, Header: hints("600")},
				{First: 2, Last: 2, Do: testserver.Answer, Header: hints("600"), Delay: 10 * time.Millisecond},
			}},
			&weir.Transport{Limits: every(time.Millisecond)})
		r.want("refused GET", r.get(t.Context(), "first"), 429)
		time.Sleep(600 * time.Second)
		answers := r.callers(t.Context(), 3).wait()
		r.want("probe", answers[0], 429)
		wantPaused(t, "second", answers[1], 600*time.Second)
		wantPaused(t, "third", answers[2], 600*time.Second)
	})
}

func TestClosedLaneIsLoggedWithoutVendorsText(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		header := hints("600")
		header.Set("X-Reason", "canary")
		r := pipeRig(t,
			&testserver.Vendor{Faults: []testserver.Fault{{Do: testserver.Answer, Header: header}}},
			&weir.Transport{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		r.want("GET", r.get(t.Context(), "a"), 429)
		if text := log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "10m0s") || strings.Contains(text, "canary") {
			t.Errorf("log = %q, want one line with the time and nothing of the vendor's", text)
		}
	})
}

// A pause is told once, however many calls in flight are refused with it, and
// again when it moves.
func TestPauseIsToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		metrics := newMeterLog()
		faults := []testserver.Fault{
			{Last: 100, Do: testserver.Answer, Header: hints("600"), Delay: 500 * time.Millisecond},
			{First: 101, Last: 101, Do: testserver.Answer, Header: hints("900"), Delay: time.Second},
			{First: 102, Last: 102, Do: testserver.Answer, Header: hints("600")},
			{First: 104, Last: 104, Do: testserver.Answer, Header: hints("600")},
		}
		r := obeyingRig(t, &testserver.Vendor{Faults: faults}, &weir.Transport{MeterProvider: metrics, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		var wg sync.WaitGroup
		for range 101 {
			wg.Go(func() { r.want("GET", r.get(t.Context(), "a"), 429) })
			time.Sleep(time.Millisecond)
		}
		wg.Wait()
		if lines := strings.Count(log.String(), "\n"); lines != 2 {
			t.Errorf("%d lines of log, want 2:\n%s", lines, log.String())
		}
		wantCount(t, metrics.points(t), 2, "weir.pause.duration")
		time.Sleep(900 * time.Second)
		r.want("GET after the pause", r.get(t.Context(), "b"), 429)
		r.resume()
		r.want("GET after Resume", r.get(t.Context(), "c"), 200)
		r.want("GET refused again", r.get(t.Context(), "d"), 429)
		wantCount(t, metrics.points(t), 4, "weir.pause.duration")
	})
}
