package telemetry_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/acceptance/harness"
	"github.com/weirgo/weir/internal/redispipe"
	"github.com/weirgo/weir/internal/testserver"
	"github.com/weirgo/weir/throttle"
)

const (
	root   = "../../../"
	golden = root + "testdata/telemetry.txt"
)

// emitted are the attributes of everything emitted, by instrument with kind, unit and description,
// by span, or by event.
type emitted map[string]map[string]bool

func (e emitted) add(what string, attributes ...string) {
	if e[what] == nil {
		e[what] = make(map[string]bool)
	}
	for _, a := range attributes {
		e[what][a] = true
	}
}

// measured adds the instruments of data points.
func (e emitted) measured(points []harness.Point) {
	for _, p := range points {
		e.add(fmt.Sprintf("metric %s, %s, %s\n  %s", p.Name, p.Kind, p.Unit, p.Description), slices.Collect(maps.Keys(p.Attributes))...)
	}
}

// traced adds Weir's spans, and the events on any span.
func (e emitted) traced(spans []sdktrace.ReadOnlySpan) {
	for _, s := range spans {
		if strings.HasPrefix(s.Name(), "weir.") {
			e.add("span "+s.Name(), slices.Collect(maps.Keys(harness.Attributes(s)))...)
		}
		for _, event := range s.Events() {
			for _, kv := range event.Attributes {
				e.add("event "+event.Name, string(kv.Key))
			}
		}
	}
}

// String returns all of it, in order.
func (e emitted) String() string {
	var b strings.Builder
	for _, what := range slices.Sorted(maps.Keys(e)) {
		b.WriteString(what + "\n")
		for _, a := range slices.Sorted(maps.Keys(e[what])) {
			b.WriteString("    " + a + "\n")
		}
	}
	return b.String()
}

// Users have dashboards and alerts over these names. WEIR_TELEMETRY=write writes the current ones.
func TestTelemetryIsAsWritten(t *testing.T) {
	all := make(emitted)
	spans, _, points := sinks(t)
	all.measured(append(points, lossy(t)...))
	all.traced(spans)
	points, log := hosted(t, true, "a.test", "b.test")
	all.measured(points)
	all.traced(log.Recorder.Ended())
	all.traced(eventful(t))
	points, spans = strayed(t)
	all.measured(points)
	all.traced(spans)
	for _, line := range logLines(t) {
		all.add("log " + line)
	}
	got := all.String()
	if os.Getenv("WEIR_TELEMETRY") == "write" {
		if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want := read(t, golden)
	for line := range strings.Lines(want + got) {
		if strings.Count("\n"+want, "\n"+line) != strings.Count("\n"+got, "\n"+line) {
			t.Errorf("changed: %s", line)
		}
	}
	if got != want {
		t.Error("if this is meant, write it: WEIR_TELEMETRY=write go test -run TestTelemetryIsAsWritten ./internal/acceptance/telemetry")
	}
	for _, name := range literals(t, root+"internal/telemetry", regexp.MustCompile(`^(weir|http|error|server)\.[a-z_.]+$`)) {
		if !regexp.MustCompile(`(?m)(^| )` + regexp.QuoteMeta(name) + `(,|$)`).MatchString(want) {
			t.Errorf("%s is in internal/telemetry and was not emitted: this test must cause it", name)
		}
	}
}

// The page has each name and each line.
func TestTelemetryPageIsComplete(t *testing.T) {
	page := read(t, root+"docs/telemetry.md")
	for line := range strings.Lines(read(t, golden)) {
		line = strings.TrimSuffix(line, "\n")
		kind, name, _ := strings.Cut(line, " ")
		switch {
		case kind == "log":
			level, text, _ := strings.Cut(name, " weir: ")
			if text, _, _ = strings.Cut(text, "…"); !strings.Contains(page, text) {
				t.Errorf("docs/telemetry.md has no %s line %q", level, text)
			}
			continue
		case strings.HasPrefix(line, "    "):
			name = strings.TrimSpace(line)
		case kind == "": // a description
			continue
		}
		if name, _, _ = strings.Cut(name, ","); !strings.Contains(page, "`"+name+"`") {
			t.Errorf("docs/telemetry.md does not name `%s`", name)
		}
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// eventful causes each event on a caller's span.
func eventful(t *testing.T) (spans []sdktrace.ReadOnlySpan) {
	in := func(transport *weir.Transport, vendor *testserver.Vendor, act func(r *harness.Rig, ctx context.Context)) {
		synctest.Test(t, func(t *testing.T) {
			log := harness.NewSpanLog()
			transport.TracerProvider = log
			r := harness.PipeRig(t, vendor, transport)
			ctx, span := log.Tracer("test").Start(t.Context(), "call")
			act(r, ctx)
			span.End()
			spans = append(spans, log.Recorder.Ended()...)
		})
	}
	each := func(n int, every time.Duration) func(*harness.Rig, context.Context) {
		return func(r *harness.Rig, ctx context.Context) {
			for range n {
				r.Get(ctx, "a")
				time.Sleep(every)
			}
		}
	}
	in(&weir.Transport{Limits: []throttle.Limit{throttle.SlidingLog(10, time.Hour)}}, &testserver.Vendor{}, each(10, 2*time.Second))
	in(&weir.Transport{Shadow: []throttle.Limit{throttle.TokenBucket(1, time.Hour, 100)}}, &testserver.Vendor{}, each(1100, 10*time.Millisecond))
	in(new(weir.Transport), &testserver.Vendor{}, func(r *harness.Rig, ctx context.Context) {
		each(60, 2*time.Second)(r, ctx)
		each(100, 20*time.Millisecond)(r, ctx)
	})
	rounds := func(r *harness.Rig, ctx context.Context) {
		for range 40 {
			r.Callers(ctx, 25).Wait()
		}
	}
	in(&weir.Transport{Limits: harness.Every(time.Second / 70)},
		&testserver.Vendor{Limits: []testserver.Limit{testserver.TokenBucket(50, time.Second, 10)}, Service: 5 * time.Millisecond}, rounds)
	in(new(weir.Transport), &testserver.Vendor{Limits: []testserver.Limit{testserver.Concurrency(4)}, Service: 50 * time.Millisecond}, rounds)
	in(&weir.Transport{Limits: harness.Every(time.Hour)}, &testserver.Vendor{}, func(r *harness.Rig, ctx context.Context) {
		r.Get(ctx, "departs")
		closed(r, ctx)
	})
	failing := &testserver.Vendor{Faults: []testserver.Fault{{Do: testserver.Answer, Status: 500}}}
	in(&weir.Transport{Retry: harness.After(time.Hour)}, failing, closed)
	in(&weir.Transport{Logger: slog.New(slog.DiscardHandler)}, failing, func(r *harness.Rig, ctx context.Context) {
		req, err := http.NewRequestWithContext(ctx, http.MethodPut, r.Server.URL, harness.NewCountedBody(strings.Repeat("x", 64<<10+1)))
		if err != nil {
			t.Fatal(err)
		}
		r.Do(req)
	})
	return spans
}

// strayed makes one of two replicas claim stricter limits, breaks the store, and returns the other
// replica's output.
func strayed(t *testing.T) (points []harness.Point, spans []sdktrace.ReadOnlySpan) {
	synctest.Test(t, func(t *testing.T) {
		metrics, log := harness.NewMeterLog(), harness.NewSpanLog()
		f := harness.NewFleet(t, 2, &testserver.Vendor{}, throttle.TokenBucket(10, time.Second, 1))
		strict, loose := f.Replicas[0], f.Replicas[1].Transport
		loose.MeterProvider, loose.TracerProvider, loose.Limits = metrics, log, []throttle.Limit{throttle.TokenBucket(20, time.Second, 1)}
		strict.Want("GET", strict.Get(t.Context(), "a"), 200)
		f.Replicas[1].Want("GET", f.Replicas[1].Get(t.Context(), "a"), 200)
		time.Sleep(time.Second)
		f.Redis.Break(redispipe.Loading)
		f.Replicas[1].Get(weir.WithMaxWait(t.Context(), time.Second), "finds it failing")
		points, spans = metrics.Points(t), log.Recorder.Ended()
	})
	return points, spans
}
