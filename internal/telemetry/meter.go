package telemetry

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/weirgo/weir/backoff"
	"github.com/weirgo/weir/headers"
	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// A Meter counts the events of one lane. The zero Meter counts nothing. A Meter
// is safe for concurrent use, and must not be copied after its first use.
type Meter struct {
	group *group // nil: not collected

	// Counts of the lane's store that have been reported. The lock of the Metrics
	// guards them.
	unknown, void uint64
}

// A result is how a turn in the line ended, in the words of the metrics.
type result string

// The results.
const (
	resultAdmitted result = "admitted"
	resultRejected result = "rejected" // the lane rejected it, at once or out of the line
	resultCanceled result = "canceled" // the caller gave up
	resultExpired  result = "expired"  // its deadline came, or could no longer be met
	resultClosed   result = "closed"   // the transport was closed
)

// resultOf returns how a turn ended with err. The turn stood in line, or was rejected at once.
func resultOf(err error, stood bool) result {
	switch {
	case err == nil:
		return resultAdmitted
	case errors.Is(err, shaping.ErrClosed):
		return resultClosed
	case errors.Is(err, context.Canceled):
		return resultCanceled
	case errors.Is(err, context.DeadlineExceeded) && (stood || !errors.Is(err, shaping.ErrDeadline)):
		return resultExpired
	default:
		return resultRejected
	}
}

// Turn counts a turn in the line that has ended with err; nil: it departed. The
// attributes of an admission are made once, so that counting it allocates
// nothing.
func (m *Meter) Turn(ctx context.Context, turn *shaping.Turn, store Store, err error) {
	if m.group != nil { // it is inlined for those that count nothing
		m.group.turn(ctx, turn, store, err)
	}
}

// turn is Turn for a lane whose metrics are collected.
func (g *group) turn(ctx context.Context, turn *shaping.Turn, store Store, err error) {
	r := resultOf(err, turn.Arrived() != 0)
	server := g.server(ctx)
	if a := g.admitted[store].Load(); r == resultAdmitted && a != nil && a.server == server {
		g.admissions.Add(ctx, 1, a.with...)
		return
	}
	with := []metric.AddOption{g.of(ctx, &g.seen.admissions,
		attribute.String("weir.result", string(r)), attribute.String("weir.store", store.String()))}
	if r == resultAdmitted {
		g.admitted[store].Store(&admission{server, with})
	}
	g.admissions.Add(ctx, 1, with...)
}

// Wait begins to measure a wait in line that really waits. The function that it
// returns records the wait, with the reason that w has then, and calls ended.
func (m *Meter) Wait(ctx context.Context, w *shaping.Wait, ended func(error)) func(error) {
	g := m.group
	if g == nil {
		return ended
	}
	began := time.Now()
	return func(err error) {
		g.waits.Record(ctx, time.Since(began).Seconds(), g.of(ctx, &g.seen.waits,
			attribute.String("weir.wait.reason", string(w.Reason)), attribute.String("weir.result", string(resultOf(err, true)))))
		ended(err)
	}
}

// Refusal counts a response with which the server refused. Its status is an
// attribute only if it is 403, 429 or 503, because a server may make up any
// number of others.
func (m *Meter) Refusal(ctx context.Context, resp *http.Response, signal *headers.Signal) {
	g := m.group
	if g == nil {
		return
	}
	with := []attribute.KeyValue{attribute.String("weir.hint", hintOf(resp, signal))}
	switch resp.StatusCode {
	case http.StatusForbidden, http.StatusTooManyRequests, http.StatusServiceUnavailable:
		with = append(with, attribute.Int("http.response.status_code", resp.StatusCode))
	}
	g.throttled.Add(ctx, 1, g.of(ctx, &g.seen.throttled, with...))
}

// hintOf returns which header named the instant of the next attempt.
func hintOf(resp *http.Response, signal *headers.Signal) string {
	_, asks := signal.Wait()
	switch {
	case signal.HasRetryAfter:
		return "retry_after"
	case asks:
		return "ratelimit"
	case len(resp.Header["Retry-After"]) > 0:
		return "invalid"
	default:
		return "none"
	}
}

// Pause counts a pause that the server requested. It requested asked, and the lane is paused for
// held.
func (m *Meter) Pause(asked, held time.Duration) {
	g := m.group
	if g == nil {
		return
	}
	g.pauses.Record(context.Background(), held.Seconds(), g.seen.pauses.of(g.name, attribute.Bool("weir.clamped", asked > held)))
}

// Retry counts a retry, or the reason why an attempt that could be repeated was
// not. An outcome that needs no retry is not counted.
func (m *Meter) Retry(ctx context.Context, d backoff.Decision, resp *http.Response, err error) {
	g := m.group
	if g == nil {
		return
	}
	outcome := "retried"
	if !d.Retry {
		switch outcome = string(d.Reason); d.Reason {
		case "", backoff.ReasonFinal, backoff.ReasonCanceled:
			return
		}
	}
	g.retries.Add(ctx, 1, g.of(ctx, &g.seen.retries,
		attribute.String("weir.retry.outcome", outcome), attribute.String("error.type", FailureOf(resp, err))))
}

// FailureOf returns a word for how an attempt failed: the class of its status,
// "timeout", or "_OTHER". An error's own text may hold anything, so it is not
// used.
func FailureOf(resp *http.Response, err error) string {
	var t interface{ Timeout() bool }
	switch {
	case err == nil && resp.StatusCode >= 200 && resp.StatusCode <= 599:
		return strconv.Itoa(resp.StatusCode/100) + "xx"
	case errors.As(err, &t) && t.Timeout():
		return "timeout"
	default:
		return "_OTHER"
	}
}

// Shadow counts a request by the decisions of the enforced and of the shadow limits, each in a
// word.
func (m *Meter) Shadow(ctx context.Context, live, candidate string) {
	if g := m.group; g != nil {
		g.shadows.Add(ctx, 1, g.seen.shadows.of(g.name, attribute.String("weir.shadow.live", live), attribute.String("weir.shadow.candidate", candidate)))
	}
}

// Lost counts the losses of the lane's store since the last call: permits of calls without an
// answer, and void permits. If s is nil, the lane has no store, and nothing is counted.
func (m *Meter) Lost(ctx context.Context, s *throttle.StoreState) {
	g := m.group
	if g == nil || s == nil {
		return
	}
	if !g.shared.Swap(true) {
		g.begin(ctx)
	}
	g.mu.Lock()
	unknown, void := grown(&m.unknown, s.Unknown), grown(&m.void, s.Void)
	g.mu.Unlock()
	if unknown > 0 {
		g.losses.Add(ctx, int64(unknown), g.here)
	}
	if void > 0 {
		g.voids.Add(ctx, int64(void), g.here)
	}
}

// grown returns by how much a count has grown since kept, and advances kept. A count smaller than
// kept is from a new limiter, and adds nothing until it has caught up.
func grown(kept *uint64, count uint64) uint64 {
	more := max(count, *kept) - *kept
	*kept += more
	return more
}
