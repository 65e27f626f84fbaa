package telemetry_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/codes"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/acceptance/harness"
	"github.com/weirgo/weir/internal/redispipe"
	"github.com/weirgo/weir/internal/testserver"
	"github.com/weirgo/weir/throttle"
)

// Each call to the store is one measurement: their number is the store's, each as long as the round
// trip.
func TestStoreCallsAreMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const name = "weir.store.operation.duration"
		log := harness.NewMeterLog()
		f := harness.NewFleet(t, 1, &testserver.Vendor{}, throttle.TokenBucket(10, time.Second, 1))
		r := f.Replicas[0]
		r.Transport.MeterProvider, r.Transport.Learn, r.Transport.InFlight.Shared = log, weir.LearnOff, 5
		r.Want("GET", r.Get(t.Context(), "a"), 200)
		points := log.Points(t)
		harness.WantCount(t, points, 1, name, "weir.store.operation=reserve")
		harness.WantSum(t, points, harness.RoundTrip.Seconds(), name, "weir.store.operation=reserve")
		leases := r.Transport.Snapshot()[0].Flights.Calls
		harness.WantCount(t, points, leases, name, "weir.store.operation=lease")

		f.Redis.Break(redispipe.Silent)
		r.Callers(t.Context(), 3).Wait()
		f.Redis.Break(redispipe.Loading)
		time.Sleep(3 * time.Second)
		f.Redis.Break(redispipe.Healthy)
		time.Sleep(10 * time.Second)
		if err := r.Transport.SetLimits(throttle.TokenBucket(20, time.Second, 1)); err != nil {
			t.Error(err)
		}
		time.Sleep(10 * time.Second)
		points = log.Points(t)
		s := r.Transport.Snapshot()[0]
		harness.WantCount(t, points, s.Store.Calls+s.Flights.Calls, name)
		harness.WantCount(t, points, s.Flights.Calls, name, "weir.store.operation=lease")
		failed := uint64(0)
		for _, p := range points {
			if p.Name == name && p.Attributes["error.type"] != "" {
				failed += p.Count
			}
		}
		if failed != s.Store.Failures+s.Flights.Failures || failed == 0 {
			t.Errorf("%d failed calls, want %d and %d", failed, s.Store.Failures, s.Flights.Failures)
		}
		for _, cause := range []string{"timeout", "loading"} {
			if !hasPoint(points, name, "error.type="+cause) {
				t.Errorf("no failed call for %q: %v", cause, points)
			}
		}
		if !hasPoint(points, name, "weir.store.operation=probe") || !hasPoint(points, name, "weir.store.operation=tell") {
			t.Errorf("no probe, or no report of other limits: %v", points)
		}
	})
}

func hasPoint(points []harness.Point, name string, attributes ...string) bool {
	for _, p := range points {
		if p.Name == name && p.Has(attributes) {
			return true
		}
	}
	return false
}

// A call to the store is a span below the wait of each caller that waited for it, and no other.
func TestStoreCallIsSpanOfWhoWaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := harness.NewSpanLog()
		f := harness.NewFleet(t, 1, &testserver.Vendor{}, throttle.TokenBucket(10, time.Second, 2))
		r := f.Replicas[0]
		r.Transport.TracerProvider, r.Transport.Learn = log, weir.LearnOff
		r.Want("GET", r.Get(t.Context(), "a"), 200)
		waits, calls := log.Named("weir.wait"), log.Named("weir.store")
		if len(waits) != 1 || len(calls) != 1 {
			t.Fatalf("spans of waits, calls = %d, %d, want 1, 1", len(waits), len(calls))
		}
		wantSpan(t, calls[0], harness.RoundTrip, map[string]any{"weir.store.operation": "reserve"})
		if calls[0].Parent().SpanID() != waits[0].SpanContext().SpanID() {
			t.Errorf("parent of the call = %v, want the wait", calls[0].Parent().SpanID())
		}

		time.Sleep(time.Second)
		r.Transport.SetLimits(throttle.TokenBucket(10, time.Second, 3)) // reported, without a waiting caller
		time.Sleep(time.Second)
		if n := len(log.Named("weir.store")); n != 1 {
			t.Errorf("spans of calls = %d, want 0 for a call without waiting callers", n-1)
		}

		f.Redis.Break(redispipe.Loading)
		r.Get(weir.WithMaxWait(t.Context(), time.Second), "finds it failing")
		calls = log.Named("weir.store")
		if len(calls) != 2 {
			t.Fatalf("spans of calls = %d, want one more for the caller that found it failing", len(calls)-1)
		}
		if got := harness.Attributes(calls[1])["error.type"]; got != "loading" || calls[1].Status().Code != codes.Error {
			t.Errorf("error.type, status = %v, %v, want loading, Error", got, calls[1].Status())
		}
	})
}

// Different limits of replicas are reported in the log, and in the spans of waiting callers.
func TestStrayedReplicasAreAnEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := harness.NewSpanLog()
		f := harness.NewFleet(t, 2, &testserver.Vendor{}, throttle.TokenBucket(10, time.Second, 1))
		var told bytes.Buffer
		strict, loose := f.Replicas[0], f.Replicas[1]
		metrics := harness.NewMeterLog()
		loose.Transport.MeterProvider = metrics
		loose.Transport.TracerProvider, loose.Transport.Limits = log, []throttle.Limit{throttle.TokenBucket(20, time.Second, 1)}
		f.Stores[1].Logger = slog.New(slog.NewTextHandler(&told, nil))
		strict.Want("GET", strict.Get(t.Context(), "a"), 200)
		loose.Want("GET", loose.Get(t.Context(), "a"), 200)
		points := metrics.Points(t)
		harness.WantSum(t, points, 1, "weir.store.limits.differ", "weir.lane=vendor.test")
		harness.WantSum(t, points, 1, "weir.store.strayed", "weir.lane=vendor.test", "weir.store.event=limits_differ")
		for range 20 { // the stricter claim ends five seconds after its last call
			time.Sleep(time.Second)
			loose.Want("GET", loose.Get(t.Context(), "a"), 200)
		}
		points = metrics.Points(t)
		harness.WantSum(t, points, 0, "weir.store.limits.differ", "weir.lane=vendor.test")
		harness.WantSum(t, points, 1, "weir.store.strayed", "weir.lane=vendor.test", "weir.store.event=limits_agree")
		var events []string
		for _, s := range log.Named("weir.wait") {
			for _, e := range s.Events() {
				if e.Name == "weir.store.strayed" {
					events = append(events, e.Attributes[0].Value.AsString())
				}
			}
		}
		harness.WantEqual(t, "events", events, []string{"limits_differ", "limits_agree"})
		if text := told.String(); strings.Count(text, "claim stricter limits, and those hold") != 1 || strings.Count(text, "no other replica claims stricter limits any more") != 1 {
			t.Errorf("logged %s, want the same", text)
		}
	})
}
