package telemetry_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/acceptance/harness"
	"github.com/weirgo/weir/internal/testserver"
	"github.com/weirgo/weir/throttle"
)

// byField returns the keys in a field of a request.
func byField(req *http.Request) []string { return strings.Split(req.Header.Get("Keys"), " ") }

// keyed sends a GET with keys, and returns its error.
func keyed(ctx context.Context, r *harness.Rig, keys string) error {
	req := r.Request(ctx, "")
	req.Header.Set("Keys", keys)
	resp, err := r.Transport.RoundTrip(req)
	if err == nil {
		err = resp.Body.Close()
	}
	return err
}

// The instruments of each lane count its own events.
func TestMetricsOfSeveralLanes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := harness.NewMeterLog()
		r := harness.PipeRig(t, &testserver.Vendor{Faults: []testserver.Fault{{First: 2, Last: 2, Do: testserver.Answer, Status: 500}}}, &weir.Transport{
			MeterProvider: log, Keys: byField,
			LimitsFor: func(key string) []throttle.Limit {
				if key == "slow" {
					return []throttle.Limit{throttle.LeakyBucket(1, time.Minute)}
				}
				return []throttle.Limit{throttle.TokenBucket(100, time.Second, 100)}
			},
		})
		for range 2 {
			if err := keyed(t.Context(), r, "slow account"); err != nil {
				t.Error(err)
			}
		}
		if err := keyed(weir.WithMaxWait(t.Context(), time.Second), r, "slow account"); err == nil {
			t.Error("a call that may wait for a second departed")
		}
		points := log.Points(t)
		for lane, rejected := range map[string]float64{"slow": 1, "account": 0} {
			harness.WantSum(t, points, 3, "weir.admissions", "weir.lane="+lane, "weir.result=admitted")
			harness.WantSum(t, points, 1, "weir.retries", "weir.lane="+lane, "weir.retry.outcome=retried")
			harness.WantSum(t, points, rejected, "weir.admissions", "weir.lane="+lane, "weir.result=rejected")
			harness.WantCount(t, points, 2*uint64(rejected), "weir.wait.duration", "weir.lane="+lane)
		}
	})
}

// A dozer is a provider of spans, the first of which takes 50 ms to start.
type dozer struct {
	noop.TracerProvider
	sleepy
}

// A sleepy is its tracer.
type sleepy struct {
	noop.Tracer
	spans atomic.Int64
}

func (d *dozer) Tracer(string, ...trace.TracerOption) trace.Tracer { return &d.sleepy }

func (d *sleepy) Start(ctx context.Context, name string, options ...trace.SpanStartOption) (context.Context, trace.Span) {
	if name == "weir.wait" && d.spans.Add(1) == 1 {
		time.Sleep(50 * time.Millisecond)
	}
	return d.Tracer.Start(ctx, name, options...)
}

// Permits void because their caller woke too late count in each lane of the caller.
func TestStalePermitsOfSeveralLanes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := harness.PipeRig(t, &testserver.Vendor{}, &weir.Transport{
			TracerProvider: new(dozer), Keys: byField,
			Limits: []throttle.Limit{throttle.LeakyBucket(100, time.Second)}, // a permit is valid for 20 ms
		})
		var wg sync.WaitGroup
		for _, keys := range []string{"a account", "a account", "b account"} { // the second has a permit at 10 ms, and wakes at 50 ms
			wg.Go(func() {
				if err := keyed(t.Context(), r, keys); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		wg.Wait()
		want := map[string]uint64{"a": 1, "b": 0, "account": 1}
		for _, s := range r.Transport.Snapshot() {
			if s.Stale != want[s.Key] {
				t.Errorf("lane %q has %d stale permits, want %d", s.Key, s.Stale, want[s.Key])
			}
		}
	})
}
