package learning_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"math"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/acceptance/harness"
	"github.com/weirgo/weir/internal/testserver"
	"github.com/weirgo/weir/throttle"
)

// fifty is a vendor of a hidden 50/s.
func fifty() *testserver.Vendor {
	return &testserver.Vendor{
		Limits:  []testserver.Limit{testserver.TokenBucket(50, time.Second, 10)},
		Service: 5 * time.Millisecond,
	}
}

func TestSnapshotShowsWhatWasLearned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t, fifty(), new(weir.Transport))
		r.Want("GET", r.Get(t.Context(), ""), 200)
		if got := r.Learned(); got != (weir.Learned{}) {
			t.Errorf("learned of one call = %+v, want nothing", got)
		}
		harness.DrainBy(r, 1000)
		if got := r.Learned(); math.Abs(got.Rate-50) > 2.5 || got.InFlight != 0 || got.Reported {
			t.Errorf("learned of a hidden 50/s = %+v, want 50 +- 5%%", got)
		}
	})
}

func TestSnapshotShowsProbing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t, &testserver.Vendor{Faults: []testserver.Fault{{Do: testserver.Answer}}}, new(weir.Transport))
		r.Want("GET", r.Get(t.Context(), ""), 429)
		if got := r.Learned(); got != (weir.Learned{Probing: true}) {
			t.Errorf("learned of refusals alone = %+v, want Probing", got)
		}
	})
}

// A forgotten lane behaves as a new one, and learns again.
func TestForgetForgetsTheLane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		vendor := &testserver.Vendor{Limits: []testserver.Limit{testserver.TokenBucket(2, time.Second, 1)}, Service: 5 * time.Millisecond}
		r := harness.PipeRig(t, vendor, new(weir.Transport))
		harness.DrainBy(r, 100)
		vendor.SetLimits()
		key := r.Transport.Snapshot()[0].Key
		if err := r.Transport.Forget(key); err != nil {
			t.Errorf("Forget = %v", err)
		}
		if got := r.Learned(); got != (weir.Learned{}) {
			t.Errorf("learned after Forget = %+v, want nothing", got)
		}
		began := r.Now()
		harness.DrainBy(r, 100)
		if took := r.Now() - began; took > time.Second {
			t.Errorf("100 calls after Forget took %v, want a second at most", took)
		}
	})
}

func TestForgetEndsPauses(t *testing.T) {
	for name, limits := range map[string][]throttle.Limit{"free": nil, "limited": harness.Every(time.Millisecond)} {
		synctest.Test(t, func(t *testing.T) {
			r := harness.PipeRig(t, &testserver.Vendor{Faults: []testserver.Fault{harness.Refuse(1, 1, "60")}}, &weir.Transport{Limits: limits})
			callers := r.Callers(t.Context(), 3)
			time.AfterFunc(2*time.Second, func() {
				if err := r.Transport.Forget(r.Transport.Snapshot()[0].Key); err != nil {
					t.Errorf("Forget = %v", err)
				}
			})
			for _, a := range callers.Wait() {
				r.Want(name+" GET", a, 200)
				if a.At > 3*time.Second {
					t.Errorf("%s: answered at %v, want soon after Forget at 2s", name, a.At)
				}
			}
		})
	}
}

// remembered returns what a lane of a hidden 50/s has learned, as stored in a file.
func remembered(t *testing.T) []byte {
	t.Helper()
	r := harness.PipeRig(t, fifty(), new(weir.Transport))
	harness.DrainBy(r, 1000)
	text, err := json.Marshal(r.Transport.ExportLearned())
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// recalls is a rig whose lanes continue with the text.
func recalls(t *testing.T, vendor *testserver.Vendor, text []byte) *harness.Rig {
	t.Helper()
	known := make(map[string]json.RawMessage)
	if err := json.Unmarshal(text, &known); err != nil {
		t.Fatal(err)
	}
	r := harness.PipeRig(t, vendor, new(weir.Transport))
	if err := r.Transport.ImportLearned(known); err != nil || len(known) != 1 {
		t.Fatalf("ImportLearned(%s) = %v, want one lane, nil", text, err)
	}
	return r
}

func TestRestartKeepsWhatWasLearned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := recalls(t, fifty(), remembered(t))
		got := harness.DrainBy(r, 500)
		first := 0
		for _, a := range r.Vendor.Arrivals() {
			if a.At < time.Second {
				first++
			}
		}
		if first < 47 || first > 65 || got.Refused > 12 || got.Wall > 10500*time.Millisecond || got.Failed > 0 {
			t.Errorf("%d in the first second; 500 took %v, %d refused, %d failed; want 47 to 65; 10.5s, 12, 0 at most",
				first, got.Wall, got.Refused, got.Failed)
		}
	})
}

func TestSnapshotShowsARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := recalls(t, fifty(), remembered(t))
		r.Want("GET", r.Get(t.Context(), ""), 200)
		if got := r.Learned(); math.Abs(got.Rate-50) > 2.5 {
			t.Errorf("learned after a restart = %+v, want 50 +- 5%%", got)
		}
		if err := r.Transport.Forget(r.Transport.Snapshot()[0].Key); err != nil || r.Learned() != (weir.Learned{}) {
			t.Errorf("after Forget, %v: learned = %+v, want nothing", err, r.Learned())
		}
	})
}

// A lane that was forgotten, unused and made again does not get the earlier import back.
func TestForgottenLaneStaysForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t, &testserver.Vendor{}, new(weir.Transport))
		if err := r.Transport.ImportLearned(map[string]json.RawMessage{"a.test": json.RawMessage(`{"version":1,"rate":50,"width":0.02}`)}); err != nil {
			t.Fatal(err)
		}
		if err := r.Transport.Forget("a.test"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		r.Want("GET", r.To("b.test"), 200) // the idle lane is removed
		r.Want("GET", r.To("a.test"), 200)
		for _, lane := range r.Transport.Snapshot() {
			if lane.Learned != (weir.Learned{}) {
				t.Errorf("lane %s was made anew after Forget and knows %+v, want nothing", lane.Key, lane.Learned)
			}
		}
	})
}

// Entries not made by ExportLearned are rejected by name, the rest is used, and their lanes learn
// again.
func TestGarbageIsNotImported(t *testing.T) {
	for _, text := range []string{`{"version":99,"rate":1}`, `{"version":1,"rate":-3}`, `[]`, `{`, ``} {
		synctest.Test(t, func(t *testing.T) {
			r := harness.PipeRig(t, &testserver.Vendor{}, new(weir.Transport))
			err := r.Transport.ImportLearned(map[string]json.RawMessage{
				"a.test": json.RawMessage(text), "b.test": json.RawMessage(`{"version":1,"rate":50,"width":0.02}`),
			})
			if err == nil || !strings.Contains(err.Error(), `lane "a.test"`) || strings.Contains(err.Error(), "b.test") {
				t.Errorf("ImportLearned(%q) = %v, want an error that names a.test alone", text, err)
			}
			if err := r.Transport.ImportLearned(nil); err != nil {
				t.Errorf("ImportLearned(nil) = %v", err)
			}
			for host, rate := range map[string]float64{"a.test": 0, "b.test": 50} {
				r.Want("GET", r.To(host), 200)
				for _, lane := range r.Transport.Snapshot() {
					if strings.Contains(lane.Key, host) && lane.Learned.Rate != rate {
						t.Errorf("%q taught %s %+v, want a rate of %v", text, host, lane.Learned, rate)
					}
				}
			}
		})
	}
}

// A lane whose limits are removed searches for the server's, and one that gets limits keeps to
// them.
func TestLearnerFollowsSetLimits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		vendor := &testserver.Vendor{
			Limits:  []testserver.Limit{testserver.TokenBucket(1000, time.Second, 20)},
			Service: 5 * time.Millisecond,
		}
		hundred := throttle.TokenBucket(100, time.Second, 1)
		r := harness.PipeRig(t, vendor, &weir.Transport{Limits: []throttle.Limit{hundred}})
		set := func(limits ...throttle.Limit) {
			if err := r.Transport.SetLimits(limits...); err != nil {
				t.Errorf("SetLimits = %v", err)
			}
		}
		if got := harness.DrainBy(r, 500); got.Wall < 4990*time.Millisecond || got.Wall > 5050*time.Millisecond || got.Refused > 0 {
			t.Errorf("500 at 100/s took %v, %d refused, want 5s, 0", got.Wall, got.Refused)
		}
		set()
		calls := 10_000
		if testing.Short() {
			calls = 3000
		}
		most := time.Duration(calls) * 13 * time.Second / 10_000
		if got := harness.DrainBy(r, calls); got.Wall > most || got.Failed > 0 {
			t.Errorf("%d at a hidden 1000/s took %v, %d failed, want %v, 0 at most", calls, got.Wall, got.Failed, most)
		}
		set(hundred)
		if got := harness.DrainBy(r, 500); got.Wall < 4990*time.Millisecond || got.Wall > 5050*time.Millisecond {
			t.Errorf("500 at 100/s once more took %v, want 5s", got.Wall)
		}
	})
}

// A learned limit is a metric beside the configured one, and an event on the span of the call that
// taught it.
func TestTelemetryShowsWhatWasLearned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		recorder, meters := tracetest.NewSpanRecorder(), harness.NewMeterLog()
		tracer := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder)).Tracer("caller")
		r := harness.PipeRig(t, fifty(), &weir.Transport{Limits: harness.Every(time.Second / 70), MeterProvider: meters})
		ctx, span := tracer.Start(t.Context(), "caller")
		for range 20 {
			for _, a := range r.Callers(ctx, 50).Wait() {
				r.Want("GET", a, 200)
			}
		}
		span.End()
		told := 0.0
		for _, event := range recorder.Ended()[0].Events() {
			for _, kv := range event.Attributes {
				if event.Name == "weir.limit.learned" && kv.Key == "weir.limit.rate" {
					told = kv.Value.AsFloat64()
				}
			}
		}
		if math.Abs(told-50) > 10 {
			t.Errorf("event of a hidden 50/s = %v, want near 50", told)
		}
		points := meters.Points(t)
		harness.WantSum(t, points, 1e9/float64(time.Second/70), "weir.limit.rate", "weir.limit.kind=configured")
		harness.WantSum(t, points, r.Learned().Rate, "weir.limit.rate", "weir.limit.kind=learned")
		if got := r.Learned().Rate; math.Abs(got-50) > 5 {
			t.Errorf("learned = %v, want near 50", got)
		}
	})
}

// A learned limit is logged once when the estimate no longer moves, and again when the vendor's
// limit has changed. Events come sooner, with the first estimates of a search.
func TestChangesOfALimitAreReported(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name          string
		before, after int // the vendor's permits per second
		burst         int
		within        time.Duration // time until the line, and then without another one
		times         int           // how often that time may pass until the line
		lines         int           // at most
		share         float64       // of the limit: by how much a report may be wrong
	}{
		// In one run of 70 this search is narrow only after two minutes. In one of 900 its first line is
		// wrong by a third, and a second line corrects it.
		{"halves after a burst", 6, 3, 60, 2 * time.Minute, 5, 2, 0.25},
		{"halves, of even calls", 6, 3, 1, 2 * time.Minute, 1, 1, 0.2},
		{"doubles", 10, 20, 5, 3 * time.Minute, 1, 1, 0.2},
	} {
		if testing.Short() && tt.burst > 1 {
			continue
		}
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				recorder := tracetest.NewSpanRecorder()
				tracer := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder)).Tracer("caller")
				vendor := &testserver.Vendor{Service: 5 * time.Millisecond}
				r := harness.PipeRig(t, vendor, &weir.Transport{Logger: slog.New(slog.NewTextHandler(&log, nil))})
				// work returns the rates that the log and the events report within a time.
				work := func(d time.Duration) (lines, events []float64) {
					log.Reset()
					ctx, span := tracer.Start(t.Context(), "caller")
					for end := time.Now().Add(d); time.Now().Before(end); {
						r.Callers(ctx, 50).Wait()
					}
					span.End()
					for line := range strings.Lines(log.String()) {
						if _, rate, ok := strings.Cut(line, " per_second="); ok && strings.Contains(line, "a limit was learned") {
							v, _ := strconv.ParseFloat(strings.TrimSpace(rate), 64)
							lines = append(lines, v)
						}
					}
					spans := recorder.Ended()
					for _, event := range spans[len(spans)-1].Events() {
						if event.Name == "weir.limit.learned" {
							events = append(events, event.Attributes[1].Value.AsFloat64())
						}
					}
					return lines, events
				}
				near := func(rates []float64, want int) bool {
					n := len(rates)
					return n > 0 && math.Abs(rates[n-1]-float64(want)) < tt.share*float64(want)
				}
				for _, rate := range []int{tt.before, tt.after} {
					vendor.SetLimits(testserver.TokenBucket(rate, time.Second, tt.burst))
					lines, events := work(tt.within)
					for again := 1; len(lines) == 0 && again < tt.times; again++ {
						later, more := work(tt.within)
						lines, events = later, append(events, more...)
					}
					if len(lines) > tt.lines || !near(lines, rate) || !near(events, rate) {
						t.Errorf("of a hidden %d/s the log reports %v, events %v, want a line, %d at most, the last of them and the last event within %v of it", rate, lines, events, tt.lines, tt.share)
					}
					if lines, _ := work(tt.within); len(lines) > 0 {
						t.Errorf("of a hidden %d/s that stayed, the log reports %v once more", rate, lines)
					}
				}
			})
		})
	}
}
