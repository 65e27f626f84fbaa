package weir_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/codes"

	"github.com/weirgo/weir"
	"github.com/weirgo/weir/internal/redispipe"
	"github.com/weirgo/weir/internal/testserver"
	"github.com/weirgo/weir/throttle"
)

// Each call to the store is one measurement: as many as the store counts, each as long
// as the way there and back.
func TestStoreCallsAreMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const name = "weir.store.operation.duration"
		log := newMeterLog()
		f := newFleet(t, 1, &testserver.Vendor{}, throttle.TokenBucket(10, time.Second, 1))
		r := f.replicas[0]
		r.transport.MeterProvider, r.transport.Learn, r.transport.InFlight.Shared = log, weir.LearnOff, 5
		r.want("GET", r.get(t.Context(), "a"), 200)
		points := log.points(t)
		wantCount(t, points, 1, name, "weir.store.operation=reserve")
		wantSum(t, points, roundTrip.Seconds(), name, "weir.store.operation=reserve")
		leases := r.transport.Snapshot()[0].Flights.Calls
		wantCount(t, points, leases, name, "weir.store.operation=lease")

		f.redis.Break(redispipe.Silent)
		r.callers(t.Context(), 3).wait()
		f.redis.Break(redispipe.Loading)
		time.Sleep(3 * time.Second)
		f.redis.Break(redispipe.Healthy)
		time.Sleep(10 * time.Second)
		if err := r.transport.SetLimits(throttle.TokenBucket(20, time.Second, 1)); err != nil {
			t.Error(err)
		}
		time.Sleep(10 * time.Second)
		points = log.points(t)
		s := r.transport.Snapshot()[0]
		wantCount(t, points, s.Store.Calls+s.Flights.Calls, name)
		wantCount(t, points, s.Flights.Calls, name, "weir.store.operation=lease")
		failed := uint64(0)
		for _, p := range points {
			if p.name == name && p.attributes["error.type"] != "" {
				failed += p.count
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
			t.Errorf("no probe, or nothing told of other limits: %v", points)
		}
	})
}

func hasPoint(points []point, name string, attributes ...string) bool {
	for _, p := range points {
		if p.name == name && p.has(attributes) {
			return true
		}
	}
	return false
}

// A call to the store is a span below the wait of each caller that waited for it, and
// of nobody else.
func TestStoreCallIsSpanOfWhoWaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := newSpanLog()
		f := newFleet(t, 1, &testserver.Vendor{}, throttle.TokenBucket(10, time.Second, 2))
		r := f.replicas[0]
		r.transport.TracerProvider, r.transport.Learn = log, weir.LearnOff
		r.want("GET", r.get(t.Context(), "a"), 200)
		waits, calls := log.named("weir.wait"), log.named("weir.store")
		if len(waits) != 1 || len(calls) != 1 {
			t.Fatalf("spans of waits, calls = %d, %d, want 1, 1", len(waits), len(calls))
		}
		wantSpan(t, calls[0], roundTrip, map[string]any{"weir.store.operation": "reserve"})
		if calls[0].Parent().SpanID() != waits[0].SpanContext().SpanID() {
			t.Errorf("parent of the call = %v, want the wait", calls[0].Parent().SpanID())
		}

		time.Sleep(time.Second)
		r.transport.SetLimits(throttle.TokenBucket(10, time.Second, 3)) // which is told, and nobody waits
		time.Sleep(time.Second)
		if n := len(log.named("weir.store")); n != 1 {
			t.Errorf("spans of calls = %d, want none of one for which nobody waited", n-1)
		}

		f.redis.Break(redispipe.Loading)
		r.get(weir.WithMaxWait(t.Context(), time.Second), "finds it failing")
		calls = log.named("weir.store")
		if len(calls) != 2 {
			t.Fatalf("spans of calls = %d, want one more for who found it failing", len(calls)-1)
		}
		if got := attributes(calls[1])["error.type"]; got != "loading" || calls[1].Status().Code != codes.Error {
			t.Errorf("error.type, status = %v, %v, want loading, Error", got, calls[1].Status())
		}
	})
}

// Replicas of different limits are told of in the log, and in the span of who waited.
func TestStrayedReplicasAreAnEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := newSpanLog()
		f := newFleet(t, 2, &testserver.Vendor{}, throttle.TokenBucket(10, time.Second, 1))
		var told bytes.Buffer
		strict, loose := f.replicas[0], f.replicas[1]
		loose.transport.TracerProvider, loose.transport.Limits = log, []throttle.Limit{throttle.TokenBucket(20, time.Second, 1)}
		f.stores[1].Logger = slog.New(slog.NewTextHandler(&told, nil))
		strict.want("GET", strict.get(t.Context(), "a"), 200)
		loose.want("GET", loose.get(t.Context(), "a"), 200)
		for range 20 { // the stricter claim ends five seconds after its last call
			time.Sleep(time.Second)
			loose.want("GET", loose.get(t.Context(), "a"), 200)
		}
		var events []string
		for _, s := range log.named("weir.wait") {
			for _, e := range s.Events() {
				if e.Name == "weir.store.strayed" {
					events = append(events, e.Attributes[0].Value.AsString())
				}
			}
		}
		wantEqual(t, "events", events, []string{"limits_differ", "limits_agree"})
		if text := told.String(); strings.Count(text, "claim stricter limits, and those hold") != 1 || strings.Count(text, "no other replica claims stricter limits any more") != 1 {
			t.Errorf("logged %s, want the same", text)
		}
	})
}
