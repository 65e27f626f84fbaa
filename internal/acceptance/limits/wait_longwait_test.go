package limits_test

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/headers"
	"github.com/weirgo/weir/internal/acceptance/harness"
	"github.com/weirgo/weir/internal/testserver"
	"github.com/weirgo/weir/throttle"
)

// wantLines fails the test unless the log has this many lines, each with the text.
func wantLines(t *testing.T, what string, log *strings.Builder, want int, text string) {
	t.Helper()
	lines := strings.SplitAfter(log.String(), "\n")
	lines = lines[:len(lines)-1]
	if len(lines) != want {
		t.Errorf("%s: %d lines of log, want %d:\n%s", what, len(lines), want, log)
	}
	for _, line := range lines {
		if !strings.Contains(line, text) {
			t.Errorf("%s: log has %q, want %s in it", what, line, text)
		}
	}
	log.Reset()
}

// A long wait is logged for each lane and cause, at most once a minute.
func TestLongWaitIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		r := harness.PipeRig(t, &testserver.Vendor{}, &weir.Transport{
			Limits: []throttle.Limit{throttle.SlidingLog(2, 57*time.Minute)}, Logger: slog.New(slog.NewTextHandler(&log, nil)),
		})
		r.Spend()
		r.Spend()
		wantLines(t, "permits at hand", &log, 0, "")
		ctx, cancel := context.WithCancel(t.Context())
		waiting := r.Callers(ctx, 10)
		time.Sleep(time.Minute - 1)
		more := r.Callers(ctx, 10)
		wantLines(t, "first minute", &log, 1, `lane=vendor.test wait=57m0s reason=rate waiting=1 limit="log 2/57m"`)
		time.Sleep(time.Nanosecond)
		last := r.Callers(ctx, 10)
		wantLines(t, "second minute", &log, 1, "wait=8h33m0s reason=rate waiting=21")
		cancel()
		waiting.Wait()
		more.Wait()
		last.Wait()
	})
}

// Long waits in a line, and short ones.
func TestLongLineIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		r := harness.PipeRig(t, &testserver.Vendor{}, &weir.Transport{
			Limits: []throttle.Limit{throttle.TokenBucket(10, time.Second, 5)}, Logger: slog.New(slog.NewTextHandler(&log, nil)),
		})
		r.Callers(t.Context(), 300).Wait()
		wantLines(t, "a line of 30 s", &log, 0, "")
		r.Callers(t.Context(), 400).Wait()
		wantLines(t, "a line of 40 s", &log, 1, "wait=30.1s reason=rate")
	})
}

// A leaky bucket has no permits saved: each caller in line waits for one more interval.
func TestLongLineOfALeakyBucketIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		r := harness.PipeRig(t, &testserver.Vendor{}, &weir.Transport{
			Limits: []throttle.Limit{throttle.LeakyBucket(10, time.Second)}, Logger: slog.New(slog.NewTextHandler(&log, nil)),
		})
		r.Callers(t.Context(), 310).Wait()
		wantLines(t, "a line of 31 s", &log, 1, "wait=30.1s reason=rate")
	})
}

// Pauses are a cause of their own, and routes have lanes of their own.
func TestLongPauseOfEachLaneIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		r := harness.PipeRig(t, &testserver.Vendor{Faults: []testserver.Fault{{Last: 2, Do: testserver.Answer, Header: harness.Hints("60")}}},
			&weir.Transport{Dialect: harness.ScopedBy(headers.ScopeRoute), Logger: slog.New(slog.NewTextHandler(&log, nil))})
		r.Ask(r.Path("/a"), r.Path("/b"), r.Path("/a"))
		text := log.String()
		wantLines(t, "two routes", &log, 2, "wait=1m0s reason=pause")
		for _, route := range []string{"/a", "/b"} {
			if want := `alone="route ` + http.MethodGet + " " + route + `"`; !strings.Contains(text, want) {
				t.Errorf("log = %s, want %s in it", text, want)
			}
		}
	})
}
