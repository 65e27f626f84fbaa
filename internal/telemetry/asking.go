package telemetry

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirgo/weir/internal/store"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// maxCallSpans bounds the spans of store calls below one wait. A caller without a permit may cause
// a store call each second.
const maxCallSpans = 8

// Asking holds the recorded waits of one lane whose callers wait for the store's
// answer. The zero Asking is ready to use, and nil has none. It is safe for concurrent
// use, and must not be copied after its first use.
type Asking struct {
	waits  atomic.Pointer[waits]  // nil: none yet
	answer atomic.Pointer[answer] // next one of the store; nil: no caller waits for it
}

// An answer is when the store answered a call; zero: it has not.
type answer struct{ at atomic.Pointer[time.Time] }

// Settle begins to measure how long the store delays a wait whose reason is the store. The function
// that it returns is called when the wait ends. If the wait was longer after the store's first
// answer than before, the limits delayed it: then w has that reason.
func (s *Asking) Settle(w *shaping.Wait) (ended func()) {
	if w.Reason != throttle.ReasonStore {
		return func() {}
	}
	s.answer.CompareAndSwap(nil, new(answer))
	began, a := time.Now(), s.answer.Load()
	return func() {
		if a == nil { // it was answered in the same moment
			return
		}
		if at := a.at.Load(); at != nil && time.Since(*at) > at.Sub(began) {
			w.Reason = throttle.ReasonRate
		}
	}
}

type waits struct {
	n atomic.Int32 // zero: nothing else is read

	mu  sync.Mutex
	all map[*asks]struct{}
}

// An asks is one such wait.
type asks struct {
	ctx    context.Context // holds its span
	tracer Tracer
	leases bool         // it waits for slots, not for permits
	spans  atomic.Int32 // calls that are spans of it
}

// add notes the wait whose span ctx holds, until the returned function is called.
func (s *Asking) add(ctx context.Context, t Tracer, reason throttle.Reason, ended func(error)) func(error) {
	asked := reason == throttle.ReasonStore || reason == throttle.ReasonConcurrency
	if s == nil || !asked || !trace.SpanFromContext(ctx).IsRecording() {
		return ended
	}
	if s.waits.Load() == nil {
		s.waits.CompareAndSwap(nil, &waits{all: make(map[*asks]struct{})})
	}
	all, w := s.waits.Load(), &asks{ctx: ctx, tracer: t, leases: reason == throttle.ReasonConcurrency}
	all.note(w, 1)
	return func(err error) {
		all.note(w, -1)
		ended(err)
	}
}

// note notes a wait if n is 1, and that it has ended if n is -1.
func (s *waits) note(w *asks, n int32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n.Add(n)
	if n > 0 {
		s.all[w] = struct{}{}
	} else {
		delete(s.all, w)
	}
}

// all returns the current waits.
func (s *Asking) all() []*asks {
	w := s.waits.Load()
	if w == nil || w.n.Load() == 0 {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Collect(maps.Keys(w.all))
}

// Called makes a call that has ended a span of each caller that waited for it. No
// caller waits for a subscription.
func (s *Asking) Called(c *store.Call) {
	if c.Operation == store.OperationReserve && c.Cause == "" && s.answer.Load() != nil {
		if a := s.answer.Swap(nil); a != nil {
			now := time.Now()
			a.at.Store(&now)
		}
	}
	if c.Operation == store.OperationSubscribe {
		return
	}
	for _, w := range s.all() {
		if w.leases == (c.Operation == store.OperationLease) && w.spans.Add(1) <= maxCallSpans {
			w.call(c)
		}
	}
}

// call makes the span of a call. The call may have begun before the wait.
func (w *asks) call(c *store.Call) {
	_, span := w.tracer.Start(w.ctx, "weir.store", trace.WithTimestamp(c.Began), trace.WithAttributes(callAttributes(c)...))
	if c.Cause != "" {
		span.SetStatus(codes.Error, label(c.Cause))
	}
	span.End(trace.WithTimestamp(c.Began.Add(c.Took)))
}

// Strayed adds an event to the spans of the waits.
func (s *Asking) Strayed(e store.Event) {
	for _, w := range s.all() {
		trace.SpanFromContext(w.ctx).AddEvent("weir.store.strayed", trace.WithAttributes(attribute.String("weir.store.event", label(string(e)))))
	}
}
