package telemetry

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/internal/store"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

var reserved = store.Call{Operation: store.OperationReserve, Began: time.Now(), Took: time.Millisecond}

// A wait has the spans of the calls for which its caller waited, not of all calls of an hour.
func TestAskingIsBoundedAndOfOneKind(t *testing.T) {
	recorder := tracetest.NewSpanRecorder()
	tracer := NewTracer(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder)))
	var asking Asking
	begin := func(reason throttle.Reason) func(error) {
		return tracer.Wait(t.Context(), "a", StoreShared, &shaping.Wait{Reason: reason}, &asking)
	}
	leased := reserved
	leased.Operation = store.OperationLease
	for _, c := range []struct {
		reason throttle.Reason
		want   string
	}{
		{throttle.ReasonRate, ""}, {throttle.ReasonPause, ""},
		{throttle.ReasonStore, "reserve 8"}, {throttle.ReasonConcurrency, "lease 8"},
	} {
		recorder.Reset()
		end := begin(c.reason)
		for range 2 * maxCallSpans {
			asking.Called(&reserved)
			asking.Called(&leased)
		}
		end(nil)
		asking.Called(&reserved) // no caller waits any more
		got := ""
		if spans := recorder.Ended(); len(spans) > 1 {
			got = fmt.Sprint(spans[0].Attributes()[0].Value.AsString(), " ", len(spans)-1)
		}
		if got != c.want {
			t.Errorf("spans of a wait for %s = %q, want %q", c.reason, got, c.want)
		}
	}
	if w := asking.waits.Load(); w.n.Load() != 0 || len(w.all) != 0 {
		t.Errorf("%d waits, %d known, after all have ended", w.n.Load(), len(w.all))
	}
}

// The reason of a wait is what delayed it longest: the store until its answer, or the limits from
// then on. A failed call is no answer.
func TestReasonIsWhatHeldTheLongest(t *testing.T) {
	lost := reserved
	lost.Cause = "timeout"
	for _, c := range []struct {
		began, want throttle.Reason
		call        *store.Call
		after, rest time.Duration
	}{
		{throttle.ReasonStore, throttle.ReasonRate, &reserved, 40 * time.Millisecond, 8500 * time.Millisecond},
		{throttle.ReasonStore, throttle.ReasonStore, &reserved, 40 * time.Millisecond, 30 * time.Millisecond},
		{throttle.ReasonStore, throttle.ReasonStore, &lost, 40 * time.Millisecond, time.Second},
		{throttle.ReasonPause, throttle.ReasonPause, &reserved, 40 * time.Millisecond, time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			recorder := tracetest.NewSpanRecorder()
			tracer := NewTracer(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder)))
			var asking Asking
			w := shaping.Wait{Reason: c.began}
			settle := asking.Settle(&w)
			end := tracer.Wait(t.Context(), "a", StoreShared, &w, nil)
			time.Sleep(c.after)
			asking.Called(c.call)
			time.Sleep(c.rest)
			asking.Called(&reserved) // another one
			settle()
			end(nil)
			for _, a := range recorder.Ended()[0].Attributes() {
				if a.Key == "weir.wait.reason" && a.Value.AsString() != string(c.want) {
					t.Errorf("%s, answered after %v of %v: reason %s, want %s", c.began, c.after, c.after+c.rest, a.Value.AsString(), c.want)
				}
			}
		})
	}
}

// Without a collector a call to the store costs two loads, and a wait none.
func TestNobodyCollectsStoreCalls(t *testing.T) {
	var m *Metrics
	var asking Asking
	call := reserved
	if n := testing.AllocsPerRun(100, func() {
		m.Called(&call)
		asking.Called(&call)
		asking.Strayed(store.EventStateLost)
	}); n != 0 {
		t.Errorf("%v allocations for a call, want none", n)
	}
	unsampled := NewTracer(sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.NeverSample())))
	end := unsampled.Wait(context.Background(), "a", StoreShared, &shaping.Wait{Reason: throttle.ReasonStore}, &asking)
	if asking.waits.Load() != nil {
		t.Error("a wait that is not recorded gets calls")
	}
	end(nil)
}

func BenchmarkStoreCallOfNobody(b *testing.B) {
	var m *Metrics
	var asking Asking
	call := reserved
	b.ReportAllocs()
	for b.Loop() {
		m.Called(&call)
		asking.Called(&call)
	}
}

// A user's own store may name any cause.
func TestKindsOfStoreCallsAreBounded(t *testing.T) {
	var s calls
	for i := range 10 * maxCalls {
		s.of(store.Call{Operation: store.OperationTell, Cause: fmt.Sprint(i)})
	}
	if len(s.known) != maxCalls {
		t.Errorf("%d kinds of calls are known, want %d", len(s.known), maxCalls)
	}
}
