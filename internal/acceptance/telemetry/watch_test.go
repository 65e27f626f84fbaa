package telemetry_test

import (
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/acceptance/harness"
	"github.com/weirgo/weir/internal/testserver"
	"github.com/weirgo/weir/throttle"
)

// A watched rig keeps lines of log and the events of calls.
type watched struct {
	*harness.Rig
	log   strings.Builder
	spans harness.SpanLog
}

func watch(t *testing.T, transport *weir.Transport, level slog.Level) *watched {
	w := &watched{spans: harness.NewSpanLog()}
	transport.Logger = slog.New(slog.NewTextHandler(&w.log, &slog.HandlerOptions{Level: level}))
	w.Rig = harness.ObeyingRig(t, &testserver.Vendor{}, transport)
	return w
}

// call sends n calls, each with a span.
func (w *watched) call(n int) {
	for range n {
		ctx, span := w.spans.Tracer("test").Start(w.Context(), "call")
		w.Want("GET", w.Get(ctx, "a"), 200)
		span.End()
	}
}

// want fails the test unless there are this many lines of log and events since its last call, the
// first with these texts.
func (w *watched) want(what string, n int, line, event string) {
	w.Helper()
	events := 0
	for _, s := range w.spans.Named("call") {
		for _, e := range s.Events() {
			if e.Name == event {
				events++
			}
		}
	}
	if got := strings.Count(w.log.String(), line); got != n || events != n {
		w.Errorf("%s: %d lines and %d events, want %d of %q:\n%s", what, got, events, n, line, w.log.String())
	}
	w.log.Reset()
	w.spans.Recorder.Reset()
}

func TestLimitThatIsNearlyUsedUpIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watch(t, &weir.Transport{Limits: []throttle.Limit{
			throttle.SlidingLog(10, 3*time.Minute).Named("long"), throttle.TokenBucket(1, time.Second, 1)}}, slog.LevelInfo)
		const event = "weir.limit.near"
		for range 7 {
			w.call(1)
			time.Sleep(2 * time.Second)
		}
		w.want("7 of 10", 0, "msg", event)
		for range 3 {
			w.call(1)
			time.Sleep(2 * time.Second)
		}
		w.want("10 of 10", 1, `msg="weir: a limit is nearly used up" lane=vendor.test limit=long used=0.8`, event)
		w.call(10)
		w.want("window after window", 0, "nearly used up", event) // it was never lower
		time.Sleep(5 * time.Minute)
		w.call(1)
		w.call(9)
		time.Sleep(time.Second)
		w.call(1)
		w.want("again", 1, "nearly used up", event)
	})
}

// A bucket of 90/m burst 8 is whole after five seconds, however long its period.
func TestBucketThatIsSoonWholeIsNotReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watch(t, &weir.Transport{Limits: []throttle.Limit{throttle.Within(100, time.Minute)}}, slog.LevelInfo)
		w.call(50)
		w.want("a bucket of a few", 0, "nearly used up", "weir.limit.near")

		w = watch(t, &weir.Transport{Limits: []throttle.Limit{throttle.TokenBucket(100, time.Minute, 200)}}, slog.LevelInfo)
		w.call(180)
		time.Sleep(time.Second)
		w.call(1)
		w.want("a bucket of many", 1, "nearly used up", "weir.limit.near")
	})
}

func TestSpikeOfArrivalsIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watch(t, &weir.Transport{}, slog.LevelInfo)
		const line, event = "many more requests than usual", "weir.arrivals.spike"
		w.call(20)
		for range 120 {
			w.call(5)
			time.Sleep(time.Second)
		}
		w.want("as usual", 0, line, event)
		for range 5 {
			w.call(40)
			time.Sleep(time.Second)
		}
		w.want("eight times as many", 1, line+`" lane=vendor.test per_second=`, event)
	})
}

// Before a lane has been observed for a minute, no rate is usual.
func TestFirstCallsAfterAQuietMinuteAreNoSpike(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watch(t, &weir.Transport{}, slog.LevelInfo)
		w.call(1)
		time.Sleep(500 * time.Millisecond)
		w.call(50)
		time.Sleep(2 * time.Minute)
		w.call(1)
		w.want("first calls", 0, "many more requests than usual", "weir.arrivals.spike")
	})
}

func TestShadowThatDecidesOtherwiseIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watch(t, &weir.Transport{Shadow: []throttle.Limit{throttle.TokenBucket(1, time.Hour, 1000)}}, slog.LevelInfo)
		const line, event = "shadow limits decide otherwise", "weir.shadow.differs"
		for range 12 {
			w.call(100)
			time.Sleep(time.Second)
		}
		w.want("differs", 1, line+`" lane=vendor.test share=0.09`, event)
	})
}

func TestMadeLaneIsReportedWithItsLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watch(t, &weir.Transport{Limits: []throttle.Limit{throttle.TokenBucket(10, time.Second, 5)}}, slog.LevelDebug)
		w.call(3)
		w.want("made", 1, `msg="weir: lane made" lane=vendor.test limits="[10/s burst 5]"`, "weir.lane.made")
	})
}
